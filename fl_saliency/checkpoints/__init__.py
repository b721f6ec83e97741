"""Model files in and out: OpenAI Baselines model.pkl."""
