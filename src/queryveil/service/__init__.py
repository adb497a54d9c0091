"""The live anonymizer: events from a source, through the pools of swap, to a sink, each exactly once.

The modules here are what `connectors` (sources and sinks), `stores` and `http` are built on; `pipeline` runs them.
"""

from queryveil._lazy import names_of_stub

__getattr__, __all__ = names_of_stub(__name__, __file__)
