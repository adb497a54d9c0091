"""Put a made-up log together, some users at a time, with its planted people, and write it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from queryveil.data import Bools, Format, Int64s, Layout, QueryLog
from queryveil.errors import BadFile, BadParameter
from queryveil.formats import layout_for, write_log
from queryveil.formats.values import ISO_ZONED
from queryveil.progress import step
from queryveil.rng import generator
from queryveil.synthesis import events as made_events
from queryveil.synthesis.sessions import NAVIGATE, NONE, Rows, draw_rows, draw_times
from queryveil.synthesis.shapes import SHAPES, Shape, history_lengths
from queryveil.synthesis.values import term_values
from queryveil.synthesis.vocabulary import Vocabulary, build_vocabulary, invent

N_OTHERS = 12  # how many other users at least ask for the name, and how many others for the town
VICTIM_ROWS = 7
PLANTED_MORE, MOST_PLANTED = 12_000, 500
"""Above so many users a log of the web has more planted people: a limit of exposure of 5 % needs 73."""
UBI_LAYOUT = Layout(format=Format.UBI, time_format=ISO_ZONED)


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

    def with_more(self, other: "Planting") -> "Planting":
        """Return these people and others."""
        secrets = [np.concatenate(pair) for pair in zip(self.secrets, other.secrets, strict=True)]
        user, place, cells = (np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True))
        return Planting((secrets[0], secrets[1], secrets[2]), user, place, cells)


def plant(
    rng: np.random.Generator, *, vocabulary: Vocabulary, victims: Int64s, others: Int64s, n_before: int = 0
) -> Planting:
    """Draw the queries of the planted people, and those of others for the same names and towns.

    `n_before` others have been planted already, with names and towns of their own.
    """
    n = len(victims)
    index = np.arange(n_before, n_before + n)
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
    secret = np.repeat(np.arange(n), 2 * n_each)
    for_name = np.tile(np.arange(2 * n_each) < n_each, n)
    shops = np.where(for_name, NONE, vocabulary.draw(rng, "business", len(crowd)))
    said = np.stack([shops, np.where(for_name, names[secret], towns[secret]), np.full(len(crowd), NONE)], axis=1)
    user = np.concatenate([np.repeat(victims, len(story)), crowd])
    place = np.concatenate([np.tile(np.arange(len(story)), n), np.zeros(len(crowd), dtype=np.int64)])
    return Planting((names, towns, illnesses), user, place, np.concatenate([told, said]))


def draw_clicks(rng: np.random.Generator, *, vocabulary: Vocabulary, rows: Rows) -> tuple[pl.Series, pl.Series]:
    """Return rank and URL of each row, null where nothing was clicked."""
    n, first = len(rows.user), vocabulary.start("site")
    clicked = rng.random(n) < vocabulary.shape.clicked
    navigates = rows.kind == NAVIGATE
    rank = rng.geometric(np.where(navigates, 0.9, 0.4)).clip(max=50)
    site = made_events.sites_found(vocabulary, core=rows.core, subtopic=rows.subtopic, rank=rank)
    own = navigates & (rank == 1)
    site[own] = rows.core[own] - first
    hidden = pl.Series(~clicked)
    urls = made_events.site_urls(vocabulary)
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


class _Users(NamedTuple):
    """One entry per user, and what is planted among them."""

    lengths: Int64s
    is_bot: Bools
    ids: pl.Series
    planting: Planting
    victims: Int64s


def synthesize(
    *,
    users: int | None = None,
    seed: int = 0,
    like: Shape | str = "web",
    format: Format | str | None = None,  # noqa: A002
) -> Synthetic:
    """Make up a query log of a given shape and size, with people planted whose secrets are known.

    Without `users` the log has its shape's own number (web 1,000, altavista 367,803, aol 650,000), bots included. Rows
    are in order of user and time. The same arguments give the same log.

    - `format`: the kind of file that it is for. The queries of `ubi` have impressions, clicks, carts and purchases
      beside them (`log.events`, ranks from 1), and some have an error that the next one corrects. In all formats but
      aol and excite, searches have a device, a country and a language. Without a format a row is as in AOL's log: a
      query, and the rank and URL of its click. The same seed gives the same queries in every format, but for the added
      ones with errors.

    >>> synthesize(users=10, seed=7)
    Synthetic(log=QueryLog(n_rows=101, n_users=10, columns=['user', 'query', 'time', 'rank', 'url']), n_secrets=3)
    >>> synthesize(users=10, seed=7, format="ubi").log.events["action"].unique().sort().to_list()
    ['add_to_cart', 'click', 'impression']
    """
    shape = like if isinstance(like, Shape) else SHAPES.get(like)
    if shape is None:
        raise BadParameter("like", like, allowed="web, altavista or aol")
    users = shape.users if users is None else users
    if users < 1:
        raise BadParameter("users", users, allowed="1 or more")
    if seed < 0:
        raise BadParameter("seed", seed, allowed="0 or more")
    if format is not None and format not in _FORMATS:
        raise BadParameter("format", format, allowed=f"one of {', '.join(_FORMATS)}")
    rng = generator(seed)
    # What was added later has generators of its own, so that seeds give the logs that they gave before.
    of_more, of_events = rng.spawn(2)
    n_secrets = min(users, 100, max(3, users // 1000))
    n_more = _n_planted_more(shape, users=users, n_secrets=n_secrets)
    shift = int(rng.integers(0, 100_000))
    vocabulary = build_vocabulary(shape, users=users, n_secrets=n_secrets, n_more=n_more, shift=shift)
    made = _draw_users(rng, of_more, vocabulary=vocabulary, users=users, n_secrets=n_secrets, n_more=n_more)
    parts = []
    for part in _chunks(
        rng, of_events, vocabulary=vocabulary, users=made, format=None if format is None else Format(format)
    ):
        parts.append(part)
        step("making up queries", sum(each.frame.height for each in parts) / int(made.lengths.sum()))
    words = [vocabulary.table.gather(each) for each in made.planting.secrets]
    secrets = tuple(
        Secret(user=user, name=name, town=town, illness=illness, terms=(name, town))
        for user, name, town, illness in zip(made.ids.gather(made.victims), *words, strict=True)
    )
    return Synthetic(log=_joined(of_events, parts), secrets=secrets)


_FORMATS = tuple(each for each in Format if each is not Format.TRANSACTIONS)
_WITHOUT_PLACES = (None, Format.AOL, Format.EXCITE)


def _n_planted_more(shape: Shape, *, users: int, n_secrets: int) -> int:
    """Return how many people are planted beside the first ones."""
    if shape.users_per_planted is None or users <= PLANTED_MORE:
        return 0
    return max(0, min(MOST_PLANTED, users // shape.users_per_planted) - n_secrets)


def _draw_users(
    rng: np.random.Generator,
    of_more: np.random.Generator,
    *,
    vocabulary: Vocabulary,
    users: int,
    n_secrets: int,
    n_more: int,
) -> _Users:
    shape = vocabulary.shape
    n_bots = users // shape.users_per_bot
    lengths = history_lengths(rng, users=users, mean=shape.rows_per_user, most=shape.max_rows, power=shape.tail)
    victims, bots, others = np.split(rng.permutation(users), [n_secrets, n_secrets + n_bots])
    lengths[victims] = np.maximum(lengths[victims], VICTIM_ROWS + 1)
    lengths[bots] = rng.integers(120, 400, n_bots)
    is_bot = np.zeros(users, dtype=np.bool_)
    is_bot[bots] = True
    numbers = np.sort(rng.choice(40 * users + 1000, size=users, replace=False)) + 1000
    ids = pl.Series("user", numbers).cast(pl.String)
    planting = plant(rng, vocabulary=vocabulary, victims=victims, others=others)
    if n_more:
        # Nobody gets more rows, so that all other rows stay as they are.
        rest = others[~np.isin(others, planting.user)]
        long_enough = lengths[rest] > VICTIM_ROWS
        more, rest = rest[long_enough][:n_more], np.concatenate([rest[~long_enough], rest[long_enough][n_more:]])
        second = plant(of_more, vocabulary=vocabulary, victims=more, others=rest, n_before=n_secrets)
        planting, victims = planting.with_more(second), np.concatenate([victims, more])
    return _Users(lengths, is_bot, ids, planting, victims)


class _Part(NamedTuple):
    """The searches of some users, and their events if the format has them."""

    frame: pl.DataFrame
    events: pl.DataFrame | None


def _chunks(
    rng: np.random.Generator,
    of_events: np.random.Generator,
    *,
    vocabulary: Vocabulary,
    users: _Users,
    format: Format | None,  # noqa: A002
) -> Iterator[_Part]:
    shape, total = vocabulary.shape, np.cumsum(users.lengths)
    cuts = np.unique(np.searchsorted(total, np.arange(CHUNK_ROWS, total[-1], CHUNK_ROWS)) + 1)
    edges = [0, *(int(cut) for cut in cuts if cut < len(total)), len(total)]
    n_novel = 0
    for start, stop in pairwise(edges):
        some, bots = users.lengths[start:stop], users.is_bot[start:stop]
        rows = draw_rows(rng, vocabulary=vocabulary, lengths=some, is_bot=bots)
        _write_planting(rows, users.planting, start=start, stop=stop, first=np.cumsum(some) - some)
        times = draw_times(rng, shape=shape, rows=rows, lengths=some, is_bot=bots)
        serials = vocabulary.next_serial + n_novel + np.arange(rows.n_novel)
        n_novel += rows.n_novel
        query = _spell(rows, pl.concat([vocabulary.table, invent(serials)]).rechunk())
        columns, source = {}, np.arange(len(times))
        found = None
        if shape.has_clicks:
            # Drawn for every format, since later draws depend on it.
            columns["rank"], columns["url"] = draw_clicks(rng, vocabulary=vocabulary, rows=rows)
        if format is Format.UBI:
            source, is_wrong, times, query = made_events.add_corrections(
                of_events, user=rows.user, seconds=times, query=query
            )
            searches = made_events.Searches.of(rows, source=source, seconds=times, is_wrong=is_wrong)
            found = made_events.draw_events(of_events, vocabulary=vocabulary, searches=searches)
            columns = {}
        if format not in _WITHOUT_PLACES:
            columns |= made_events.draw_places(
                of_events, vocabulary=vocabulary, rows=rows, source=source, seconds=times
            )
        first = {
            "user": users.ids.slice(start, stop - start).gather(rows.user[source]),
            "query": query,
            "time": pl.Series(np.datetime64(shape.start, "us") + times.astype("timedelta64[s]")),
        }
        yield _Part(pl.DataFrame(first | columns), found)


def _joined(rng: np.random.Generator, parts: list[_Part]) -> QueryLog:
    """Return the log of all parts; where there are events, searches are numbered at random."""
    frame = pl.concat([part.frame for part in parts], rechunk=False)
    events = [part.events for part in parts if part.events is not None]
    if not events:
        return QueryLog(frame=frame)
    # In order they would tell which searches are of one user.
    numbers = pl.Series("search", rng.permutation(frame.height) + frame.height + 1).cast(pl.String)
    first = np.cumsum([0, *(part.frame.height for part in parts)])
    named = [
        each.with_columns(search=numbers.slice(start, part.frame.height).gather(each["search"]))
        for each, part, start in zip(events, parts, first.tolist(), strict=False)
    ]
    log = QueryLog(frame=frame.with_columns(numbers), events=pl.concat(named, rechunk=False))
    return replace(log, layout=UBI_LAYOUT)


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


def layout_of(path: Path, *, format: Format | str | None = None) -> Layout:  # noqa: A002
    """Return the layout of a new file: UBI if asked for, else the one that its ending names."""
    layout = layout_for(path)
    if format != Format.UBI:
        return layout
    if layout.format is not Format.JSONL:
        raise BadParameter("the ending of a UBI file", path.suffix or path.name, allowed=".ndjson or .jsonl")
    return replace(UBI_LAYOUT, compression=layout.compression)


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
        write_log(made.log, log, layout=layout or layout_of(log, format=made.log.layout.format))
        secrets.write_bytes(msgspec.json.Encoder().encode_lines(made.secrets))
        if values_seed is not None:
            term_values(made.log, seed=values_seed).write_csv(values)
    except OSError as error:
        raise BadFile(str(path), f"could not be written: {error.strerror}") from None
    return files
