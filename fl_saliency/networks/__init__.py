"""Policy networks whose attention is part of the forward pass."""
