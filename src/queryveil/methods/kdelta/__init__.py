"""(k, delta)-anonymity of query clusters and URLs."""

from queryveil.methods.kdelta.kdelta import Kdelta

__all__ = ["Kdelta"]
