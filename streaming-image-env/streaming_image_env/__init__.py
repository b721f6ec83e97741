"""A Gymnasium environment that plays back a stream of recorded frames."""

from streaming_image_env.env import FrameStreamError, StreamingImageEnv

__all__ = ["FrameStreamError", "StreamingImageEnv"]
