"""Made-up commits of a stream, each known by its number alone, and what a store must have after them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import polars as pl

from queryveil.service.ports import Commit, Outgoing, Saved
from queryveil.service.stores._profile_blocks import NAMES
from queryveil.service.stores.profiles import SCHEMA, ProfileDatabase

SETTINGS = "k=10\nl=2"
_A_GENERATION = 20
_N_USERS = 400


def _changes(number: int) -> Counter[tuple[str, str]]:
    rng = random.Random(number)
    users = (f"pseudonym {rng.randrange(_N_USERS)}" for _ in range(number % 40))
    return Counter((user, NAMES[rng.randrange(len(NAMES))]) for user in users)


def _released(number: int) -> bytes:
    return b"released %d\n" % number * (number % 40)


def _offset(number: int) -> int:
    return sum(len(_released(before)) for before in range(1, number))


def _hashes(number: int) -> bytes:
    return random.Random(-number).randbytes(8 * (number % 40))


def raw_query(number: int) -> str:
    """Return the text that waits in the pools after a commit."""
    return f"raw walnut query number {number} end"


def numbered_commit(number: int) -> Commit:
    """Return the commit of a number."""
    changes = [(user, name, n) for (user, name), n in _changes(number).items()]
    return Commit(
        number=number,
        position=f"line {number}",
        pools=raw_query(number).encode() * 50,
        keys=(f"key {number}",) if number % 3 == 0 else (),
        generation=number // _A_GENERATION,
        issued=_hashes(number),
        profiles=pl.DataFrame(changes, schema=["user", "category", "n"], orient="row") if changes else None,
        outgoing=Outgoing(number=number, offset=_offset(number), data=_released(number), n_rows=number % 40),
        delivered=max(0, number - 3),
        counts={"n_released": sum(before % 40 for before in range(1, number + 1))},
    )


def check_saved(saved: Saved, *, number: int) -> None:
    """Check that a store gives back what it had after a commit, and nothing of a later one."""
    numbers = range(1, number + 1)
    last = numbered_commit(number)
    assert (saved.number, saved.position, saved.pools) == (number, last.position, last.pools)
    assert saved.keys == tuple(f"key {i}" for i in numbers if i % 3 == 0)
    assert (saved.delivered, saved.counts) == (last.delivered, last.counts)
    assert saved.n_bytes_out == _offset(number + 1)
    kept = [(out.number, out.offset, out.data, out.n_rows) for out in saved.outgoing]
    assert kept == [(i, _offset(i), _released(i), i % 40) for i in numbers if i > last.delivered]
    issued: dict[int, bytes] = {}
    for generation, hashes in saved.issued:
        issued[generation] = issued.get(generation, b"") + hashes
    wanted: dict[int, bytes] = {}
    for i in numbers:
        if i // _A_GENERATION >= last.generation - 1 and _hashes(i):
            wanted[i // _A_GENERATION] = wanted.get(i // _A_GENERATION, b"") + _hashes(i)
    assert issued == wanted


def check_profiles(store: str | Path, *, number: int) -> None:
    """Check that the profiles of a store are those after a commit."""
    counts: dict[str, Counter[str]] = {}
    for i in range(1, number + 1):
        for (user, name), n in _changes(i).items():
            counts.setdefault(user, Counter())[name] += n
    table = ProfileDatabase(store).table()
    assert table.schema == SCHEMA
    assert table["user"].to_list() == sorted(counts)
    for row in table.iter_rows(named=True):
        wanted = counts[row["user"]]
        assert {name: row[name] for name in NAMES} == {name: wanted[name] for name in NAMES}
        assert row["total"] == wanted.total()
