"""The sections on cost: how much is left, what the release is still good for, and what was removed or changed."""

from collections.abc import Sequence

from queryveil.html_tables import number, percent
from queryveil.release import Manifest, sizes
from queryveil.reports._blocks import Block, Bullets, Figure, Paragraph, Picture, Table, capitalized
from queryveil.reports.charts import Bar, Line, bar_chart, line_chart
from queryveil.reports.value import Curves, Report
from queryveil.utility.score import Measures

_WORDS = {
    "bad_rows_skipped": "rows that could not be read (never part of the log)",
    "bot_users": "users taken for programs",
    "bot_rows": "rows of users taken for programs",
    "rows_without_terms_before": "rows without any term, as they came",
    "rows_without_terms_left": "rows that lost all their terms",
    "term_occurrences": "terms taken out of queries",
    "terms": "different terms that are gone altogether",
    "terms_without_value": "terms that the table of values does not list (worth 0, not all removed)",
    "words_outside_the_taxonomy": "terms that the taxonomy does not know",
    "duplicate_items": "repetitions within a transaction",
    "transactions_without_items": "people or queries without any term of the taxonomy",
    "items_suppressed": "terms for which nothing is released",
    "rows_without_query": "rows with an empty query",
    "rows_of_rare_queries": "rows with a query that too few people asked",
    "rows_of_rare_clusters": "rows with a kind of query that too few people asked",
    "rows_of_earlier_times": "rows before the time that is counted",
    "rows_of_long_texts": "rows with a text that is too long",
    "rows_of_short_texts": "rows with a text that is too short",
    "rows_of_rare_words": "rows with a word, name, address or number that too few people asked",
    "rows_of_small_cells": "rows whose device, country and language are those of too few people",
    "rows_of_many_words": "rows with too many words",
    "rows_of_long_words": "rows with a word that is too long",
    "rows_of_long_numbers": "rows with a long number",
    "rows_of_contacts": "rows with an e-mail address, an @ or a password",
    "rows_of_digits": "rows with a digit",
    "rows_of_other_languages": "rows that are not English",
    "rows_of_names": "rows with the name of a person",
    "rows_of_unknown_people": "rows with the name of somebody who is not public",
    "page_addresses_of_few_users": "addresses of pages that too few people clicked",
    "rows_repeated": "rows with a query that the same person had asked before",
    "rows_suppressed": "rows held back to keep the promise",
    "rows_of_identifiers": "rows of nothing but identifiers, or with one",
    "rows_unclassified": "rows of no category",
    "rows_still_waiting": "rows still waiting to leave in a later run",
    "users_left_empty": "users of whom nothing is left",
    "users_without_terms": "users without any term to release",
    "stop_word_occurrences": "terms that say nothing (the, of, ..)",
    "term_occurrences_outside_the_taxonomy": "terms that the taxonomy does not know",
    "terms_dropped": "terms that too many of a group share, once per group",
    "term_occurrences_dropped": "terms that too many of a group share, once per member",
    "identifiers": "identifiers taken out of queries (names, numbers, addresses)",
    "term_occurrences_moved_up": "terms replaced by what they are a kind of",
    "rows_added": "rows that were made up",
    "queries_exchanged": "rows whose query was exchanged for another",
    "term_occurrences_hashed": "terms replaced by a code",
    "distinct_queries": "different queries that too few people asked",
}


def in_words(name: str) -> str:
    """Return a name of the manifest's `removed` or `changed` in plain words.

    >>> in_words("bot_rows"), in_words("rows_of_somebody_elses_method")
    ('rows of users taken for programs', 'rows of somebody elses method')
    """
    return _WORDS.get(name, name.replace("_", " "))


_FAMILIES = {
    "kept": "How much is left",
    "search": "For search",
    "advertising": "For advertising",
    "profiles": "For profiles of interests",
    "generalisation": "What generalising lost",
    "": "Other measures",
}
_COLUMNS = ("measure", "value", "what it is")
_NOT_TOLD = (
    "What was left out is not told, since exact numbers would tell of people: of each person's queries only a few were "
    "counted, and a query whose noisy count is below the threshold is not in the release."
)


def cost_section(report: Report) -> list[Block]:
    measures, curves = report.measures, report.curves
    found = [Paragraph(report.why_no_measures)] if measures is None else _families(measures)
    return [_counts(report), *found, *([] if curves is None else [_curves(curves)])]


def edits_section(report: Report) -> list[Block]:
    manifest = report.manifest
    if manifest.promise.is_noisy:
        return [Paragraph(_NOT_TOLD), _noise(manifest)]
    rows: list[tuple[str, int]] = []
    others: list[tuple[str, int]] = []
    for name, n in manifest.removed.items():
        if n and not name.startswith(("identifiers_by_", "identifiers_of_")):
            (rows if "rows" in name and name != "bad_rows_skipped" else others).append((in_words(name), n))
    rows.sort(key=lambda edit: -edit[1])
    edits = [(in_words(name), n) for name, n in manifest.changed.items() if n]
    blocks: list[Block] = []
    if rows:
        whole = manifest.counts.n_rows_before
        title = "Rows that are not in the release"
        chart = bar_chart(
            title=title,
            description=f"By why they are gone, of {whole:,} rows in the original.",
            bars=[Bar(label=label, value=n, note=f"({percent(n / whole)})" if whole else "") for label, n in rows],
        )
        blocks.append(Picture(svg=chart, instead=_table(title, rows)))
    if others:
        blocks.append(_table("Also removed" if rows else "Removed", others))
    if edits:
        blocks.append(_table("Changed", edits))
    return blocks or [Paragraph("Nothing was removed or changed but the columns.")]


def _table(caption: str, edits: Sequence[tuple[str, int]]) -> Table:
    return Table(columns=("what", "how many"), rows=tuple(edits), caption=caption)


def size_figures(report: Report) -> tuple[Figure, ...]:
    """Return the figures for the top of the report: rows and users kept, or what the kind of data has instead."""
    found = sizes(report.manifest, n_clicks=report.n_clicks)
    return tuple(Figure(value=size.figure, label=size.title, note=size.about) for size in found)


def _noise(manifest: Manifest) -> Table:
    columns = ("counts of", "noise", "scale", "counts per person", "threshold", "epsilon", "delta")
    rows = []
    for part in manifest.noise:
        drawn = (part.what, part.mechanism.replace("-", " "), number(part.scale), part.max_items, part.threshold)
        rows.append((*drawn, f"{part.epsilon:g}", f"{part.delta:g}"))
    return Table(columns=columns, rows=tuple(rows), caption="How noise was added")


def _counts(report: Report) -> Table:
    manifest = report.manifest
    if manifest.promise.is_noisy:
        shown = tuple((each.label, each.value) for each in size_figures(report))
        return Table(columns=("", "release"), rows=shown, caption="Counts")
    counts, kind = manifest.counts, manifest.data.kind if manifest.data else "log"
    title = "rows" if kind == "log" else f"rows, and {kind} made of them"
    rows = [(title, counts.n_rows_before, counts.n_rows_after)]
    if n_added := manifest.changed.get("rows_added", 0):
        rows.append(("of these made up", 0, n_added))
    if kind != "transactions":
        rows.append(("users", counts.n_users_before, counts.n_users_after))
    return Table(columns=("", "original", "release"), rows=tuple(rows), caption="Counts")


def _families(measures: Measures) -> list[Block]:
    blocks: list[Block] = []
    for group, scores in measures.by_group().items():
        rows = tuple((capitalized(one.title), one.written, f"{one.about}; {one.better} is better") for one in scores)
        blocks.append(Table(columns=_COLUMNS, rows=rows, caption=_FAMILIES.get(group, capitalized(group))))
    if measures.notes:
        blocks += [Paragraph("Notes on the measures:", kind="note"), Bullets(measures.notes)]
    return blocks


def _curves(curves: Curves) -> Picture:
    before_is, after_is = ("rows before", "noisy counts of people after") if curves.of_people else ("before", "after")
    chart = line_chart(
        title=f"How often {curves.what} were asked",
        description=f"The most frequent {curves.what} on the left, the rarest on the right; both axes grow by tens.",
        x_label="rank by frequency",
        y_label="rows, or people" if curves.of_people else "times asked",
        lines=[Line(name=before_is, points=curves.before, kind="before"), Line(name=after_is, points=curves.after)],
        is_log=True,
    )
    ranks = dict.fromkeys(rank for rank, _ in (*curves.before, *curves.after) if rank in (1, 10, 100, 1000, 10_000))
    before, after = dict(curves.before), dict(curves.after)
    rows = tuple((rank, before.get(rank), after.get(rank)) for rank in sorted(ranks))
    caption = "Rows of the log, and noisy counts of people" if curves.of_people else "Times asked"
    return Picture(svg=chart, instead=Table(columns=("rank", before_is, after_is), rows=rows, caption=caption))
