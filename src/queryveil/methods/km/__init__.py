"""(k, m)-anonymity by deleting terms."""

from queryveil.methods.km.km import Km
from queryveil.methods.settings import Target

__all__ = ["Km", "Target"]
