"""p-linkability: groups of users in place of users."""

from queryveil.methods.plink.plink import Grouping, Plink

__all__ = ["Grouping", "Plink"]
