"""Where the state of a stream is kept."""

__all__: list[str] = []
