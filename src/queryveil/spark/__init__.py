"""The same promises on a Spark cluster.

Nothing of Spark is loaded before it is asked for: `start_spark` says what to install where it is missing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from queryveil._lazy import lazy_names
from queryveil.errors import MissingExtra, NotYet

if TYPE_CHECKING:
    from queryveil.methods import Km
    from queryveil.spark._executors import SparkLog
    from queryveil.spark.engine import Spark

__all__ = ["Spark", "SparkLog", "check_on_spark", "start_spark"]

_HOMES = {"Spark": ("queryveil.spark.engine", "Spark"), "SparkLog": ("queryveil.spark._executors", "SparkLog")}
__getattr__ = lazy_names(__name__, _HOMES)

_ON_ONE_MACHINE = "run it on one machine: leave out --engine"


def start_spark(master: str | None = None) -> Spark:
    """Return the engine, in the running session or in one started at a master."""
    _check_extra()
    from queryveil.spark.engine import Spark  # noqa: PLC0415 - it takes a second to load

    return Spark.start(master)


def check_on_spark(method: object) -> None:
    """Raise if a method, as it is set, does not run on Spark, or Spark is missing; nothing of Spark is loaded."""
    from queryveil import methods  # noqa: PLC0415 - they take a second to load
    from queryveil.methods.settings import Weights  # noqa: PLC0415

    match method:
        case methods.Km():
            _check_km(method)
        case methods.Kdelta(same_texts=False):
            raise NotYet(
                "kdelta without same texts on Spark",
                "how far apart queries are depends on all clicks of the release, and a shard sees its own",
                instead=f"add --same-texts, or {_ON_ONE_MACHINE}",
            )
        case methods.Plink(weights=Weights.TFIDF):
            raise NotYet(
                "plink with weights tfidf on Spark",
                "how rare a term is depends on all users, and a shard sees its own",
                instead=f"take binary or count, or {_ON_ONE_MACHINE}",
            )
        case methods.Clump() | methods.Dp() | methods.Kdelta() | methods.Partition() | methods.Plink():
            pass
        case methods.BraveWdp() | methods.Ddg2026() | methods.Ec2026() | methods.Google2024() | methods.Mozilla():
            what = f"{method.name.replace('_', '-')} on Spark"
            raise NotYet(what, "its rules and counts were written for one machine", instead=_ON_ONE_MACHINE)
        case _:
            what = f"{type(method).__name__.lower()} on Spark"
            raise NotYet(what, "there is no way to do it", instead=_ON_ONE_MACHINE)
    _check_extra()


def _check_km(method: Km) -> None:
    reasons = {
        "a taxonomy on Spark": (method.taxonomy is not None, "every user's copy of a term moves up by itself"),
        "m=none on Spark": (method.m is None, "whole histories are made alike one term at a time"),
        "shared times without windows on Spark": (
            method.window is None and method.columns.time == "shared",
            "times are counted as terms on one machine",
        ),
        "repeats once on Spark": (method.repeats == "once", "which of equal rows leaves is drawn on one machine"),
        "--no-restore on Spark": (not method.restore, "the paper's deletion goes through the users in turn"),
        "the target fis on Spark": (method.target == "fis", "it counts all frequent combinations first"),
    }
    for what, (applies, why) in reasons.items():
        if applies:
            raise NotYet(what, why, instead=f"leave out the setting, or {_ON_ONE_MACHINE}")


def _check_extra() -> None:
    if find_spec("pyspark") is None:
        raise MissingExtra("Spark", extra="spark")
