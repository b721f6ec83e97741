"""Experiments: configs, plots and tables over runs."""
