"""What a shard tells of itself, and the manifest of all shards together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from queryveil.release import Counts, Manifest


class TooFew(msgspec.Struct, frozen=True, kw_only=True):
    """A shard has fewer users than a group needs."""

    n_users: int
    needed: int
    way_out: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a shard tells: the manifest of its own release and other numbers of it, or that it is too small."""

    shard: int
    manifest: Manifest | None = None
    sums: dict[str, float] = {}
    too_few: TooFew | None = None


def merged(
    base: Manifest,
    shards: Sequence[Manifest],
    *,
    counts: Counts,
    measures: Mapping[str, float],
    warnings: Iterable[str],
) -> Manifest:
    """Give the manifest of all shards: what was removed and changed is summed, the rest is given.

    `base` is that of the same log without rows: it has the parameters, the columns and what was wrong with the file.
    """
    return msgspec.structs.replace(
        base,
        counts=counts,
        removed=summed([base.removed, *(shard.removed for shard in shards)]),
        changed=summed([base.changed, *(shard.changed for shard in shards)]),
        measures=dict(measures) | ({"shards": len(shards)} if len(shards) > 1 else {}),
        warnings=tuple(warnings),
    )


def summed(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add tables up, name by name.

    >>> summed([{"rows": 1}, {"rows": 2, "terms": 5}])
    {'rows': 3, 'terms': 5}
    """
    total: dict[str, int] = {}
    for table in tables:
        for name, n in table.items():
            total[name] = total.get(name, 0) + n
    return total


def total(told: Sequence[Told], name: str) -> float:
    """Add one of the numbers up over all shards."""
    return sum(each.sums.get(name, 0) for each in told)


def mean(manifests: Sequence[Manifest], measure: str, *, weights: Sequence[float]) -> float:
    """Give the mean of a measure of the shards, each with a weight; 0 where nothing has any."""
    whole = sum(weights)
    values = (manifest.measures.get(measure, 0.0) for manifest in manifests)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / whole if whole else 0.0


def before_caveats(base: Sequence[str], found: Sequence[str], *, first: int) -> list[str]:
    """Put what there is to say of the rows where a local manifest has it: after the first so many, before the rest."""
    return [*base[:first], *found, *base[first:]]
