"""A Gymnasium environment that plays back a stream of recorded frames."""
