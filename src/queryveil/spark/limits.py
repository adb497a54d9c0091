"""What the methods do not support on a cluster yet, and why, known before Spark starts."""

from __future__ import annotations

from queryveil.errors import NotYet
from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink, Target
from queryveil.methods.settings import Weights

_ONE_MACHINE = "run it on one machine: leave out --engine"


def check_method(method: object) -> None:
    """Raise if a method, as it is set, is not made on Spark."""
    match method:
        case Km():
            _check_km(method)
        case Kdelta(same_texts=False):
            raise NotYet(
                "kdelta without same texts on Spark",
                "how far apart queries are depends on all clicks of the release, and a shard sees its own",
                instead=f"add --same-texts, or {_ONE_MACHINE}",
            )
        case Plink(weights=Weights.TFIDF):
            raise NotYet(
                "plink with weights tfidf on Spark",
                "how rare a term is depends on all users, and a shard sees its own",
                instead=f"take binary or count, or {_ONE_MACHINE}",
            )
        case Clump() | Dp() | Kdelta() | Partition() | Plink():
            pass
        case _:
            raise NotYet(f"{type(method).__name__.lower()} on Spark", "there is no way to do it", instead=_ONE_MACHINE)


def _check_km(method: Km) -> None:
    reasons = {
        "a taxonomy on Spark": (method.taxonomy is not None, "every user's copy of a term moves up by itself"),
        "m=none on Spark": (method.m is None, "whole histories are made alike one term at a time"),
        "--no-restore on Spark": (not method.restore, "the paper's deletion goes through the users in turn"),
        "the target fis on Spark": (method.target is Target.FIS, "it counts all frequent combinations first"),
    }
    for what, (applies, why) in reasons.items():
        if applies:
            raise NotYet(what, why, instead=f"leave out the setting, or {_ONE_MACHINE}")
