"""Stores of the state of a stream."""

__all__: list[str] = []
