"""Verify what methods of practice promise: who asked a text or its parts, cells of enough users, rules on letters.

Users are gone from these releases, so who asked what is counted in the original. The promise of ec-2026 is about full
names, addresses and phone numbers as the rules for identifiers find them: these rules, and nothing else, are shared
with the method.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache

import numpy as np
import polars as pl

from queryveil.checks.arrivals import find_identifiers
from queryveil.checks.tokens import folded_all, lowered_all, number
from queryveil.checks.verdict import Found, Kind, Verdict, found_in
from queryveil.data import QueryLog, Tallies
from queryveil.guarantees import ANY, REGIONS, AskedEntities, AskedTexts, TextRule, parse_window
from queryveil.progress import step

_AGE = (pl.col("time").max() - pl.col("time")).fill_null(timedelta(0))


def verify_asked_texts(data: Tallies, promise: AskedTexts, *, original: QueryLog) -> Verdict:
    """Return the verdict on counts of texts and clicks, given the log that they were made from.

    Violations are texts and rows of clicks of too few users, clicks of a text that is not there, texts that are not in
    normal form, and counts that are not those of the original.

    >>> log = QueryLog.from_frame({"user": ["1", "2"], "query": ["Tea", "tea"]})
    >>> promise = AskedTexts(n_users=2, n_row_users=2, within=None, rows_within=None)
    >>> verify_asked_texts(Tallies(frame=pl.DataFrame({"query": ["tea"], "count": [2]})), promise, original=log).holds
    True
    """
    step("counting who asked each text")
    verdict = Verdict(promise=promise, n_users=data.n_queries + data.n_clicks, n_checked_users=data.n_queries)
    rows = data.frame.with_row_index("row", offset=1)
    untidy = (rows["query"] != folded_all(rows["query"])) & (rows["query"] != lowered_all(rows["query"]))
    found = [found_in(rows.filter(untidy).select("row", support=pl.lit(1), needed=pl.lit(0)), kind="untidy_query")]
    asked = [_asked(original, by_python=by_python) for by_python in (True, False)]
    recent = [_last(each, promise.within).filter(pl.col("query") != "") for each in asked]
    of_texts = [each.group_by("query").agg(n=pl.col("user").n_unique()) for each in recent]
    found.append(_fewer(rows, of_texts, on=["query"], needed=promise.n_users, kind="unasked_query"))
    counted = [_last(each, promise.rows_within) for each in asked]
    sums = [each.group_by("query").agg(n=pl.len()) for each in counted]
    found.append(_other(rows, sums, on=["query"], kind="other_count"))
    if data.clicks is not None:
        found += _of_clicks(data, promise, original, [_last(each, promise.rows_within, keep=True) for each in asked])
    return verdict.joined(*found)


def _of_clicks(data: Tallies, promise: AskedTexts, original: QueryLog, counted: list[pl.DataFrame]) -> Iterator[Found]:
    assert data.clicks is not None
    rows = data.clicks.with_row_index("row", offset=1)
    stray = rows.join(data.frame, on="query", how="anti").select("row", support="count", needed=pl.lit(0))
    yield found_in(stray, kind="stray_click")
    where = [name for name in ("device", "country") if name in rows.columns]
    on = ["query", "url", *where]
    told = [original.with_frame(each.with_columns(_told(each, where))) for each in counted]
    made = [log.with_clicks_as_rows().frame for log in told]
    clicks = [each for each in made if "url" in each.columns]
    users = [each.group_by(on).agg(n=pl.col("user").n_unique()) for each in clicks]
    yield _fewer(rows, users, on=on, needed=promise.n_row_users, kind="unmade_click")
    yield _other(rows, [each.group_by(on).agg(n=pl.len()) for each in clicks], on=on, kind="other_click")
    if "views" in rows.columns:
        views = [_shown(log).group_by(on).agg(n=pl.len()) for log in told]
        yield _other(rows.with_columns(count="views"), views, on=on, kind="other_views")
    if "rank" in rows.columns:
        ranked = [each for each in clicks if "rank" in each.columns]
        means = [each.group_by(on).agg(mean=pl.col("rank").mean()) for each in ranked]
        joined = [rows.join(each, on=on, how="left", maintain_order="left") for each in means]
        near = [(each["rank"] - each["mean"]).abs() <= _ROUNDED for each in joined]
        both_none = [each["rank"].is_null() & each["mean"].is_null() for each in joined]
        is_right = np.zeros(rows.height, np.bool_)
        for one, other in zip(near, both_none, strict=True):
            is_right |= (one.fill_null(value=False) | other).to_numpy()
        wrong = rows.filter(~is_right).select("row", support=pl.lit(1), needed=pl.lit(0))
        yield found_in(wrong, kind="other_rank")


_ROUNDED = 1e-12
"""Means are exact; what they may differ by must not have room for a message."""


def _told(rows: pl.DataFrame, where: Sequence[str]) -> list[pl.Expr]:
    """Return the device and the country of each row as released ones tell them."""
    there = [
        pl.col(name).replace("", None).fill_null("unknown") if name in rows.columns else pl.lit("").alias(name)
        for name in where
    ]
    return [each.alias(name) for each, name in zip(there, where, strict=True)]


def _shown(log: QueryLog) -> pl.DataFrame:
    """Return a row for each time that a page was shown for a text."""
    if log.events is None or "search" not in log.columns:
        return log.frame.clear().with_columns(url=pl.lit(None, pl.String))
    first = log.frame.drop("url", strict=False).drop_nulls("search").unique("search", keep="first", maintain_order=True)
    shown = log.events.filter(pl.col("action").str.to_lowercase() == "impression")
    return first.join(shown.select("search", url="object"), on="search")


def _asked(log: QueryLog, *, by_python: bool) -> pl.DataFrame:
    """Return the rows of a log with their texts in normal form, as released ones are."""
    texts = number(log.frame["query"])
    # Some files have a blank in the place of NUL.
    written = texts.distinct.str.replace_all("\0", " ", literal=True)
    forms = folded_all(written) if by_python else lowered_all(written)
    return log.frame.with_columns(query=forms.gather(texts.codes))


def _last(rows: pl.DataFrame, within: str | None, *, keep: bool = False) -> pl.DataFrame:
    """Return the rows of the last part of a log; a row without a time is one of them.

    `keep`: keep the others without a text, since clicks are of the first row of a search.
    """
    if within is None or "time" not in rows.columns:
        return rows
    is_last = parse_window(within) > _AGE
    return (
        rows.with_columns(query=pl.when(is_last).then("query").otherwise(pl.lit(""))) if keep else rows.filter(is_last)
    )


def _most(rows: pl.DataFrame, counts: list[pl.DataFrame], *, on: list[str]) -> pl.DataFrame:
    """Return rows with what was counted for each, the most of several ways to count; 0 where there is nothing."""
    if not counts:
        return rows.with_columns(support=pl.lit(0, pl.Int64))
    joined = [rows.join(each, on=on, how="left", maintain_order="left")["n"].fill_null(0) for each in counts]
    most = pl.DataFrame({str(place): each for place, each in enumerate(joined)}).max_horizontal()
    return rows.with_columns(support=most.cast(pl.Int64))


def _fewer(rows: pl.DataFrame, counts: list[pl.DataFrame], *, on: list[str], needed: int, kind: Kind) -> Found:
    """Return the rows of too few users."""
    found = _most(rows, counts, on=on).filter(pl.col("support") < needed)
    return found_in(found.select("row", "support", needed=pl.lit(needed)), kind=kind)


def _other(rows: pl.DataFrame, counts: list[pl.DataFrame], *, on: list[str], kind: Kind) -> Found:
    """Return the rows whose count is none of those that were counted."""
    each = [_most(rows, [one], on=on)["support"] for one in counts] or [pl.repeat(0, rows.height, eager=True)]
    is_right = np.logical_or.reduce([(rows["count"] == one).to_numpy() for one in each])
    wrong = rows.with_columns(needed=each[0]).filter(~is_right)
    return found_in(wrong.select("row", "needed", support="count"), kind=kind)


def verify_asked_entities(data: QueryLog, promise: AskedEntities, *, original: QueryLog) -> Verdict:
    """Return the verdict on texts of listed words and cells of enough users, given the log that they were made from.

    Violations are rows whose text has a part that too few users asked, rows that tell of a device, a country and a
    language what too few users' rows tell, and texts that were released more often than they were asked. A row of the
    original tells the finest of the released cells that it fits.

    >>> log = QueryLog.from_frame({"user": ["1", "2"], "query": ["black tea", "tea"]})
    >>> promise = AskedEntities(n_users=2, cell_users=2, within=None, listed=None)
    >>> released = QueryLog.from_frame({"user": ["1"], "query": ["black tea"]})
    >>> print(verify_asked_entities(released, promise, original=log).witnesses[0].in_words())
    a word, a name, an address or a phone number of a text was asked by 1 user of the original, 2 are needed (row 1)
    """
    step("counting who asked each word")
    rows = data.frame.with_row_index("row", offset=1)
    texts = rows["query"].unique()
    parts = _parts(texts)
    supports = []
    for by_python in (True, False):
        asked = _asked(original, by_python=by_python)
        supports.append(_least_asked(parts, asked, promise))
    fewest = _most(rows, supports, on=["query"]).filter(pl.col("support") < promise.n_users)
    of_words = found_in(fewest.select("row", "support", needed=pl.lit(promise.n_users)), kind="rare_part")
    verdict = Verdict(promise=promise, n_users=data.n_users, n_checked_users=data.n_users)
    return verdict.joined(of_words, _small_cells(rows, original, promise), surplus(data, original=original))


def _least_asked(parts: pl.DataFrame, asked: pl.DataFrame, promise: AskedEntities) -> pl.DataFrame:
    """Return for each text the users of its rarest part, each part in its best stretch of time."""
    period = pl.lit(0)
    if "time" in asked.columns and promise.within is not None:
        period = _AGE.dt.total_microseconds() // (parse_window(promise.within) // timedelta(microseconds=1))
    rows = asked.with_columns(period=period)
    rows = _last(rows, promise.listed).select("user", "query", "period").unique()
    theirs = _parts(rows["query"].unique(), only=parts["part"])
    counted = rows.join(theirs, on="query").group_by("part", "period").agg(n=pl.col("user").n_unique())
    most = counted.group_by("part").agg(pl.col("n").max())
    joined = parts.join(most, on="part", how="left").with_columns(pl.col("n").fill_null(0))
    return joined.group_by("query").agg(pl.col("n").min())


_WHOLE = ("name", "phone", "fax", "address")
_ADDRESSES = ("street", "post box", "zip code", "british code", "canadian code")


def _parts(texts: pl.Series, *, only: pl.Series | None = None) -> pl.DataFrame:
    """Return each `part` of each `query`; `only` are the parts that matter."""
    lists = pl.Series([parts_of(text) for text in texts], dtype=pl.List(pl.String))
    parts = pl.DataFrame({"query": texts, "part": lists}).explode("part", empty_as_null=False)
    return parts if only is None else parts.join(only.unique().to_frame("part"), on="part", how="semi")


def parts_of(text: str) -> list[str]:
    """Return the full names, addresses, phone numbers and other words of a text.

    >>> parts_of("call 212-555-0143, now!"), parts_of("?")
    (['212-555-0143', 'call', 'now'], ['?'])
    """
    taken: list[tuple[str, int, int]] = []
    for found in find_identifiers(text):
        kind = "address" if found.kind == "place" and found.rule in _ADDRESSES else str(found.kind)
        if kind == "address" and taken and taken[-1][0] == kind and not _is_said(text[taken[-1][2] : found.start]):
            taken[-1] = (kind, taken[-1][1], found.end)
        else:
            taken.append((kind, found.start, found.end))
    whole = [(start, end) for kind, start, end in taken if kind in _WHOLE]
    rest = list(text)
    for start, end in whole:
        rest[start:end] = " " * (end - start)
    words = [_bare(word) for word in "".join(rest).split(" ")]
    return [*(text[start:end] for start, end in whole), *filter(None, words)] or [text]


def _is_said(text: str) -> bool:
    return any(map(str.isalnum, text))


def _bare(word: str) -> str:
    """Return a word without what is no letter, mark or number at its ends."""
    places = [place for place, sign in enumerate(word) if _is_part(sign)]
    return word[places[0] : places[-1] + 1] if places else ""


@cache
def _is_part(sign: str) -> bool:
    # Python and Polars know code points of different years, and words were parted by what Polars knows.
    return sign.isalnum() if sign.isascii() else bool(pl.Series([sign]).str.contains(r"[\p{L}\p{M}\p{N}]").item())


_CELLS = ("device", "country", "language")
_ANYTHING = pl.lit(ANY)
_REGION = pl.col("country").str.to_uppercase().replace_strict(REGIONS, default=ANY, return_dtype=pl.String)


def _small_cells(rows: pl.DataFrame, original: QueryLog, promise: AskedEntities) -> Found:
    """Return the rows that tell what too few users' rows tell."""
    names = [name for name in _CELLS if name in rows.columns and rows[name].null_count() < rows.height]
    if not names:
        return 0, []
    cells = rows.select(names).unique()
    there = [name for name in names if name in original.columns]
    told = (pl.col(name).replace("", None).fill_null(ANY) for name in there)
    given = original.frame.select("user", *told).unique()
    given = given.with_columns(pl.lit(ANY).alias(name) for name in names if name not in there).with_row_index("given")
    # What a row may tell, ever coarser.
    steps, step = [given], given
    for name, less in (("language", _ANYTHING), ("device", _ANYTHING), ("country", _REGION), ("country", _ANYTHING)):
        if name in names:
            step = step.with_columns(less.alias(name))
            steps.append(step)
    released = [each.join(cells, on=names, how="semi") for each in steps]
    finest = pl.concat(released).unique("given", keep="first", maintain_order=True)
    counted = finest.group_by(names).agg(n=pl.col("user").n_unique())
    joined = rows.join(counted, on=names, how="left", nulls_equal=True).with_columns(support=pl.col("n").fill_null(0))
    small = joined.filter(pl.col("support") < promise.cell_users)
    return found_in(small.select("row", "support", needed=pl.lit(promise.cell_users)), kind="small_cell")


def surplus(data: QueryLog, *, original: QueryLog) -> Found:
    """Return the rows of texts that were released more often than they were asked."""
    rows = data.frame.with_row_index("row", offset=1)
    counts = [_asked(original, by_python=each).group_by("query").agg(n=pl.len()) for each in (True, False)]
    texts = rows.group_by("query").agg(pl.col("row").first(), support=pl.len().cast(pl.Int64))
    needed = _most(texts.drop("support"), counts, on=["query"])["support"]
    more = texts.with_columns(needed=needed).filter(pl.col("support") > pl.col("needed"))
    return found_in(more, kind="surplus_query")


def verify_text_rule(data: QueryLog, promise: TextRule, *, original: QueryLog | None = None) -> Verdict:
    """Return the verdict on a rule that no text breaks; with the original, also on texts that nobody asked.

    >>> released = QueryLog.from_frame({"user": ["1", "2"], "query": ["tea", "windows 11"]})
    >>> verdict = verify_text_rule(released, TextRule(least_characters=6, no_digits=True))
    >>> [witness.in_words() for witness in verdict.witnesses]
    ['a text breaks the rule on its length (row 1)', 'a text breaks the rule on its letters and digits (row 2)']
    """
    rows = data.frame.with_row_index("row", offset=1)
    texts = rows["query"].unique()
    broken: dict[Kind, list[str]] = {"text_length": [], "text_words": [], "text_letters": [], "text_contact": []}
    for text in texts:
        for kind in broken_by(text, promise):
            broken[kind].append(text)
    found = []
    for kind, each in broken.items():
        wrong = rows.filter(rows["query"].is_in(each)).select("row", support=pl.lit(1), needed=pl.lit(0))
        found.append(found_in(wrong, kind=kind))
    if promise.alone:
        several = rows.group_by("user").agg(pl.col("row").first(), support=pl.len()).filter(pl.col("support") > 1)
        found.append(found_in(several.select("row", "support", needed=pl.lit(1)), kind="joined_rows"))
    if original is not None:
        found.append(surplus(data, original=original))
    return Verdict(promise=promise, n_users=data.n_users, n_checked_users=data.n_users).joined(*found)


_WIDE = re.compile("[\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af\u0e00-\u0e7f]")
# Where case is ignored, Python takes some letters for those of ASCII that are not, as a dotless i.
_MAIL = re.compile("[A-Za-z0-9_@-](@|%(25)*40)[A-Za-z0-9_-]+[.][A-Za-z0-9_-]")
_SIGN_IN = re.compile("[^:]:[^@]+@")
_PLAIN_WORD = re.compile("[A-Za-zÄÖÜÉäöüé][A-Za-zÄÖÜÉäöüéß]+")


def broken_by(text: str, rule: TextRule) -> Iterator[Kind]:
    """Yield in what a text breaks a rule."""
    words, is_wide = text.split(" "), _WIDE.search(text) is not None
    limits = [rule.most_characters, rule.most_logogram_characters if is_wide else None]
    if len(text) < rule.least_characters or any(most is not None and len(text) > most for most in limits):
        yield "text_length"
    is_long = len(words) > rule.many_words if rule.many_words is not None else False
    n_long = sum(len(word) >= 4 for word in words)
    odd = [len(word) for word in words if not _PLAIN_WORD.fullmatch(word)]
    if (
        (is_long and (is_wide or n_long > (rule.most_long_words or 0)))
        or (rule.longest_word is not None and max(map(len, words)) > rule.longest_word)
        or (rule.longest_odd_word is not None and max(odd, default=0) > rule.longest_odd_word)
    ):
        yield "text_words"
    is_run = rule.most_digits is not None and longest_number(text) > rule.most_digits
    if is_run or (rule.no_digits and any(map(str.isdecimal, text))) or (rule.no_at and "@" in text):
        yield "text_letters"
    if rule.no_contacts and (_MAIL.search(text) or _SIGN_IN.search(text)):
        yield "text_contact"


def longest_number(text: str) -> int:
    """Return how many digits the longest run has once all but letters and digits is gone, without numbers of articles.

    >>> [longest_number(text) for text in ("090/90-2", "5555 3235", "issn 0378-5955", "4006381333931 x 66")]
    [6, 8, 0, 2]
    """
    kept = text.split(" ")
    for place, word in enumerate(kept):
        is_shaped = re.fullmatch("[0-9]{4}-?[0-9]{3}[0-9xX]", word) is not None
        if is_shaped and _is_checked(word.replace("-", ""), weights=range(8, 0, -1), by=11):
            kept[place] = ""
            break
    left = " ".join(kept)
    runs = re.split("[^0-9]+", "".join(c for c in left if c.isascii() and c.isalnum()))
    short, numbers = [run for run in runs if len(run) <= 2], [run for run in runs if len(run) > 2]
    if len(numbers) == 1 and len(numbers[0]) == 13 and numbers[0] in left:
        numbers = [] if _is_checked(numbers[0], weights=(1, 3) * 7, by=10) else numbers
    return max(map(len, [*short, *numbers]), default=0)


def _is_checked(digits: str, *, weights: range | tuple[int, ...], by: int) -> bool:
    values = [10 if digit in "xX" else int(digit) for digit in digits]
    return sum(value * weight for value, weight in zip(values, weights, strict=False)) % by == 0
