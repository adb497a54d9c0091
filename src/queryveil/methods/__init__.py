"""The privacy methods: each takes a log and returns a release that keeps its promise, or raises; three baselines."""

from queryveil._lazy import names_of_stub

__getattr__, __all__ = names_of_stub(__name__, __file__)
