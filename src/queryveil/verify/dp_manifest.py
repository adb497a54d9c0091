"""Does a manifest of noisy counts agree with itself and with what was released, and tell nothing else?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from queryveil.guarantees import DifferentialPrivacy
from queryveil.log import QueryLog
from queryveil.release import Manifest
from queryveil.tallies import Tallies
from queryveil.verify.dp_words import in_units
from queryveil.verify.verdict import Kind, Witness

_SETTINGS = frozenset(
    ("epsilon", "delta", "max_queries", "mechanism", "rounds", "choose", "clicks", "max_clicks", "bot_threshold")
)
_MECHANISMS = ("auto", "truncated-geometric", "gaussian", "laplace", "zealous")
_CHOICES = ("random", "frequent")
_MADE_UP = "synthesized"
_WARNINGS = frozenset(
    (
        "made with a seed: whoever knows it can take the noise away",
        "epsilon above 10 promises next to nothing: chances may differ by a factor of more than 22,026",
        "delta above 0.001 promises next to nothing: of 1,000 people one or more may see a query leave that is theirs "
        "alone",
        "all rows are made up from noisy counts: users are nobody, and what stands together says nothing",
    )
)
"""What may be warned of. Any other text could tell something of the log."""

_Claim = Callable[[Manifest, Tallies | QueryLog], Iterator[Witness]]


def claims_broken(manifest: Manifest, data: Tallies | QueryLog) -> list[Witness]:
    """Find what a manifest says that is not so, and what it tells of the log without noise."""
    claims: tuple[_Claim, ...] = (_tells_nothing, _made_up, _promised, _rounds, _bounds, _sizes)
    return [witness for claim in claims for witness in claim(manifest, data)]


def _whole(kind: Kind, *, found: int, needed: int, rows: tuple[int, ...] = ()) -> Witness:
    return Witness(kind=kind, size=0, support=found, needed=needed, rows=rows, positions=())


def _tells_nothing(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """The size of the log, what was removed or measured, its columns: none of it is told, nor anything unheard of."""
    counts, columns = manifest.counts, manifest.columns
    numbers = [counts.n_rows_before, counts.n_users_before, columns.n_others_dropped, len(manifest.query_clusters)]
    changed = set(manifest.changed)
    if isinstance(data, Tallies):
        numbers.append(counts.n_users_after)
    else:
        changed -= {"rows_added"}
    named = (changed, manifest.removed, manifest.measures, columns.dropped, columns.kept)
    unheard_of = [*_odd_settings(manifest, data), *(set(manifest.warnings) - _WARNINGS)]
    n_told = sum(map(bool, numbers)) + sum(map(len, named)) + len(unheard_of)
    if n_told:
        yield _whole("exact_count", found=n_told, needed=0)


def _odd_settings(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[str]:
    known = _SETTINGS if isinstance(data, Tallies) else _SETTINGS | {_MADE_UP}
    for name, value in manifest.parameters.items():
        is_word = {"mechanism": value in _MECHANISMS, "choose": value in _CHOICES, _MADE_UP: value is True}
        is_number = value is None or isinstance(value, int | float)
        if name not in known or not is_word.get(name, is_number):
            yield name


def _made_up(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """Rows are made up, and all of them."""
    if isinstance(data, QueryLog):
        added = manifest.changed.get("rows_added")
        if manifest.parameters.get(_MADE_UP) is not True or added != data.n_rows:
            yield _whole("not_made_up", found=data.n_rows, needed=0)


def _promised(manifest: Manifest, _: Tallies | QueryLog) -> Iterator[Witness]:
    """The settings have the epsilon and the delta of the promise."""
    promise = manifest.promise
    if isinstance(promise, DifferentialPrivacy):
        for name, promised in (("epsilon", promise.epsilon), ("delta", promise.delta)):
            said = manifest.parameters.get(name)
            if isinstance(said, bool) or said != promised:
                yield _whole("other_promise", found=in_units(said), needed=in_units(promised))


def _rounds(manifest: Manifest, _: Tallies | QueryLog) -> Iterator[Witness]:
    """There is a part of the noise for each round, and one for clicks if a part of the budget is for them."""
    whats = [part.what for part in manifest.noise]
    rounds, clicks = manifest.parameters.get("rounds"), manifest.parameters.get("clicks")
    has_clicks = in_units(clicks) > 0
    expected = rounds + has_clicks if type(rounds) is int else 0
    if whats.count("queries") != rounds or whats.count("clicks") != has_clicks:
        yield _whole("other_parts", found=len(whats), needed=expected)


def _bounds(manifest: Manifest, _: Tallies | QueryLog) -> Iterator[Witness]:
    """Nobody has a part in more counts than the settings say."""
    for part, noise in enumerate(manifest.noise, start=1):
        most = manifest.parameters.get(f"max_{noise.what}")
        if noise.max_items != most:
            yield _whole("other_items", found=noise.max_items, needed=most if type(most) is int else 0, rows=(part,))


def _sizes(manifest: Manifest, data: Tallies | QueryLog) -> Iterator[Witness]:
    """The release is as large as it says."""
    counts = manifest.counts
    sizes = (
        [(counts.n_rows_after, data.n_queries)]
        if isinstance(data, Tallies)
        else [(counts.n_rows_after, data.n_rows), (counts.n_users_after, data.n_users)]
    )
    for said, there in sizes:
        if said != there:
            yield _whole("other_size", found=said, needed=there)
