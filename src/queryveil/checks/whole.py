"""Check all that lies in a release folder against its manifest: files, columns, times, ids, counts and texts.

No promise covers whatever else stands in the folder, and whoever hands the folder on hands it out too. What is wrong is
a fault, in one line that names files, columns and rows, and never a text or an id of a user.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec
import polars as pl

from queryveil.checks._statements import n_overlooked, statements
from queryveil.checks.plink import odd_weights
from queryveil.checks.texts import faults_of_texts
from queryveil.checks.tokens import folded_all, lowered_all, number, terms_of
from queryveil.checks.verdict import BESIDE, count
from queryveil.data import KINDS, ROLES, Format, Groups, QueryLog, Tallies, Transactions, count_kinds
from queryveil.errors import printable
from queryveil.guarantees import DifferentialPrivacy, Guarantee, KdeltaAnonymity, KmAnonymity, NoPromise, parse_window
from queryveil.release import EVENTS, MANIFEST, SIGNATURE, Contents, DataFile, Ids, Manifest, Release, TimeDetail
from queryveil.release.manifest import n_rows_left

REPORTS = ("report.html", "report.md", "report.json", "report.pdf")
"""What `report` writes into a release folder."""
_MAY_LIE_THERE = (*REPORTS, SIGNATURE)
_N_NAMED, _SIGNATURE_BYTES = 10, 64
_FIXED = (Format.AOL, Format.EXCITE, Format.UBI)
"""Formats that have all their columns always, empty where the release has none."""
_KEYED, _HASHES = "^[0-9a-f]{32}$", "^[0-9a-f]{16}( [0-9a-f]{16})*$"
_COLUMNS = {"transactions": {"id", "items"}, "queries": {"query", "count"}, "clicks": {"query", "url", "count"}}
_MORE_CLICKS = {"device", "country", "views", "rank"}
"""What exact counts of clicks may have beside these."""
_RENAMED = re.compile(r"(_in_file|_in_log)+$")
_METHODS: dict[str, tuple[str, ...]] = {
    "km": ("k", "m", "window"),
    "clump": ("k",),
    "partition": ("k",),
    "kdelta": ("k", "delta", "same_texts", "max_distance"),
    "plink": ("p", "strict"),
    "swap": ("k", "l"),
    "google_2024": ("n_users", "n_row_users", "within", "rows_within"),
    "ec_2026": ("n_users", "cell_users", "within", "listed"),
    "brave_wdp": (
        *("most_characters", "most_logogram_characters", "many_words", "most_long_words"),
        *("most_digits", "longest_word", "longest_odd_word"),
    ),
    "mozilla": ("least_characters",),
}
"""The settings that the promise of a method repeats."""


def faults_of(release: Release) -> list[str]:
    """Return what is wrong with the release beside its promise; nothing is looked at of one that was not read."""
    data = release.manifest.data
    if release.contents is None or data is None:
        return []
    found = [*faults_beside(release.contents, release.manifest), *_columns(release, data)]
    if isinstance(release.promise, DifferentialPrivacy):
        # Noise has its own rules for the rest, which are stricter.
        return found
    found += [fault for rule in (_times, _ids, _events, _counts, _texts) for fault in rule(release, data)]
    found += faults_of_texts(release.data, release.manifest)
    if isinstance(release.data, Groups):
        is_odd = odd_weights(release.data, release.manifest.parameters)
        found += _rows(is_odd, f"{data.name}: weights do not agree with holders, members and size in")
    return found


def faults_beside(contents: Contents, manifest: Manifest) -> list[str]:
    """Return what is wrong in a folder beside the rows of its data: other files, hidden values, and what is said."""
    found = list(_files(contents, manifest))
    if isinstance(manifest.promise, DifferentialPrivacy):
        return found
    if n_more := n_overlooked(contents.manifest, manifest):
        found.append(f"{MANIFEST} has {count(n_more, 'key')} twice, or that no release has")
    return [*found, *_settings(manifest), *statements(manifest)]


def notes_of(contents: Contents | None) -> list[str]:
    """Return a note on the reports in the folder."""
    found = [] if contents is None else [name for name in REPORTS if contents.others.get(name) == "file"]
    return [BESIDE + ", ".join(found)] if found else []


def _named(name: str) -> str:
    r"""Return the name of a file or column for a message: in one line, and not too long.

    >>> _named("a\x1b[2Jb"), len(_named("x" * 1000))
    ('a\\u001b[2Jb', 63)
    """
    shown = printable(name)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def _files(contents: Contents, manifest: Manifest) -> Iterator[str]:
    strangers = [(name, kind) for name, kind in contents.others.items() if name not in _MAY_LIE_THERE or kind != "file"]
    for name, kind in strangers[:_N_NAMED]:
        yield f"{_named(name)} is a {kind or 'file'} that {MANIFEST} does not list"
    if len(strangers) > _N_NAMED:
        yield f"the folder has {len(strangers) - _N_NAMED:,} more that {MANIFEST} does not list"
    if contents.signature is not None and len(contents.signature) != _SIGNATURE_BYTES:
        yield f"{SIGNATURE} is no signature, which has {_SIGNATURE_BYTES} bytes"
    if manifest.clicks is not None and manifest.data is not None and manifest.data.kind != "queries":
        yield f"{MANIFEST} lists {_named(manifest.clicks.name)}, and such a release has no counts of clicks"
    for name, shape in contents.shapes.items():
        if shape.n_hidden:
            yield f"{_named(name)} holds {count(shape.n_hidden, 'value')} that no column has"


def _columns(release: Release, file: DataFile) -> Iterator[str]:
    assert release.contents is not None
    if isinstance(release.data, QueryLog):
        frame = release.data.frame
        said, extra = faults_of_columns(release.contents, release.manifest, frame.columns, has_rows=frame.height > 0)
        yield from said
        shape = release.contents.shapes.get(file.name)
        # An AOL file need not have a header.
        if frame.height and file.format is Format.AOL and shape and bool(shape.columns) is not file.has_header:
            yield f"{MANIFEST} says of {_named(file.name)} that it has {'a' if file.has_header else 'no'} header"
        for name in extra:
            yield from _rows(frame[name].is_not_null(), f"{file.name}: column {name} should be empty, and is not in")
        return
    clicks = None if release.manifest.clicks is None else release.manifest.clicks.name
    for name, shape in release.contents.shapes.items():
        kind = "clicks" if name == clicks else file.kind
        expected = _COLUMNS.get(kind, set(shape.columns)) if shape.columns else set()
        if kind == "clicks" and not release.promise.is_noisy and shape.columns:
            expected = expected | (_MORE_CLICKS & set(shape.columns))
        yield from _compared(name, Counter(shape.columns), Counter(expected))


def faults_of_columns(
    contents: Contents, manifest: Manifest, columns: Sequence[str], *, has_rows: bool
) -> tuple[list[str], list[str]]:
    """Return what is wrong with the columns of a log, and those that must be empty as its format has them always."""
    assert manifest.data is not None
    file, kept = manifest.data.name, manifest.columns.kept
    # Events bring the number of each search along.
    has_events = EVENTS in kept and manifest.data.format is Format.UBI
    kept = tuple(name for name in kept if name != EVENTS) if has_events else kept
    roles = {"user", "query", *(name for name in kept if name in ROLES), *(("search",) if has_events else ())}
    if manifest.columns.time is not TimeDetail.DROP:
        roles.add("time")
    is_kdelta = manifest.method == "kdelta" or isinstance(manifest.promise, KdeltaAnonymity)
    if (is_kdelta or manifest.promise.is_noisy) and "url" in columns:
        roles.add("url")
    there = {name for name in columns if name in ROLES}
    if manifest.data.format in _FIXED:
        absent = sorted({*roles, *kept} - {*columns, "time"}) if has_rows else []
        said = [f"{file} has no column {_named(name)}, which {MANIFEST} states" for name in absent]
        return said, sorted(there - roles)
    absent = sorted(role for role in contents.absent if role not in roles)
    # A file without rows need not tell its columns.
    compared = _compared(file, Counter(there), Counter(roles if has_rows else roles & there))
    # Only the names of others may have been changed, or a column could pass for one of a role that no rule looks at.
    others = Counter(_plain_name(name) for name in columns if name not in ROLES)
    named = Counter(_plain_name(name) for name in kept if name not in ROLES)
    more = _compared(file, others, named if has_rows else named & others)
    return [*(f"{file} has no column {name}, which {MANIFEST} names" for name in absent), *compared, *more], []


def _compared(file: str, there: Counter[str], expected: Counter[str]) -> Iterator[str]:
    for name in sorted(there - expected)[:_N_NAMED]:
        yield f"{_named(file)} has a column that {MANIFEST} does not list: {_named(name)}"
    for name in sorted(expected - there)[:_N_NAMED]:
        yield f"{_named(file)} has no column {_named(name)}, which {MANIFEST} states"


def _plain_name(name: str) -> str:
    """Return the name of a column that may have been changed where two had the same, or where it cannot be written."""
    return _RENAMED.sub("", re.sub("[\0\t\n\r]", " ", name))


def finer_than(times: pl.Series, detail: TimeDetail, *, window: str | None = None) -> pl.Series:
    """Return which times are more exact than they may be; shared ones are days, or starts of windows.

    >>> from datetime import datetime
    >>> finer_than(pl.Series([datetime(2026, 3, 4), datetime(2026, 3, 4, 5)]), TimeDetail.DAY).to_list()
    [False, True]
    """
    seconds = {TimeDetail.DAY: 86_400, TimeDetail.SHARED: 86_400, TimeDetail.HOUR: 3_600}.get(detail)
    if seconds is None:
        return pl.repeat(False, len(times), eager=True)
    if detail is TimeDetail.SHARED and window is not None:
        seconds = parse_window(window) // timedelta(seconds=1)
    return (times.dt.epoch("us") % (seconds * 1_000_000) != 0).fill_null(value=False)


def _times(release: Release, file: DataFile) -> Iterator[str]:
    detail = release.manifest.columns.time
    if isinstance(release.data, QueryLog) and "time" in release.data.columns:
        said = f"{file.name}: times are finer than {MANIFEST} says ({detail}) in"
        window = release.promise.time_unit or release.promise.window
        yield from _rows(finer_than(release.data.frame["time"], detail, window=window), said)


def odd_ids(ids: pl.Series, kind: Ids, *, n_ids: int | None = None) -> pl.Series:
    """Return which ids do not have the form that is stated; fresh ones are the numbers from 1 on, none left out.

    `n_ids` is their number, where these are not all of them.

    >>> odd_ids(pl.Series(["2", "1", "02", "persona7"]), Ids.FRESH).to_list()
    [False, False, True, True]
    """
    if kind is Ids.KEEP:
        return pl.repeat(False, len(ids), eager=True)
    if kind is Ids.KEYED:
        return ~ids.str.contains(_KEYED)
    numbers, most = ids.cast(pl.Int64, strict=False), ids.n_unique() if n_ids is None else n_ids
    is_number = (numbers.cast(pl.String) == ids) & numbers.is_between(1, most)
    return ~is_number.fill_null(value=False)


def _ids(release: Release, file: DataFile) -> Iterator[str]:
    data, kind = release.data, release.manifest.columns.ids
    if isinstance(data, QueryLog) and file.format is not Format.TRANSACTIONS:
        # A plain file of items has no ids but the numbers of its lines.
        said = f"{file.name}: user ids are not as {MANIFEST} says ({kind}) in"
        yield from _rows(odd_ids(data.frame["user"], kind), said)
        yield from _too_long(release, data, file)
    elif isinstance(data, Transactions | Groups):
        ids = data.frame["id" if isinstance(data, Transactions) else "group"].cast(pl.String)
        is_odd = odd_ids(ids, Ids.FRESH) | ids.is_duplicated()
        yield from _rows(is_odd, f"{file.name}: ids are not the numbers from 1 on in")


def _too_long(release: Release, data: QueryLog, file: DataFile) -> Iterator[str]:
    """Yield where an id has more rows than a mini-session may have: as many as the settings say, and one without."""
    if release.manifest.method == "ec_2026":
        stated = release.manifest.parameters.get("session_rows")
        most = min(max(stated, 1), data.n_rows) if isinstance(stated, int) else 1
        said = f"{file.name}: ids have more rows than a mini-session, as {MANIFEST} states it, in"
        yield from _rows(data.frame.select(pl.len().over("user"))["len"] > most, said)


def _events(release: Release, file: DataFile) -> Iterator[str]:
    """Yield where released events are not as the manifest says, or where it counts some and there are none."""
    counts, data = release.manifest.events, release.data
    kept = {} if counts is None else {kind: n for kind, n in counts.kept.items() if n}
    if not isinstance(data, QueryLog) or data.events is None:
        if kept:
            yield f"{MANIFEST} counts events that were kept, and {_named(file.name)} has none"
        return
    there = count_kinds(data.events)
    for kind in KINDS:
        n_said, n_there = kept.get(kind, 0), there.get(kind, 0)
        if n_said != n_there:
            yield f"{MANIFEST} says {count(n_said, f'{kind} event')}, and there are {n_there:,} in the files"
    events, detail = data.events, release.manifest.columns.time
    if "search" in data.columns:
        is_odd = odd_ids(data.frame["search"].fill_null(""), Ids.FRESH)
        yield from _rows(is_odd, f"{file.name}: searches are not the numbers from 1 on in")
        of_one = data.frame.group_by("search").agg(pl.col("user").n_unique())
        if (of_one["user"] > 1).any():
            yield f"{_named(file.name)} has searches of several ids, which tells that they are of one person"
    if events["search"].null_count():
        yield f"{_named(file.name)} has events of no search"
    is_free = detail in (TimeDetail.DROP, TimeDetail.SHARED)
    too_fine = events["time"].is_not_null() if is_free else finer_than(events["time"], detail)
    if too_fine.any():
        n_fine = count(int(too_fine.sum()), "event")
        yield f"{_named(file.name)}: {n_fine} with a time finer than {MANIFEST} says ({detail})"


def other_events(release: Release, original: object) -> list[str]:
    """Return where the manifest counts other events than the original has."""
    counts = release.manifest.events
    if release.contents is None or counts is None or not isinstance(original, QueryLog):
        return []
    there, said = count_kinds(original.events), counts.before()
    numbers = {kind: (said.get(kind, 0), there.get(kind, 0)) for kind in KINDS}
    return [
        f"{MANIFEST} says {count(n_said, f'{kind} event')} before, and the original has {n_there:,}"
        for kind, (n_said, n_there) in numbers.items()
        if n_said != n_there
    ]


def _counts(release: Release, _: DataFile) -> Iterator[str]:
    data, manifest = release.data, release.manifest
    if isinstance(data, QueryLog):
        yield from other_sizes(manifest, row=data.n_rows, user=data.n_users)
    elif isinstance(data, Groups):
        yield from other_sizes(manifest, group=data.n_groups, member=data.n_members)
        yield from _other_measure(manifest, "groups", data.n_groups)
        yield from _other_measure(manifest, "average_group_size", data.n_members / max(1, data.n_groups))
    elif isinstance(data, Tallies):
        yield from other_sizes(manifest, query=data.n_queries, user=0)
        n_counted, n_said = int(data.frame["count"].sum()), n_rows_left(manifest)
        if n_counted != n_said:
            yield f"{MANIFEST} leaves {n_said:,} rows to be counted, and the counts make {n_counted:,}"
    elif isinstance(data, Transactions):
        # Of queries a person can have several, and the files do not tell whose they are.
        n, n_said = data.n_transactions, manifest.counts.n_users_after
        n_users = min(n, n_said) if manifest.parameters.get("unit") == "query" else n
        yield from other_sizes(manifest, transaction=n, user=n_users)
        yield from _other_measure(manifest, "average_length", data.n_items / max(1, n))


def _other_measure(manifest: Manifest, name: str, there: float) -> Iterator[str]:
    said = manifest.measures.get(name, there)
    # Measures are rounded.
    if not abs(said - there) <= 0.001:
        yield f"{MANIFEST} measures {said:g} {name.replace('_', ' ')}, and there are {there:,.6g} in the files"


def other_sizes(manifest: Manifest, **there: int) -> list[str]:
    """Return where the manifest states other numbers of rows and users than there are, both by what they are called."""
    stated = (manifest.counts.n_rows_after, manifest.counts.n_users_after)
    return [
        f"{MANIFEST} says {count(said, noun)}, and there are {n:,} in the files"
        for said, (noun, n) in zip(stated, there.items(), strict=True)
        if said != n
    ]


def _settings(manifest: Manifest) -> Iterator[str]:
    """Yield where the promise and the settings that it was made with differ."""
    promise, parameters, required = manifest.promise, manifest.parameters, _METHODS.get(manifest.method, ())
    if isinstance(promise, NoPromise):
        return
    fields = msgspec.structs.asdict(promise)
    for name, promised in fields.items():
        if name in parameters or name in required or (name == "window" and promised):
            said = parameters.get(name, "nothing")
            if name == "delta" and fields.get("same_texts") is True:
                # Each text is a cluster of its own then, whatever was asked for.
                said = 0.0
            if said != promised or isinstance(said, bool) is not isinstance(promised, bool):
                yield f"{MANIFEST} promises {name}={promised}, and its settings say {_named(str(said))}"
    is_of_days = bool(promise.time_unit) or (isinstance(promise, KdeltaAnonymity) and promise.same_days)
    time = manifest.columns.time
    if (time is TimeDetail.SHARED and not (is_of_days or promise.window)) or (is_of_days and not time.is_covered):
        yield f"{MANIFEST} says of times that they are {time}, and promises something else of them"
    if isinstance(promise, KmAnonymity) and parameters.get("taxonomy") not in (None, False) and not promise.items:
        yield f"{MANIFEST} promises terms, and its settings say that they are nodes of a taxonomy"


def untidy(texts: pl.Series, promise: Guarantee, *, method: str) -> pl.Series:
    """Return which texts differ in case or form from how a release has them, so that the way of writing marks a person.

    By Python's tables of letters and by those of Polars: each may know letters that the other does not.
    """
    nothing = pl.repeat(False, len(texts), eager=True)
    if method == "token_hash":
        return ~texts.str.contains(_HASHES)
    if isinstance(promise, KmAnonymity):
        if promise.items:
            return nothing
        lowered = texts.str.to_lowercase().str.normalize("NFC").str.replace_all(r"[^\p{L}\p{M}\p{Nd}]+", " ")
        suspects = texts != lowered.str.strip_chars(" ")
        by_terms = [" ".join(terms_of(text)) if odd else text for text, odd in zip(texts, suspects, strict=True)]
        return suspects & (texts != pl.Series(by_terms, dtype=pl.String))
    if method in ("kdelta", "query_threshold", "plink", "ec_2026", "ddg_2026", "brave_wdp", "mozilla"):
        blanks = texts.str.replace_all(r"[\s\x00\x1c-\x1f]+", " ").str.strip_chars(" ")
        return (blanks != lowered_all(blanks)) & (blanks != folded_all(blanks))
    return nothing


def _texts(release: Release, file: DataFile) -> Iterator[str]:
    data, method, promise = release.data, release.manifest.method, release.promise
    said = f"{file.name}: texts differ in case or form from how they are released in"
    if isinstance(data, QueryLog):
        texts = number(data.frame["query"])
        yield from _rows(untidy(texts.distinct, promise, method=method).gather(texts.codes), said)
        if method == "km" and release.manifest.parameters.get("repeats") == "once":
            said = f"{file.name}: an id has the same text twice in"
            yield from _rows(data.frame.select("user", "query").is_duplicated(), said)
    elif isinstance(data, Groups) and release.manifest.parameters.get("items") is not True:
        groups = data.frame.select("terms").with_row_index("row")
        terms = groups.explode("terms", empty_as_null=False)
        # Written in two ways a term would be two, each held by half of those who have it.
        is_double = terms.with_columns(terms=folded_all(terms["terms"])).is_duplicated()
        odd = terms["row"].filter(is_double | untidy(terms["terms"], promise, method=method))
        yield from _rows(groups["row"].is_in(odd.unique().implode()), said)


def _rows(is_wrong: pl.Series, said: str) -> Iterator[str]:
    """Yield one line if rows are wrong, with their number and the first of them."""
    if n := int(is_wrong.sum()):
        first = int(is_wrong.arg_max() or 0) + 1
        yield f"{said} {count(n, 'row')}" + (f" (row {first})" if n == 1 else f" (the first is row {first})")
