"""Deep Q-networks (Mnih et al. 2015)."""
