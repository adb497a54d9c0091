"""What became of ids, times and the other columns."""

from __future__ import annotations

from queryveil.columns import Ids, TimeDetail
from queryveil.guarantees import DifferentialPrivacy
from queryveil.release import Manifest
from queryveil.report.blocks import Bullets, Section, Table
from queryveil.report.value import Report

_IDS = {
    Ids.FRESH: "numbers drawn by chance; nobody keeps a list",
    Ids.KEYED: "pseudonyms under a secret key, the same in every release under it",
    Ids.KEEP: "the original ids",
}
_TIMES = {
    TimeDetail.DAY: "cut to the day",
    TimeDetail.HOUR: "cut to the hour",
    TimeDetail.KEEP: "exact",
    TimeDetail.DROP: "not released",
}
_QUERIES = {
    "km": "terms were deleted until the promise held",
    "kdelta": "rows were left out and made up, and queries of one kind exchanged, until the promise held",
    "clump": "only terms of the taxonomy, as lists, moved up until lists were equal",
    "partition": "only terms of the taxonomy, as sets, moved up until sets were equal",
    "plink": "only terms of the taxonomy, as one profile for each group",
    "dp": "in lower case with single blanks, where enough people asked the same, noise included",
    "swap": "as asked, without recognised identifiers, beside the id of somebody else",
    "pseudonymise": "as asked",
    "token_hash": "each term replaced by a code under a secret key",
    "query_threshold": "as asked, where enough people asked the same",
}
_NOT_COVERED = "released as it is, not covered by the promise"


def columns(report: Report) -> Section:
    """Give the column policy as a table."""
    rows = tuple(_rows(report.manifest, released=report.columns))
    title = "What became of the columns"
    return Section(
        name="columns", title=title, blocks=(Table(columns=("column", "in the release"), rows=rows, caption=""),)
    )


def warnings(report: Report) -> Section | None:
    """Give the warnings of the manifest; none where there are none."""
    found = report.manifest.warnings
    if not found:
        return None
    return Section(name="warnings", title="Warnings", blocks=(Bullets(items=tuple(map(_sentence, found))),))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _rows(manifest: Manifest, *, released: tuple[str, ...]) -> list[tuple[str, str]]:
    if isinstance(manifest.promise, DifferentialPrivacy):
        return _noisy_rows(manifest, released=released)
    policy = manifest.columns
    has_users = "user" in released
    rows = [
        ("user", _IDS[policy.ids] if has_users else "not released"),
        ("query", _queries(manifest)),
        ("time", _times(manifest)),
    ]
    rows += [(name, _NOT_COVERED) for name in policy.kept]
    if manifest.method == "kdelta" and "url" in released and "url" not in policy.kept:
        rows.append(("url", "released, and covered by the promise"))
    rows += [(name, "not released") for name in policy.dropped if name != "time"]
    if policy.n_others_dropped:
        rows.append((f"{policy.n_others_dropped} more", "not released"))
    return rows


def _noisy_rows(manifest: Manifest, *, released: tuple[str, ...]) -> list[tuple[str, str]]:
    # Privacy: which columns the log had is left out; it is none of the promise's business.
    if "user" in released:
        return [
            ("user", "made-up users"),
            ("query", "drawn by chance after noisy counts of queries"),
            *([("url", "drawn by chance after noisy counts of clicks")] if "url" in released else []),
            ("all others", "not released"),
        ]
    rows = [
        ("user", "not released"),
        ("query", _queries(manifest)),
        ("count", "how many people asked it, with noise"),
    ]
    if any(part.what == "clicks" for part in manifest.noise):
        rows.append(("url", "in a file of its own, where enough people clicked it, with a noisy count"))
    return [*rows, ("all others", "not released")]


def _queries(manifest: Manifest) -> str:
    if manifest.changed.get("term_occurrences_moved_up"):
        return "terms were moved up in a taxonomy or deleted until the promise held"
    return _QUERIES.get(manifest.method, "as the method left them")


def _times(manifest: Manifest) -> str:
    said = _TIMES[manifest.columns.time]
    if manifest.method == "swap" and manifest.columns.time is not TimeDetail.DROP:
        return f"that of the release of a row, {said}"
    return said
