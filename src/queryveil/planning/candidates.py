"""What is tried for a purpose: ladders of settings of each method, from the weakest promise to the strongest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from queryveil.comparison.methods import METHODS, PlanValue, settings_of
from queryveil.comparison.plan import Run, run_of
from queryveil.methods.dp._noise import has_extra
from queryveil.utility.purposes import PURPOSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Settings of one method that differ in one of them.

    - `method`: its name, as in a plan of `compare`.
    - `along`: the setting in which they differ; empty if there is one step only.
    - `steps`: its values, from the weakest promise to the strongest.
    - `fixed`: the settings that all of them have.
    """

    method: str
    along: str = ""
    steps: tuple[PlanValue, ...] = (None,)
    fixed: Mapping[str, PlanValue] = field(default_factory=dict)

    def runs(self, columns: Mapping[str, PlanValue]) -> tuple[Run, ...]:
        """Return a run for each step, with what is said of columns as far as the method has them."""
        known = settings_of(self.method)
        own = {name: value for name, value in columns.items() if name in known}
        steps = [{self.along: step} if self.along else {} for step in self.steps]
        return tuple(run_of(self.method, {**step, **self.fixed, **own}) for step in steps)


_K = (5, 10, 20, 50, 100)
_NOTHING_ADDED = {"k": 10, "same_texts": True, "additions": False}
_LADDERS = (
    Ladder(method="dp", along="epsilon", steps=(8.0, 4.0, 2.0, 1.0, 0.5), fixed={"max_queries": 1}),
    Ladder(method="dp", along="epsilon", steps=(8.0, 4.0, 2.0, 1.0, 0.5)),
    Ladder(method="dp", along="epsilon", steps=(8.0, 4.0, 2.0, 1.0, 0.5), fixed={"max_queries": 20}),
    Ladder(method="kdelta", along="min_query_users", steps=_K, fixed=_NOTHING_ADDED),
    Ladder(method="kdelta", along="min_query_users", steps=_K, fixed={"k": 5, "same_texts": True}),
    Ladder(method="plink", along="p", steps=(0.4, 0.2, 0.1, 0.05), fixed={"strict": True}),
    Ladder(method="clump", along="k", steps=_K),
    Ladder(method="swap", along="min_query_users", steps=(1, *_K), fixed={"k": 10}),
    Ladder(method="google_2024", along="n_users", steps=(5, 10, 30, 100), fixed={"rows_within": "none"}),
    Ladder(method="google_2024", along="n_users", steps=(5, 30)),
    Ladder(method="km", along="k", steps=_K, fixed={"m": "none", "repeats": "once"}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 3, "repeats": "once"}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 2, "repeats": "once"}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 1, "repeats": "once"}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 3, "taxonomy": "wordnet"}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 3}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 2}),
    Ladder(method="km", along="k", steps=_K, fixed={"m": 1}),
    Ladder(method="kdelta", along="k", steps=_K, fixed={"same_texts": True}),
    Ladder(method="kdelta", along="k", steps=_K),
    Ladder(method="partition", along="k", steps=(5, 20, 100)),
    Ladder(method="plink", along="p", steps=(0.4, 0.2, 0.1, 0.05)),
    Ladder(method="swap", along="k", steps=(50, 200)),
    Ladder(method="ec_2026", along="n_users", steps=(5, 10, 20, 50, 100), fixed={"cell_users": 100}),
    Ladder(method="ec_2026", along="n_users", steps=(50,)),
    Ladder(method="query_threshold", along="k", steps=(5, 10, 30, 50)),
)
"""Those first that protect from most attackers: where time is short, later ones are not tried."""
_HIDE_NOBODY = ("pseudonymise", "token_hash")
"""Baselines that no purpose is served by under a limit: one shows all texts, the other none."""

_CLICKS: Mapping[str, PlanValue] = {"keep": ["url", "rank"], "clicks": 0.3}
_COLUMNS: Mapping[str, tuple[Mapping[str, PlanValue], ...]] = {
    "ranking": (_CLICKS,),
    "spelling": ({}, {"time": "shared"}),
    "related": ({}, _CLICKS),
    "trends": ({"time": "shared"}, {"time": "day"}),
}
"""By purpose, what to keep beside the queries, each tried with every ladder; nothing more if the purpose is not named.

Times that are `shared` are covered by the promise, days are not, but attackers say what they expose.
"""
_OF_QUERIES = ("ranking", "suggestions", "spelling", "related", "trends")
_NO_QUERIES = ("plink", "clump", "partition")
"""Methods whose releases hold no queries, which those purposes need."""
_SHARING_DAYS = ("km", "kdelta", "swap")
"""Methods whose promise covers shared times."""


def ladders(purpose: str, *, columns: Sequence[str]) -> tuple[tuple[Run, ...], ...]:
    """Return what is tried for a purpose on a log with these columns, each ladder from its weakest run on.

    Methods that the table does not know are tried as they are. No run stands on two ladders.

    >>> [run.name for run in ladders("trends", columns=["user", "query", "time"])[0]][:2]
    ['dp epsilon=8.0 max_queries=1', 'dp epsilon=4.0 max_queries=1']
    """
    known = {ladder.method for ladder in _LADDERS} | set(_HIDE_NOBODY)
    others = tuple(Ladder(method=name) for name in METHODS if name not in known)
    seen: set[str] = set()
    found = []
    for ladder, kept in _all(PURPOSES[purpose].name, (*_LADDERS, *others), columns=columns):
        runs = tuple(run for run in ladder.runs(kept) if run.slug not in seen)
        seen |= {run.slug for run in runs}
        if runs:
            found.append(runs)
    return tuple(found)


def _all(
    purpose: str, table: Sequence[Ladder], *, columns: Sequence[str]
) -> Iterator[tuple[Ladder, Mapping[str, PlanValue]]]:
    for ladder in table:
        has_none = purpose in _OF_QUERIES and ladder.method in _NO_QUERIES
        if has_none or (ladder.method == "dp" and not has_extra()):
            continue
        for wanted in _COLUMNS.get(purpose, ({},)):
            kept = _there(wanted, columns)
            # Whole histories have no times that anybody shares.
            is_sharing = ladder.method in _SHARING_DAYS and ladder.fixed.get("m") != "none"
            if kept.get("time") == "shared" and not is_sharing:
                kept.pop("time")
            yield ladder, kept


def _there(wanted: Mapping[str, PlanValue], columns: Sequence[str]) -> dict[str, PlanValue]:
    """Return what is wanted of the columns that a log has."""
    kept = dict(wanted)
    if "keep" in kept:
        kept["keep"] = [name for name in ("url", "rank") if name in columns]
    if "url" not in columns:
        kept = {name: value for name, value in kept.items() if name not in ("keep", "clicks")}
    return {name: value for name, value in kept.items() if name != "time" or "time" in columns}


def by_turns(found: Sequence[tuple[Run, ...]]) -> tuple[Run, ...]:
    """Return the runs of all ladders, one step of each in turn from the strongest down.

    Whoever stops early has seen something of all, and what is the most likely to be under a limit.

    >>> [run.name for run in by_turns(ladders("suggestions", columns=["user", "query"]))][:2]
    ['dp epsilon=0.5 max_queries=1', 'dp epsilon=0.5']
    """
    longest = max((len(ladder) for ladder in found), default=0)
    return tuple(ladder[-1 - i] for i in range(longest) for ladder in found if i < len(ladder))


def stronger_than(found: Sequence[tuple[Run, ...]]) -> dict[str, frozenset[str]]:
    """Return by name of a run the names of those that promise more on the same ladder."""
    return {
        run.name: frozenset(other.name for other in ladder[i + 1 :]) for ladder in found for i, run in enumerate(ladder)
    }
