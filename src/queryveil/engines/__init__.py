"""The same methods on other machines than this one; a package per engine."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from queryveil.errors import MissingExtra

if TYPE_CHECKING:
    from queryveil.engines.spark import Spark

__all__ = ["start_spark"]


def start_spark(master: str | None = None) -> Spark:
    """Give the verbs on Spark, in the session that runs or in one started at a master."""
    if find_spec("pyspark") is None:
        raise MissingExtra("Spark", extra="spark")
    from queryveil.engines.spark import Spark  # noqa: PLC0415 - it takes a second to load

    return Spark.start(master)
