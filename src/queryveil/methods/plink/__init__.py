"""p-linkability of profiles."""

from queryveil.methods.plink.plink import Grouping, Plink
from queryveil.methods.plink.profiles import similarity

__all__ = ["Grouping", "Plink", "similarity"]
