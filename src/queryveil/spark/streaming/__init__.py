"""swap on Spark Structured Streaming: events in, released events out, the pools in a checkpoint."""

from queryveil.spark.streaming._checkpoints import StreamCounts, read_counts, read_profiles
from queryveil.spark.streaming._pools import shard_of
from queryveil.spark.streaming.swap import STATE_SETTINGS, SwapStream

__all__ = ["STATE_SETTINGS", "StreamCounts", "SwapStream", "read_counts", "read_profiles", "shard_of"]
