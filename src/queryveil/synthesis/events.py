"""What people do with results: impressions, clicks, carts and purchases, and where they sit when they search."""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from queryveil.data import EVENTS_SCHEMA, Bools, Floats, Int64s
from queryveil.synthesis.sessions import N_TOPICS, NAVIGATE, PAUSE, TOPIC, Rows
from queryveil.synthesis.shapes import mandelbrot, ranks
from queryveil.synthesis.vocabulary import N_SUBTOPICS, Vocabulary, words

PAGE = 10
"""Results on a page, all of them different."""
SEEN, GOES_ON = 3, 0.7
"""So many results come into view at once, and each further one with this chance if the one before it did."""
LOOKED_AT = -0.6
"""The power of the rank with which a result in view is looked at: lower ones less."""
SHOP_TOPICS = ("Home", "Shopping")
"""Searches for words of these topics bring up products."""
CARTED, BOUGHT = 0.2, 0.3
"""Share of the clicked products that go into a cart, and of these that are bought."""
CORRECTED = 0.015
"""Share of the searches that were typed with an error first; somebody corrects it within a minute.

10 to 15 % of web queries have an error (Cucerzan and Brill 2004), and 9 % of AOL's queries change the one before (Huang
and Efthimiadis 2009); how many of those mend an error is not told, so this share is a guess.
"""
_CLICKED_IF_WRONG = 0.3  # a search with an error is clicked so many times as often as another
_ENDINGS = pl.Series([".com", ".org", ".com", ".com"])
_ACTIONS = pl.Series(["impression", "click", "add_to_cart", "purchase"])
_FIELDS = pl.Series(["url", "object_id"])
_DEVICES = (pl.Series(["desktop", "mobile", "tablet"]), np.cumsum([0.46, 0.47, 0.07]))
_COUNTRIES = pl.Series(["US", "GB", "IN", "CA", "DE", "AU", "FR", "ES", "NL", "IE"])
_LANGUAGES = pl.Series(["en", "en", "hi", "en", "de", "en", "fr", "es", "nl", "en"])
_OF_COUNTRIES = np.cumsum([0.42, 0.15, 0.1, 0.08, 0.07, 0.06, 0.05, 0.03, 0.02, 0.02])
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {key: row[max(0, i - 1) : i] + row[i + 1 : i + 2] for row in _KEYS for i, key in enumerate(row)}


def site_urls(vocabulary: Vocabulary) -> pl.Series:
    """Return the URL of each site."""
    first, n_sites = vocabulary.start("site"), vocabulary.size("site")
    return "http://www." + vocabulary.table.slice(first, n_sites) + _ENDINGS.gather(np.arange(n_sites) % 4)


def sites_found(vocabulary: Vocabulary, *, core: Int64s, subtopic: Int64s, rank: Int64s) -> Int64s:
    """Return the number of the site that a need finds at a rank."""
    n_sites = vocabulary.size("site")
    place = ranks(
        mandelbrot(max(1, n_sites // N_TOPICS), power=0.7, offset=2.0), _mixed(vocabulary.numbers(core), rank)
    )
    return np.asarray(np.minimum(place * N_TOPICS + subtopic // N_SUBTOPICS, n_sites - 1), np.int64)


def _mixed(one: Int64s, other: Int64s) -> Floats:
    """Return a number below 1 that depends on two numbers alone: mixing them stands in for a search engine."""
    mixed = one.astype(np.uint64) * np.uint64(2_654_435_761) + other.astype(np.uint64) * np.uint64(40_503_001)
    return np.asarray(mixed % np.uint64(2**32) / 2.0**32, np.float64)


def add_corrections(
    rng: np.random.Generator, *, user: Int64s, seconds: Int64s, query: pl.Series
) -> tuple[Int64s, Bools, Int64s, pl.Series]:
    """Type some queries with an error first, and correct it within a minute; all other searches stay as they are.

    Return for each search the row that it comes from, whether it has an error, its time and its text.
    """
    n = len(user)
    waited = np.diff(seconds, prepend=0)
    waited[np.flatnonzero(np.diff(user)) + 1] = seconds[np.flatnonzero(np.diff(user)) + 1]
    long_enough = query.str.contains("[a-z]{5}").to_numpy()
    eligible = np.flatnonzero((waited > 90) & long_enough)
    chosen = eligible[rng.random(len(eligible)) < CORRECTED * n / max(1, len(eligible))]
    twice = np.ones(n, dtype=np.int64)
    twice[chosen] = 2
    source = np.repeat(np.arange(n), twice)
    at = chosen + np.arange(len(chosen))
    is_wrong = np.zeros(len(source), dtype=np.bool_)
    is_wrong[at] = True
    times = seconds[source]
    times[at] -= rng.integers(5, 60, len(at))
    typed = [mistype(text, luck=luck) for text, luck in zip(query.gather(chosen), rng.random(len(chosen)), strict=True)]
    return source, is_wrong, times, query.gather(source).scatter(at, pl.Series(typed, dtype=pl.String))


def mistype(query: str, *, luck: float) -> str:
    """Return a query with an error in its longest word: in seven of ten cases the one that is usual with this word.

    A letter is doubled or missing, changes places with the next, or is a neighbour of it on the keyboard.

    >>> [mistype("red guitar", luck=luck) for luck in (0.1, 0.75, 0.8)]
    ['red guitr', 'red guuitar', 'red guuitar']
    """
    word = max(query.split(" "), key=len)
    number = crc32(word.encode()) if luck < 0.7 else int(luck * 1e6)
    at = 1 + number // 4 % (len(word) - 2)
    start, letter, after, rest = word[:at], word[at], word[at + 1], word[at + 2 :]
    near = _NEIGHBOURS.get(letter) or letter
    ways = [start + 2 * letter + after + rest, start + after + rest, start + after + letter + rest]
    ways.append(start + near[number // 64 % len(near)] + after + rest)
    wrong = next(way for way in (*ways[number % 4 :], *ways) if way != word)
    return query.replace(word, wrong, 1)


class Searches(NamedTuple):
    """One entry per search: whose, when, and what is sought."""

    user: Int64s
    seconds: Int64s
    kind: Int64s
    subtopic: Int64s
    core: Int64s
    is_wrong: Bools

    @classmethod
    def of(cls, rows: Rows, *, source: Int64s, seconds: Int64s, is_wrong: Bools) -> "Searches":
        """Return the searches that come from these rows."""
        user, kind, subtopic, core = (each[source] for each in (rows.user, rows.kind, rows.subtopic, rows.core))
        return cls(user, seconds, kind, subtopic, core, is_wrong)

    @property
    def room(self) -> Int64s:
        """The seconds until the user searches again, or rests."""
        gap = np.append(np.diff(self.seconds), PAUSE)
        gap[np.flatnonzero(np.diff(self.user))] = PAUSE
        return np.asarray(np.minimum(gap, PAUSE), np.int64)


class Pages(NamedTuple):
    """The results of each different need, by rank."""

    of_search: Int64s
    objects: Int64s
    chances: Floats  # how likely the first click is on this result or one above it


def _pages(vocabulary: Vocabulary, searches: Searches) -> Pages:
    """Return what each need finds; products have numbers above those of the sites."""
    key = (searches.core + 1) * (N_TOPICS * N_SUBTOPICS) + searches.subtopic
    _, first, of_search = np.unique(key, return_index=True, return_inverse=True)
    core, subtopic, kind = (each[first][:, None] for each in (searches.core, searches.subtopic, searches.kind))
    rank = np.arange(1, PAGE + 1)[None, :]
    objects = sites_found(vocabulary, core=core, subtopic=subtopic, rank=rank)
    navigates = (kind == NAVIGATE)[:, 0]
    objects[navigates, 0] = core[navigates, 0] - vocabulary.start("site")
    topics = list(words()["topics"])
    sells = (kind == TOPIC) & np.isin(subtopic // N_SUBTOPICS, [topics.index(topic) for topic in SHOP_TOPICS])
    n_sites, n_products = vocabulary.size("site"), _n_products(vocabulary)
    objects = np.where(sells, n_sites + (_mixed(core, rank) * n_products).astype(np.int64), objects)
    _make_distinct(objects, least=np.where(sells, n_sites, 0)[:, 0], n=np.where(sells, n_products, n_sites)[:, 0])
    # What is good depends on the need and the object; how often it is looked at, on its rank alone.
    good = 0.1 + 0.9 * _mixed(objects + 7, core + 13) ** 2
    good[navigates, 0] = 4.0
    weight = np.cumsum(good * rank**LOOKED_AT, axis=1)
    return Pages(of_search.reshape(-1), objects, weight / weight[:, -1:])


def _make_distinct(objects: Int64s, *, least: Int64s, n: Int64s) -> None:
    """Replace what stands on a page already by the next of its topic, or the next one whatever if that stands there."""
    for place in range(1, PAGE):
        for step in [N_TOPICS] * PAGE + [1] * PAGE:
            again = np.flatnonzero((objects[:, :place] == objects[:, place : place + 1]).any(axis=1))
            if not len(again):
                break
            objects[again, place] = least[again] + (objects[again, place] - least[again] + step) % n[again]


def _n_products(vocabulary: Vocabulary) -> int:
    return 2 * vocabulary.size("site")


class Drawn(NamedTuple):
    """Events as numbers, one entry each; `rank` is 0 and `dwell` -1 where an event has none."""

    search: Int64s
    action: Int64s
    thing: Int64s
    rank: Int64s
    after: Int64s  # seconds since the search
    dwell: Floats

    @classmethod
    def in_order(cls, parts: Sequence["Drawn"]) -> "Drawn":
        """Return the events of all parts in the order of searches and times."""
        whole = np.concatenate([part[:5] for part in parts], axis=1)
        order = np.lexsort((whole[4], whole[0]))
        search, action, thing, rank, after = whole[:, order]
        return cls(search, action, thing, rank, after, np.concatenate([part.dwell for part in parts])[order])


def draw_events(rng: np.random.Generator, *, vocabulary: Vocabulary, searches: Searches) -> pl.DataFrame:
    """Return the events of all searches; `search` is its place among them, and ranks count from 1."""
    pages = _pages(vocabulary, searches)
    depth = np.minimum(SEEN - 1 + rng.geometric(1 - GOES_ON, len(searches.user)), PAGE)
    search = np.repeat(np.arange(len(depth)), depth)
    place = np.arange(len(search)) - np.repeat(np.cumsum(depth) - depth, depth)
    thing = pages.objects[pages.of_search[search], place]
    nothing = np.zeros(len(search), dtype=np.int64)
    parts = [Drawn(search, nothing, thing, place + 1, nothing, np.full(len(search), -1.0))]
    if vocabulary.shape.has_clicks:
        clicks = _draw_clicks(rng, vocabulary=vocabulary, searches=searches, pages=pages, depth=depth)
        sold = np.flatnonzero(clicks.thing >= vocabulary.size("site"))
        carts = _follow(rng, clicks, among=sold, share=CARTED, action=2, soonest=1 + clicks.dwell.astype(np.int64))
        soonest = rng.integers(20, 300, len(carts.search))
        bought = np.arange(len(carts.search))
        parts += [clicks, carts, _follow(rng, carts, among=bought, share=BOUGHT, action=3, soonest=soonest)]
    return _as_frame(Drawn.in_order(parts), vocabulary=vocabulary, searches=searches)


def _draw_clicks(
    rng: np.random.Generator, *, vocabulary: Vocabulary, searches: Searches, pages: Pages, depth: Int64s
) -> Drawn:
    """Draw a click for the usual share of searches, for some a second one on another result in view."""
    n = len(searches.user)
    share = np.where(searches.is_wrong, _CLICKED_IF_WRONG, 1.0) * vocabulary.shape.clicked
    search = np.flatnonzero(rng.random(n) < share)
    page, room = pages.of_search[search], searches.room[search]
    in_view = pages.chances[page, depth[search] - 1]
    luck = (rng.random(len(search)) * in_view for _ in range(2))
    one, other = ((pages.chances[page] <= each[:, None]).sum(axis=1) for each in luck)
    start = np.minimum(2 + rng.exponential(4.0 + 2.0 * one).astype(np.int64), np.maximum(1, room - 1))
    dwell = rng.lognormal(np.log(35.0), 1.1, len(search)).clip(1.0, 1500.0)
    again = start + dwell.astype(np.int64) + 2 + rng.integers(0, 5, len(search))
    twice = np.flatnonzero((rng.random(len(search)) < 0.25) & (other != one) & (again + 1 < room))
    dwell = np.minimum(dwell, np.maximum(1.0, room - start))
    second = rng.lognormal(np.log(35.0), 1.1, len(twice)).clip(1.0, 1500.0)
    second = np.minimum(second, room[twice] - again[twice])
    place = np.concatenate([one, other[twice]])
    page = np.concatenate([page, page[twice]])
    return Drawn(
        search=np.concatenate([search, search[twice]]),
        action=np.ones(len(page), dtype=np.int64),
        thing=pages.objects[page, place],
        rank=place + 1,
        after=np.concatenate([start, again[twice]]),
        dwell=np.concatenate([dwell, second]).round(1),
    )


def _follow(
    rng: np.random.Generator, events: Drawn, *, among: Int64s, share: float, action: int, soonest: Int64s
) -> Drawn:
    """Draw a share of some events, and return what follows each of them a while later."""
    chosen = among[rng.random(len(among)) < share]
    nothing = np.zeros(len(chosen), dtype=np.int64)
    after = events.after[chosen] + soonest[chosen]
    return Drawn(
        events.search[chosen], nothing + action, events.thing[chosen], nothing, after, np.full(len(chosen), -1.0)
    )


def _as_frame(drawn: Drawn, *, vocabulary: Vocabulary, searches: Searches) -> pl.DataFrame:
    n_sites = vocabulary.size("site")
    products = pl.select(pl.format("P{}", pl.arange(100_000, 100_000 + _n_products(vocabulary))))[:, 0]
    things = pl.concat([site_urls(vocabulary).alias("thing"), products.alias("thing")]).rechunk()
    start = np.datetime64(vocabulary.shape.start, "us")
    time = start + (searches.seconds[drawn.search] + drawn.after).astype("timedelta64[s]")
    columns = {
        "search": pl.Series(drawn.search),
        "action": _ACTIONS.gather(drawn.action),
        "object": things.gather(drawn.thing),
        "object_field": _FIELDS.gather((drawn.thing >= n_sites).astype(np.int64)),
        "rank": pl.Series(drawn.rank).set(pl.Series(drawn.rank == 0), None),
        "time": pl.Series(time),
        "dwell": pl.Series(drawn.dwell).set(pl.Series(drawn.dwell < 0), None),
    }
    return pl.DataFrame(columns).select(EVENTS_SCHEMA.keys())


def draw_places(
    rng: np.random.Generator, *, vocabulary: Vocabulary, rows: Rows, source: Int64s, seconds: Int64s
) -> dict[str, pl.Series]:
    """Return the device, country and language of each search.

    Users have one country, and mostly one device. A query with a word of the vocabulary is English, as that is; any
    other is in the language of the country.
    """
    user = rows.user[source]
    n_users = int(user[-1]) + 1
    names, chances = _DEVICES
    usual, country = ranks(chances, rng.random(n_users)), ranks(_OF_COUNTRIES, rng.random(n_users))
    rests = (np.diff(seconds, prepend=0) >= PAUSE) | (np.diff(user, prepend=-1) != 0)
    sitting = np.cumsum(rests) - 1
    n_sittings = int(sitting[-1]) + 1
    changed = ranks(chances, rng.random(n_sittings))[sitting]
    device = np.where((rng.random(n_sittings) < 0.25)[sitting], changed, usual[user])
    is_english = np.zeros(len(rows.user), dtype=np.bool_)
    for kind in ("head", "general", "business", "illness", "care", "stop", "variants"):
        first, beyond = vocabulary.ranges[kind]
        for cell in rows.cells:
            is_english |= (cell >= first) & (cell < beyond)
    language = np.where(is_english[source], 0, country[user])
    return {
        "device": names.gather(device),
        "country": _COUNTRIES.gather(country[user]),
        "language": _LANGUAGES.gather(language),
    }
