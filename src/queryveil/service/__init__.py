"""The live anonymizer: events from a source, through the pools of swap, to a sink, each exactly once.

The modules here are what `connectors` (sources and sinks), `stores` and `http` are built on; `pipeline` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryveil._lazy import lazy_names

if TYPE_CHECKING:
    from queryveil.service.pipeline.service import Service
    from queryveil.service.pipeline.urls import open_sink, open_source, open_store
    from queryveil.service.settings import StreamSettings, Tables, read_or_make_key
    from queryveil.service.stores.profiles import ProfileDatabase

__getattr__ = lazy_names(
    __name__,
    {
        "queryveil.service.pipeline.service": "Service",
        "queryveil.service.pipeline.urls": "open_sink open_source open_store",
        "queryveil.service.settings": "StreamSettings Tables read_or_make_key",
        "queryveil.service.stores.profiles": "ProfileDatabase",
    },
)

__all__ = [
    "ProfileDatabase",
    "Service",
    "StreamSettings",
    "Tables",
    "open_sink",
    "open_source",
    "open_store",
    "read_or_make_key",
]
