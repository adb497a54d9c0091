"""swap on Spark Structured Streaming: events in, released events out, the pools in a checkpoint."""

from queryveil.engines.spark.streaming.arriving import shard_of
from queryveil.engines.spark.streaming.counts import StreamCounts, read_counts
from queryveil.engines.spark.streaming.profiles import read_profiles
from queryveil.engines.spark.streaming.state_settings import STATE_SETTINGS
from queryveil.engines.spark.streaming.swap import SwapStream

__all__ = ["STATE_SETTINGS", "StreamCounts", "SwapStream", "read_counts", "read_profiles", "shard_of"]
