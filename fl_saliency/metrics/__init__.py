"""Saliency metrics: maps against human fixations."""
