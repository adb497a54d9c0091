"""Data of releases with other rows, checksums and counts made to fit, and whether the release is still true then."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from tests.hostile.malformed_logs import SECRET
from tests.hostile.manifest_truths import Truth
from tests.hostile.releases import (
    KEY,
    Base,
    Rows,
    fit,
    holds_kdelta,
    holds_km,
    holds_transactions,
    read_rows,
    write_rows,
)
from tests.hostile.tampered_manifests import Tampering

_EDITABLE = ("csv", "tsv", "jsonl", "parquet", "aol")


def _copied(rows: Rows) -> Rows:
    return [dict(row) for row in rows]


Edit = Callable[[Rows, dict[str, str], random.Random], None]


def _unique(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    rng.choice(rows)[names["query"]] = SECRET


def _unique_beside(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    row = rng.choice(rows)
    row[names["query"]] = f"{row[names['query']]} {SECRET}"


def _dropped(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    del rows[rng.randrange(len(rows))]


def _doubled(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    rows.append(dict(rng.choice(rows)))


def _all_doubled(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    rows += _copied(rows)


def _exchanged(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    one, other = rng.sample(rows, 2)
    one[names["user"]], other[names["user"]] = other[names["user"]], one[names["user"]]


def _given(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    one, other = rng.sample(rows, 2)
    one[names["user"]] = other[names["user"]]


def _new_user(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    n_users = len({row[names["user"]] for row in rows})
    rows.append(rng.choice(rows) | {names["user"]: str(n_users + 1)})


def _user_gone(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    gone = rng.choice(rows)[names["user"]]
    rows[:] = [row for row in rows if row[names["user"]] != gone]


def _shuffled(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    rng.shuffle(rows)


def _renumbered(rows: Rows, names: dict[str, str], rng: random.Random) -> None:
    ids = sorted({str(row[names["user"]]) for row in rows})
    others = rng.sample(ids, len(ids))
    for row in rows:
        row[names["user"]] = dict(zip(ids, others, strict=True))[str(row[names["user"]])]


ROW_EDITS: dict[str, Edit] = {
    "a row of a unique term": _unique,
    "a unique term in a row": _unique_beside,
    "a row dropped": _dropped,
    "a row doubled": _doubled,
    "all rows doubled": _all_doubled,
    "two rows exchanged between users": _exchanged,
    "a row given to another user": _given,
    "a row of a new user": _new_user,
    "a user gone": _user_gone,
    "rows in another order": _shuffled,
    "users renumbered": _renumbered,
}


def _is_kept(rows: Rows, said: dict[str, Any]) -> bool:
    """Count the promise again, and look at the ids."""
    promise, names = said["promise"], said["data"]["names"]
    users = {str(row[names["user"]]) for row in rows}
    if said["columns"]["ids"] == "fresh" and users != {str(i + 1) for i in range(len(users))}:
        return False
    if promise["model"] == "km":
        return holds_km(rows, names, promise)
    return holds_kdelta(rows, names, promise, said["query_clusters"])


def edited_logs(base: Base, rng: random.Random, n: int) -> Iterator[Tampering]:
    """Yield a log with other rows, once with the counts as they were and once with all counts made to fit."""
    said, form = base.manifest, base.manifest["data"]["format"]
    if said["data"]["kind"] != "log" or said["promise"]["model"] not in ("km", "kdelta") or form not in _EDITABLE:
        return
    data, names = base.data.read_bytes(), said["data"]["names"]
    for name, edit in ROW_EDITS.items():
        for number in range(n):
            rows = read_rows(data, form)
            n_users = len({row[names["user"]] for row in rows})
            n_rows = len(rows)
            edit(rows, names, rng)
            more_users = len({row[names["user"]] for row in rows}) - n_users
            text = write_rows(rows, data, form)
            if len(rows) != n_rows or more_users:
                yield edited(base, "rows edited, counts as they were", name, base.manifest, text, "false")
            fitted = base.manifest
            truth = _fit_counts(fitted, len(rows) - n_rows, more_users, by_removal=number % 2 == 0)
            _fit_texts(fitted, rows)
            if not _is_kept(rows, fitted):
                truth = "false"
            if truth == "original" and base.original is None:
                truth = "true"
            yield edited(base, "rows edited, all counts fit", name, fitted, text, truth)


def _fit_texts(said: dict[str, Any], rows: Rows) -> None:
    """Make the counts of texts fit; those of one id are one person's in km, others are counted beside the original."""
    if not said.get("texts"):
        return
    names, users = said["data"]["names"], defaultdict[str, list[Any]](list)
    for row in rows:
        users[str(row[names["query"]] or "")].append(row[names["user"]])
    of_one = [each for text, each in users.items() if text and len(set(each)) == 1]
    said["texts"]["n_texts"] = len([text for text in users if text])
    if said["method"] == "km":
        said["texts"] |= {"n_of_one_person": len(of_one), "n_rows_of_one_person": sum(map(len, of_one))}


def _fit_counts(said: dict[str, Any], more_rows: int, more_users: int, *, by_removal: bool) -> Truth:
    """Make the counts fit; what was said of the original is false then, unless rows were only left out."""
    counts = said["counts"]
    counts["n_rows_after"] += more_rows
    counts["n_users_after"] += more_users
    of_rows = [name for name in said["removed"] if "rows" in name and name != "bad_rows_skipped"]
    if more_rows < 0 and by_removal and of_rows:
        said["removed"][of_rows[-1]] -= more_rows
        return "true"
    counts["n_rows_before"] += more_rows
    counts["n_users_before"] = max(counts["n_users_before"], counts["n_users_after"])
    return "original" if more_rows else "true"


def edited(base: Base, kind: str, name: str, said: dict[str, Any], data: bytes, truth: Truth) -> Tampering:
    why = "every number fits, and the promise was counted again" if truth == "true" else ""
    return Tampering(
        kind=kind, base=base, name=name, truth=truth, why=why, apply=lambda folder: fit(folder, said, data)
    )


def _with(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def odd_values(base: Base, rng: random.Random) -> Iterator[Tampering]:
    """Yield logs with a value that no release of this kind has: another form of a text, an id or a time."""
    said, form = base.manifest, base.manifest["data"]["format"]
    if said["data"]["kind"] != "log" or form not in _EDITABLE or said["promise"]["model"] not in ("km", "kdelta", "dp"):
        return
    data, names = base.data.read_bytes(), said["data"]["names"]
    # A tab or a line end would be another field or row in some formats.
    texts: dict[str, Callable[[Any], Any]] = {
        "upper case": lambda text: text.upper(),
        "one letter in upper case": lambda text: text[:1].upper() + text[1:],
        "letters decomposed": lambda text: text.replace("e", "e\u0308", 1),
        "full width": lambda text: text.replace("e", "\uff45", 1),
        "punctuation": lambda text: text + "!",
        "a soft hyphen": lambda text: text[:2] + "\u00ad" + text[2:],
        "a text of somebody": _with(SECRET.upper()),
    }
    for name, change in texts.items():
        rows = read_rows(data, form)
        row = rng.choice([row for row in rows if row[names["query"]]])
        row[names["query"]] = change(row[names["query"]])
        # What a noisy count is of may have any signs; that nobody asked it shows beside the original.
        may_be = said["promise"]["model"] == "dp" and name in ("full width", "punctuation", "a soft hyphen")
        truth: Truth = "original" if may_be else "false"
        yield edited(base, "texts in another form", name, base.manifest, write_rows(rows, data, form), truth)
    if said["columns"]["ids"] != "keep":
        for name, value in {
            "an original id": "persona00",
            "a leading zero": "01",
            "negative": "-1",
            "a blank": " ",
            "far": "999",
        }.items():
            rows = read_rows(data, form)
            rng.choice(rows)[names["user"]] = value
            yield edited(base, "ids of another form", name, base.manifest, write_rows(rows, data, form), "false")
    if said["columns"]["time"] in ("day", "hour") and form != "parquet":
        for name, value in {
            "a second later": "2006-03-01 00:00:01",
            "with a zone": "2006-03-01T00:00:00+00:30",
            "nonsense": SECRET,
        }.items():
            rows = read_rows(data, form)
            rng.choice(rows)[names["time"]] = value
            yield edited(base, "times finer than stated", name, base.manifest, write_rows(rows, data, form), "false")


def edited_columns(base: Base) -> Iterator[Tampering]:
    """Yield data with columns added, renamed or left out."""
    said, form = base.manifest, base.manifest["data"]["format"]
    if form not in _EDITABLE or form == "aol" or said["data"]["kind"] == "groups":
        return
    data = base.data.read_bytes()
    first = list(read_rows(data, form)[0])
    changes: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "added": lambda row: row | {"realname": SECRET},
        "added, empty": lambda row: row | {"realname": None},
        "added under a name of a role": lambda row: row | {"url_in_file": SECRET},
        "added beside the queries": lambda row: row | {"query_in_file": SECRET},
        "added beside the times": lambda row: row | {"time_in_log_in_file": SECRET},
        "first one renamed": lambda row: {
            ("realname" if key == first[0] else key): value for key, value in row.items()
        },
        "last one left out": lambda row: {key: row[key] for key in first[:-1]},
        "added with a name of two lines": lambda row: row | {"a\nb": SECRET},
    }
    for name, change in changes.items():
        if "two lines" in name and form == "tsv":
            continue
        rows = [change(row) for row in read_rows(data, form)]
        yield edited(base, "columns changed", name, base.manifest, write_rows(rows, data, form), "false")
    if form == "jsonl":
        rows = read_rows(data, form)
        rows[0]["realname"] = SECRET
        yield edited(base, "columns changed", "a key in one line", base.manifest, write_rows(rows, data, form), "false")


def edited_transactions(base: Base, rng: random.Random, n: int) -> Iterator[Tampering]:
    said, form = base.manifest, base.manifest["data"]["format"]
    if said["data"]["kind"] != "transactions":
        return
    data = base.data.read_bytes()
    for _ in range(n):
        for name in ("unique item", "dropped", "doubled", "items turned round", "an item less", "all doubled"):
            rows = read_rows(data, form)
            lists = [row["items"] if isinstance(row["items"], list) else row["items"].split("|") for row in rows]
            at = rng.randrange(len(rows))
            if name == "unique item":
                lists[at] = [SECRET, *lists[at][1:]]
            elif name == "items turned round":
                lists[at] = lists[at][::-1]
            elif name == "an item less":
                lists[at] = lists[at][1:]
            elif name == "dropped":
                del lists[at]
            else:
                lists += [lists[at]] if name == "doubled" else lists
            is_list = isinstance(rows[0]["items"], list)
            ids = [row["id"] for row in rows][: len(lists)]
            kind = type(ids[0])
            ids += [kind(i) for i in range(len(ids) + 1, len(lists) + 1)]
            if name == "dropped":
                ids = [kind(i + 1) for i in range(len(lists))]
            made = [
                {"id": one, "items": items if is_list else "|".join(items)}
                for one, items in zip(ids, lists, strict=True)
            ]
            text = write_rows(made, data, form)
            if len(made) != len(rows):
                yield edited(base, "rows edited, counts as they were", name, base.manifest, text, "false")
            fitted = base.manifest
            fitted["counts"]["n_rows_after"] = fitted["counts"]["n_users_after"] = len(made)
            is_more = len(made) > fitted["counts"]["n_users_before"]
            fitted["counts"]["n_users_before"] = max(len(made), fitted["counts"]["n_users_before"])
            fitted["measures"]["average_length"] = round(sum(map(len, lists)) / max(1, len(lists)), 3)
            truth: Truth = "original" if is_more else "true"
            if not holds_transactions(made, said["promise"]["k"]):
                truth = "false"
            yield edited(base, "rows edited, all counts fit", name, fitted, text, truth)


def edited_counts(base: Base) -> Iterator[Tampering]:
    """Yield noisy counts that are none, or stand in another order."""
    said, form = base.manifest, base.manifest["data"]["format"]
    if said["promise"]["model"] != "dp" or said["data"]["kind"] != "queries":
        return
    data, least = base.data.read_bytes(), min(part["threshold"] for part in said["noise"] if part["what"] == "queries")

    def last(value: Any) -> Callable[[Rows], None]:
        return lambda rows: rows[-1].update(count=value)

    edits: dict[str, Callable[[Rows], None]] = {
        "below the threshold": last(least - 1),
        "negative": last(-5),
        "a fraction": last("3.5" if form == "csv" else 3.5),
        "other order": lambda rows: rows.reverse(),
        "a query twice": lambda rows: rows.append(dict(rows[-1])),
        "a query in upper case": lambda rows: rows[-1].update(query=SECRET.upper()),
        "a query with two blanks": lambda rows: rows[-1].update(query="tea  pot"),
        "an empty query": lambda rows: rows[-1].update(query=""),
        "a query less": lambda rows: rows.__delitem__(-1),
    }
    for name, edit in edits.items():
        rows = read_rows(data, form)
        edit(rows)
        if form == "parquet" and name == "a fraction":
            continue
        yield edited(base, "noisy counts edited", name, base.manifest, write_rows(rows, data, form), "false")


def edited_swaps(base: Base) -> Iterator[Tampering]:
    if base.manifest["promise"]["model"] != "swap":
        return
    assert base.original is not None
    said, data = base.manifest, base.data.read_bytes()
    issued = {row["query"]: row["user"] for row in read_rows(base.original.read_bytes(), "csv")}
    for at in range(len(read_rows(data, "csv"))):
        rows = read_rows(data, "csv")
        own = hmac.new(KEY, issued[rows[at]["query"]].encode(), hashlib.sha256).hexdigest()[:32]
        rows[at]["user"] = own
        yield edited(
            base,
            "rows edited, all counts fit",
            "a query of one's own",
            _sized(said, rows),
            write_rows(rows, data, "csv"),
            "false",
        )
        rows = read_rows(data, "csv")
        rows[at]["query"] = SECRET
        _fit_texts(said, rows)
        yield edited(
            base, "rows edited, all counts fit", "a query nobody issued", said, write_rows(rows, data, "csv"), "false"
        )


def _sized(said: dict[str, Any], rows: Rows) -> dict[str, Any]:
    fitted: dict[str, Any] = json.loads(json.dumps(said))
    fitted["counts"]["n_users_after"] = len({row["user"] for row in rows})
    return fitted
