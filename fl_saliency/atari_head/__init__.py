"""Atari-HEAD: human gaze, and how well attention agrees with it."""
