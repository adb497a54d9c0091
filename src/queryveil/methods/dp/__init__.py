"""Differential privacy of the users."""

from queryveil.methods.dp._bounding import Choice
from queryveil.methods.dp._mechanisms import Mechanism
from queryveil.methods.dp.dp import Dp

__all__ = ["Choice", "Dp", "Mechanism"]
