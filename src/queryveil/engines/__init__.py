"""The same methods on other machines than this one; a package per engine."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from queryveil.errors import MissingExtra

if TYPE_CHECKING:
    from queryveil.engines.spark import Spark

__all__ = ["check_on_spark", "start_spark"]


def start_spark(master: str | None = None) -> Spark:
    """Give the verbs on Spark, in the session that runs or in one started at a master."""
    _check_extra()
    from queryveil.engines.spark import Spark  # noqa: PLC0415 - it takes a second to load

    return Spark.start(master)


def check_on_spark(method: object) -> None:
    """Raise if a method, as it is set, is not made on Spark; nothing is started for that."""
    _check_extra()
    from queryveil.engines.spark.limits import check_method  # noqa: PLC0415 - it takes a second to load

    check_method(method)


def _check_extra() -> None:
    if find_spec("pyspark") is None:
        raise MissingExtra("Spark", extra="spark")
