"""A policy in an environment as a stream of frames."""
