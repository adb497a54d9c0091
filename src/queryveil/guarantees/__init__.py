"""Privacy guarantees as values that can be compared, printed and written to a manifest."""

from typing import TypeAlias

from queryveil.guarantees._anonymity import (
    KdeltaAnonymity,
    KmAnonymity,
    Linkability,
    SwapAnonymity,
    TransactionAnonymity,
)
from queryveil.guarantees._promise import DifferentialPrivacy, NoPromise, parse_window

__all__ = ["DifferentialPrivacy", "Guarantee", "KdeltaAnonymity", "KmAnonymity", "Linkability", "NoPromise"]
__all__ += ["SwapAnonymity", "TransactionAnonymity", "parse_window"]

Guarantee: TypeAlias = (
    KmAnonymity | TransactionAnonymity | KdeltaAnonymity | Linkability | SwapAnonymity | DifferentialPrivacy | NoPromise
)
