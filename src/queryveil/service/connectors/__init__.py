"""Sources and sinks of the service: files, Redis and Kafka."""

__all__: list[str] = []
