"""Atari environments under an explicit protocol."""
