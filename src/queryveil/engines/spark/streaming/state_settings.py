"""What Spark must have and know before a stream with a state starts."""

from __future__ import annotations

from importlib.util import find_spec

from queryveil.errors import MissingExtra

STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # What changed is written with a batch, not all that is there.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Privacy: old states hold queries that have left since. One to go back to is enough.
    "spark.sql.streaming.minBatchesToRetain": "2",
}
"""The settings of such a stream."""


def check_streaming_extra() -> None:
    """Raise if something is not installed that Spark needs to let Python keep a state."""
    if not all(find_spec(name) for name in ("google", "pandas")) or not find_spec("google.protobuf"):
        raise MissingExtra("a stream on Spark", extra="spark")
