"""Atari environments under an explicit protocol."""

from fl_saliency.envs.protocol import Protocol, mismatches, resolve_protocol
from fl_saliency.envs.vector import AtariVectorEnv, VectorStep

__all__ = ["AtariVectorEnv", "Protocol", "VectorStep", "mismatches", "resolve_protocol"]
