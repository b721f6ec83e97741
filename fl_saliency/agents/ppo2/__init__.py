"""PPO2 as OpenAI Baselines defines it."""
