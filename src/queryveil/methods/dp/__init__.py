"""Differential privacy of the users."""

from queryveil.methods.dp.dp import Dp, synthesized
from queryveil.methods.settings import Choice, Mechanism

__all__ = ["Choice", "Dp", "Mechanism", "synthesized"]
