"""Privacy guarantees as values that can be compared, printed and written to a manifest."""

from typing import TypeAlias

from queryveil.guarantees._anonymity import (
    KdeltaAnonymity,
    KmAnonymity,
    Linkability,
    SwapAnonymity,
    TransactionAnonymity,
)
from queryveil.guarantees._practice import ANY, REGIONS, AskedEntities, AskedTexts, TextRule
from queryveil.guarantees._promise import DifferentialPrivacy, NoPromise, parse_window

__all__ = ["ANY", "REGIONS", "AskedEntities", "AskedTexts", "DifferentialPrivacy", "Guarantee", "KdeltaAnonymity"]
__all__ += ["KmAnonymity", "Linkability", "NoPromise", "SwapAnonymity", "TextRule"]
__all__ += ["TransactionAnonymity", "parse_window"]

Guarantee: TypeAlias = (
    KmAnonymity
    | TransactionAnonymity
    | KdeltaAnonymity
    | Linkability
    | SwapAnonymity
    | DifferentialPrivacy
    | AskedTexts
    | AskedEntities
    | TextRule
    | NoPromise
)
