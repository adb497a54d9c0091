"""Anonymize search query logs, verify the guarantee, attack the release and measure its utility."""

from queryveil._lazy import names_of_stub

# Polars and Numba take a quarter of a second each to load; a name is loaded when it is first asked for.
__getattr__, __all__ = names_of_stub(__name__, __file__)
