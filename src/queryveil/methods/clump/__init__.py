"""k identical transactions: clump and partition."""

from queryveil.methods.clump.clump import Clump, Partition

__all__ = ["Clump", "Partition"]
