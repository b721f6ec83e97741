"""Saliency methods."""
