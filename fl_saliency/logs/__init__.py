"""Training logs: writers and readers of the Baselines formats."""
