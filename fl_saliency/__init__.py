"""Deep-RL agents that show where they look: train, evaluate, watch and score built-in attention."""

__version__ = "0.1.0"
