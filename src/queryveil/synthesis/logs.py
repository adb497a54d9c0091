"""Put a made-up log together, some users at a time, and what advertisers would bid for its terms."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from queryveil.data import Bools, Floats, Int64s, Layout, QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.formats import layout_for, write_log
from queryveil.progress import step
from queryveil.rng import generator
from queryveil.synthesis.sessions import N_TOPICS, NAVIGATE, NONE, Rows, draw_rows, draw_times
from queryveil.synthesis.shapes import SHAPES, Shape, history_lengths, mandelbrot, ranks
from queryveil.synthesis.vocabulary import N_SUBTOPICS, Vocabulary, build_vocabulary, invent

N_OTHERS = 12  # how many other users at least ask for the name, and how many others for the town
VICTIM_ROWS = 7
_ENDINGS = pl.Series([".com", ".org", ".com", ".com"])


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A planted person: no other user of the log has asked for both terms."""

    user: str
    name: str
    town: str
    illness: str
    terms: tuple[str, str]

    def __repr__(self) -> str:
        return f"Secret(n_terms={len(self.terms)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("n_terms", len(self.terms))]


class Planting(NamedTuple):
    """Planted people, and rows: whose each is, its place among the rows of its user, and its three words."""

    secrets: tuple[Int64s, Int64s, Int64s]  # the numbers of their names, towns and illnesses
    user: Int64s
    place: Int64s
    cells: Int64s


def plant(rng: np.random.Generator, *, vocabulary: Vocabulary, victims: Int64s, others: Int64s) -> Planting:
    """Draw the queries of the planted people, and those of others for the same names and towns."""
    n = len(victims)
    index = np.arange(n)
    # From ranges that no other query draws from; nobody else asks for a name and its town.
    names, towns = vocabulary.start("secret_name") + index, vocabulary.start("secret_town") + index
    illnesses, given = vocabulary.draw(rng, "illness", n), vocabulary.draw(rng, "given", n)
    none = np.full(n, NONE)
    story = [
        (none, names, none),
        (given, names, none),
        (vocabulary.draw(rng, "business", n), towns, none),
        (illnesses, none, none),
        (illnesses, vocabulary.draw(rng, "care", n), none),
        (towns, vocabulary.draw(rng, "business", n), none),
        (none, names, vocabulary.draw(rng, "general", n)),
    ]
    told = np.stack([np.stack(row, axis=1) for row in story], axis=1).reshape(-1, 3)
    n_each = min(N_OTHERS, len(others) // (2 * n))
    crowd = others[: 2 * n * n_each]
    secret = np.repeat(index, 2 * n_each)
    for_name = np.tile(np.arange(2 * n_each) < n_each, n)
    shops = np.where(for_name, NONE, vocabulary.draw(rng, "business", len(crowd)))
    said = np.stack([shops, np.where(for_name, names[secret], towns[secret]), np.full(len(crowd), NONE)], axis=1)
    user = np.concatenate([np.repeat(victims, len(story)), crowd])
    place = np.concatenate([np.tile(np.arange(len(story)), n), np.zeros(len(crowd), dtype=np.int64)])
    return Planting((names, towns, illnesses), user, place, np.concatenate([told, said]))


def draw_clicks(rng: np.random.Generator, *, vocabulary: Vocabulary, rows: Rows) -> tuple[pl.Series, pl.Series]:
    """Return rank and URL of each row, null where nothing was clicked."""
    n, first, n_sites = len(rows.user), vocabulary.start("site"), vocabulary.size("site")
    urls = "http://www." + vocabulary.table.slice(first, n_sites) + _ENDINGS.gather(np.arange(n_sites) % 4)
    clicked = rng.random(n) < vocabulary.shape.clicked
    navigates = rows.kind == NAVIGATE
    rank = rng.geometric(np.where(navigates, 0.9, 0.4)).clip(max=50)
    # The result depends on need and rank alone: mixing their numbers stands in for a search engine.
    mixed = rows.core.astype(np.uint64) * np.uint64(2_654_435_761) + rank.astype(np.uint64) * np.uint64(40_503_001)
    share = mixed % np.uint64(2**32) / 2.0**32
    place = ranks(mandelbrot(max(1, n_sites // N_TOPICS), power=0.7, offset=2.0), share)
    site = np.minimum(place * N_TOPICS + rows.subtopic // N_SUBTOPICS, n_sites - 1)
    own = navigates & (rank == 1)
    site[own] = rows.core[own] - first
    hidden = pl.Series(~clicked)
    return pl.Series(rank).set(hidden, None), urls.gather(pl.Series(site).set(hidden, None))


CHUNK_ROWS = 1_000_000  # users are made in chunks of about so many rows; the log depends on it, so it is no setting


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Synthetic:
    """A made-up log and the people planted in it."""

    log: QueryLog
    secrets: tuple[Secret, ...] = ()

    def __repr__(self) -> str:
        # Privacy: made up or not, a repr never shows queries.
        return f"Synthetic(log={self.log!r}, n_secrets={len(self.secrets)})"


def synthesize(*, users: int | None = None, seed: int = 0, like: Shape | str = "web") -> Synthetic:
    """Make up a query log of a given shape and size, with people planted whose secrets are known.

    Without `users` the log has its shape's own number (web 1,000, altavista 367,803, aol 650,000), bots included. Rows
    are in order of user and time. The same arguments give the same log.

    >>> synthesize(users=10, seed=7)
    Synthetic(log=QueryLog(n_rows=101, n_users=10, columns=['user', 'query', 'time', 'rank', 'url']), n_secrets=3)
    """
    shape = like if isinstance(like, Shape) else SHAPES.get(like)
    if shape is None:
        raise BadParameter("like", like, allowed="web, altavista or aol")
    users = shape.users if users is None else users
    if users < 1:
        raise BadParameter("users", users, allowed="1 or more")
    if seed < 0:
        raise BadParameter("seed", seed, allowed="0 or more")
    rng = generator(seed)
    n_secrets, n_bots = min(users, 100, max(3, users // 1000)), users // shape.users_per_bot
    vocabulary = build_vocabulary(shape, users=users, n_secrets=n_secrets, shift=int(rng.integers(0, 100_000)))
    lengths = history_lengths(rng, users=users, mean=shape.rows_per_user, most=shape.max_rows, power=shape.tail)
    victims, bots, others = np.split(rng.permutation(users), [n_secrets, n_secrets + n_bots])
    lengths[victims] = np.maximum(lengths[victims], VICTIM_ROWS + 1)
    lengths[bots] = rng.integers(120, 400, n_bots)
    is_bot = np.zeros(users, dtype=np.bool_)
    is_bot[bots] = True
    numbers = np.sort(rng.choice(40 * users + 1000, size=users, replace=False)) + 1000
    ids = pl.Series("user", numbers).cast(pl.String)
    planting = plant(rng, vocabulary=vocabulary, victims=victims, others=others)
    frames = []
    for frame in _chunks(rng, vocabulary=vocabulary, lengths=lengths, is_bot=is_bot, ids=ids, planting=planting):
        frames.append(frame)
        step("making up queries", sum(f.height for f in frames) / int(lengths.sum()))
    words = [vocabulary.table.gather(each) for each in planting.secrets]
    secrets = tuple(
        Secret(user=user, name=name, town=town, illness=illness, terms=(name, town))
        for user, name, town, illness in zip(ids.gather(victims), *words, strict=True)
    )
    return Synthetic(log=QueryLog(frame=pl.concat(frames, rechunk=False)), secrets=secrets)


def _chunks(
    rng: np.random.Generator,
    *,
    vocabulary: Vocabulary,
    lengths: Int64s,
    is_bot: Bools,
    ids: pl.Series,
    planting: Planting,
) -> Iterator[pl.DataFrame]:
    shape, total = vocabulary.shape, np.cumsum(lengths)
    cuts = np.unique(np.searchsorted(total, np.arange(CHUNK_ROWS, total[-1], CHUNK_ROWS)) + 1)
    edges = [0, *(int(cut) for cut in cuts if cut < len(total)), len(total)]
    n_novel = 0
    for start, stop in pairwise(edges):
        some, bots = lengths[start:stop], is_bot[start:stop]
        rows = draw_rows(rng, vocabulary=vocabulary, lengths=some, is_bot=bots)
        _write_planting(rows, planting, start=start, stop=stop, first=np.cumsum(some) - some)
        times = draw_times(rng, shape=shape, rows=rows, lengths=some, is_bot=bots)
        serials = vocabulary.next_serial + n_novel + np.arange(rows.n_novel)
        n_novel += rows.n_novel
        columns = {
            "user": ids.slice(start, stop - start).gather(rows.user),
            "query": _spell(rows, pl.concat([vocabulary.table, invent(serials)]).rechunk()),
            "time": pl.Series(np.datetime64(shape.start, "us") + times.astype("timedelta64[s]")),
        }
        if shape.has_clicks:
            columns["rank"], columns["url"] = draw_clicks(rng, vocabulary=vocabulary, rows=rows)
        yield pl.DataFrame(columns)


def _write_planting(rows: Rows, planting: Planting, *, start: int, stop: int, first: Int64s) -> None:
    here = np.flatnonzero((planting.user >= start) & (planting.user < stop))
    at = first[planting.user[here] - start] + planting.place[here]
    for column in rows.cells:
        column[at] = -1
    for i in range(3):
        rows.cells[i + 2][at] = planting.cells[here, i]
    rows.core[at] = planting.cells[here, 1]
    rows.kind[at] = 0


def _spell(rows: Rows, table: pl.Series) -> pl.Series:
    cells = [pl.Series(column) for column in rows.cells]
    columns = [table.gather(cell.set(cell < 0, None)).alias(str(i)) for i, cell in enumerate(cells)]
    return pl.DataFrame(columns).select(query=pl.concat_str(pl.all(), separator=" ", ignore_nulls=True))["query"]


def write_synthetic(
    made: Synthetic,
    path: str | Path,
    *,
    layout: Layout | None = None,
    values_seed: int | None = None,
    force: bool = False,
) -> list[Path]:
    """Write OUT, OUT.secrets.jsonl and, with a `values_seed`, OUT.values.csv; return the paths written."""
    log, secrets, values = Path(path), Path(f"{path}.secrets.jsonl"), Path(f"{path}.values.csv")
    files = [log, secrets] if values_seed is None else [log, secrets, values]
    if there := [file for file in files if file.exists() and not force]:
        raise BadFile(str(there[0]), "is already there; choose another name, or replace it with --force")
    try:
        write_log(made.log, log, layout=layout or layout_for(log))
        secrets.write_bytes(msgspec.json.Encoder().encode_lines(made.secrets))
        if values_seed is not None:
            term_values(made.log, seed=values_seed).write_csv(values)
    except OSError as error:
        raise BadFile(str(path), f"could not be written: {error.strerror}") from None
    return files


LISTED = 0.47  # share of the terms that are in the table (117,916 of 251,115 in the paper), frequent ones first
WITH_CLICKS = 0.55  # share of the listed terms that have an estimate of the clicks; the others have null
TERMS_PER_GIANT = 3000


def term_values(log: QueryLog, *, seed: int) -> pl.DataFrame:
    """Make up bid, clicks and impressions for about half of a log's terms.

    The Pearson correlations resemble those of Burghardt et al., table 3: clicks and impressions 0.40, revenue (bid
    times clicks) and bid 0.58, impressions and users 0.15, all others near zero. They settle at about 20,000 terms. As
    there, a few giant bids make up most of the revenue.

    >>> log = QueryLog.from_frame({"user": ["1", "2"], "query": ["jaguar price", "jaguar"]})
    >>> term_values(log, seed=7).columns
    ['term', 'bid', 'clicks', 'impressions']
    """
    if seed < 0:
        raise BadParameter("seed", seed, allowed="0 or more")
    rng = generator(seed)
    terms = _listed(rng, log)
    n, users = terms.height, terms["users"].to_numpy().astype(np.float64)
    shown = rng.lognormal(np.log(300), 2.2, n).clip(max=5e6)
    has_clicks = rng.random(n) < WITH_CLICKS
    # Clicks share the part of the impressions that has nothing to do with the log.
    clicks = 0.40 * _scaled(shown, has_clicks) + 0.03 * _scaled(users, has_clicks)
    clicks = 800 * (clicks + 0.91 * _scaled(rng.lognormal(0, 2.0, n), has_clicks))
    impressions = shown + 0.145 * _spread(shown) * _scaled(users, users > 0)
    bid = rng.lognormal(np.log(0.4), 0.8, n).clip(0.05, 30.0)
    # What is clicked most is cheap: else revenue would follow the clicks.
    bid = np.where(clicks > 2000, 0.05 + bid / 8, bid)
    giants = rng.permutation(np.flatnonzero(has_clicks))[: max(6, n // TERMS_PER_GIANT)]
    bid[giants] = 919.0 * np.arange(1, len(giants) + 1) ** -0.35
    hot = np.arange(len(giants)) % 3 == 1
    clicks[giants] = np.where(hot, 2000 * rng.uniform(0.9, 1.1, len(giants)), rng.integers(1, 20, len(giants)))
    return pl.DataFrame(
        {
            "term": terms["term"],
            "bid": bid.round(2),
            "clicks": pl.Series(clicks.round().astype(np.int64)).set(pl.Series(~has_clicks), None),
            "impressions": np.maximum(impressions.round(), 1).astype(np.int64),
        }
    ).sort("term")


def _listed(rng: np.random.Generator, log: QueryLog) -> pl.DataFrame:
    """Return about half of a log's terms with the number of their users, frequent ones more often than rare ones."""
    words = pl.col("query").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+")
    asked = log.frame.lazy().select("user", term=words).explode("term").drop_nulls().unique()
    counts = asked.group_by("term").agg(users=pl.len()).sort("term").collect()
    order = np.argsort(-(np.log(counts["users"].to_numpy()) + rng.random(counts.height)), kind="stable")
    return counts[np.sort(order[: max(1, round(LISTED * len(order)))])] if len(order) else counts


def _scaled(values: Floats, among: Bools) -> Floats:
    spread = _spread(values[among])
    return values / spread if spread > 0 else np.zeros_like(values)


def _spread(values: Floats) -> float:
    return float(np.std(values)) if len(values) else 0.0
