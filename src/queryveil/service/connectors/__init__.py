"""Where events come from."""

__all__: list[str] = []
