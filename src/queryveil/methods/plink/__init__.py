"""p-linkability of profiles."""

from queryveil.methods.plink._similarity import similarity
from queryveil.methods.plink.plink import Grouping, Plink

__all__ = ["Grouping", "Plink", "similarity"]
