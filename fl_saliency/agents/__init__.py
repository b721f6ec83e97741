"""Agents and their training loops."""
