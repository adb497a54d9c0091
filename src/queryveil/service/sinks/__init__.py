"""Where released events go."""

__all__: list[str] = []
