"""The same promises on a Spark cluster.

Nothing of Spark is loaded before it is asked for: `start_spark` says what to install where it is missing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from queryveil._lazy import lazy_names
from queryveil.errors import MissingExtra

if TYPE_CHECKING:
    from queryveil.spark.engine import Spark
    from queryveil.spark.logs import SparkLog

__all__ = ["Spark", "SparkLog", "check_on_spark", "start_spark"]

__getattr__ = lazy_names(__name__, {"queryveil.spark.engine": "Spark", "queryveil.spark.logs": "SparkLog"})


def start_spark(master: str | None = None) -> Spark:
    """Return the engine, in the running session or in one started at a master."""
    _check_extra()
    from queryveil.spark.engine import Spark  # noqa: PLC0415 - it takes a second to load

    return Spark.start(master)


def check_on_spark(method: object) -> None:
    """Raise if a method, as it is set, does not run on Spark; no session is started."""
    _check_extra()
    from queryveil.spark.engine import check_method  # noqa: PLC0415 - it takes a second to load

    check_method(method)


def _check_extra() -> None:
    if find_spec("pyspark") is None:
        raise MissingExtra("Spark", extra="spark")
