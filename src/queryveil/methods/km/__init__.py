"""(k, m)-anonymity by deleting terms."""

from queryveil.methods.km._deletion import Target
from queryveil.methods.km.km import Km

__all__ = ["Km", "Target"]
