"""Queries exchanged between users in pools of a category."""

from queryveil.methods.swap.swap import Swap

__all__ = ["Swap"]
