"""Sources and sinks of the service: files, Redis and Kafka."""
