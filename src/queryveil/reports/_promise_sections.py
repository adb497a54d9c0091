"""The sections on the promise: what it says and does not say, the verdict, columns, and how to check it."""

from shlex import quote

from queryveil import guarantees
from queryveil.release import Ids, Manifest, TimeDetail, text_facts
from queryveil.reports._blocks import Block, Bullets, Commands, Paragraph, Table, capitalized
from queryveil.reports._definitions import source_of
from queryveil.reports.value import Report, State


def promise_section(report: Report) -> list[Block]:
    promise = report.manifest.promise
    blocks: list[Block] = [Paragraph(promise.in_words())]
    source = source_of(promise, method=report.manifest.method, noise=report.manifest.noise)
    if source is not None:
        formal = f"As a definition, {source.name}: {source.definition}"
        blocks.append(Paragraph(f"{formal} {source.differs}".rstrip(), kind="quote"))
        blocks.append(Paragraph(f"After {source.paper}.", kind="note"))
    return blocks


def limits_section(report: Report) -> list[Block]:
    law = "Whether this makes the release anonymous under a law is a judgement for which these are the facts."
    return [Bullets(report.manifest.promise.not_promised()), Paragraph(law, kind="note")]


_OF_ONE = (
    "Whoever knows that somebody asked such a text finds this person's row by it, or learns that the person is in the "
    "log; and a text may tell by itself whose it is. The promise does not say that there are none."
)
_IDENTIFIERS = (
    "An identifier is what the rules for names, addresses, numbers and dates recognise. They miss some, so that this "
    "is not the number of texts that name somebody."
)
_NOT_COUNTED = (
    "How many texts one person alone asked is not told: the count would be exact, and no noise would cover it. That a "
    "text of one person alone leaves has a chance of at most delta."
)


def texts_section(report: Report) -> list[Block]:
    """Return how many texts one person alone asked, and how many hold an identifier; nothing where no text leaves."""
    if report.manifest.promise.is_noisy:
        return [Paragraph(_NOT_COUNTED)]
    said = [_sentence(f"{name}: {fact}") for name, fact in text_facts(report.manifest).items()]
    # Where no text leaves there are no facts either.
    return [Paragraph(f"{fact} {meaning}") for fact, meaning in zip(said, (_OF_ONE, _IDENTIFIERS), strict=False)]


_BY = "The checker shares no code with the method that made the release."
_NOT_BESIDE = (
    "The release was judged by itself. Beside the original, verify also looks for anything in it that the original "
    "does not have: queryveil report DIR --original LOG."
)
_BESIDE = "It was also compared with the original, and nothing was found that the original does not have."
_BY_OF: dict[type, str] = {
    guarantees.SwapAnonymity: "The checker shares the categories and the rules for identifiers with the method, and no "
    "other code.",
    guarantees.AskedEntities: "The checker shares the rules for identifiers with the method, and no other code.",
}
_BESIDE_OF: dict[type, str] = {
    guarantees.DifferentialPrivacy: "It was also compared with the original: whatever it holds was asked by somebody.",
    guarantees.KdeltaAnonymity: "It was also compared with the original: every query with its URL stands there too, "
    "made-up rows or not.",
}
_CHECKED_MADE_UP = (
    "From what the manifest says of the noise, epsilon and delta were worked out again in another way. That the noise "
    "was drawn as it says, and that the rows were drawn from the noisy counts alone, cannot be told from files."
)


def verdict_section(report: Report) -> list[Block]:
    """Return the verdict of the checker, what it checked, and witnesses if the promise is broken."""
    judgement, verdict = report.judgement, report.judgement.verdict
    if verdict is None:
        is_none = report.state is State.NOTHING_PROMISED
        why = "There is nothing to judge" if is_none else "The promise was not judged"
        return [Paragraph(f"{why}: {judgement.reason}.", kind="warning")]
    is_swap = isinstance(verdict.promise, guarantees.SwapAnonymity)
    source = source_of(verdict.promise, method=report.manifest.method)
    checked = _CHECKED_MADE_UP if verdict.is_made_up else source.checked if source else ""
    blocks: list[Block] = [
        Paragraph(verdict.in_words(), kind="plain" if verdict.holds else "warning"),
        Paragraph(f"{checked} {_BY_OF.get(type(verdict.promise), _BY)}".lstrip()),
    ]
    if not verdict.holds:
        found = [_sentence(witness.in_words()) for witness in verdict.witnesses]
        # A fault may begin with the name of a file.
        blocks.append(Bullets((*found, *(f"{fault}." for fault in verdict.faults))))
    elif judgement.beside_original and not is_swap:
        blocks.append(Paragraph(_BESIDE_OF.get(type(verdict.promise), _BESIDE)))
    if not judgement.beside_original:
        blocks.append(Paragraph(_NOT_BESIDE, kind="note"))
    warned = report.manifest.warnings
    blocks += [Paragraph(f"Note: {note}.", kind="warning" if note in warned else "note") for note in verdict.notes]
    return blocks


def _sentence(text: str) -> str:
    return f"{capitalized(text)}."


_GLOSSARY = (
    ("attacker", "somebody who tries to find people in the release, with what the table says is known"),
    ("before", "the same attack on the original with nothing changed but the user ids"),
    ("blind guessing", "what somebody finds who knows nothing; who finds no more has learned nothing, but another may"),
    ("95 % interval", "where the true share lies, but for one time in twenty"),
    ("user", "an id in the log: mostly a person, sometimes a device or a program"),
    ("term", "a run of letters and digits in a query, in lower case"),
    ("row", "one line of the log: a query, or a click on a result of it"),
)
_ONE_FILE = "The data file is the one that was judged if its checksum is this:"
_SEVERAL_FILES = "The data files are those that were judged if their checksums are these:"
_ONLY_OWNERS = "Only who has the original and the key can judge the promise again"
_WHOEVER = (
    "Whoever has the folder can judge the promise again, without the original; who has the original can also look for "
    "what was invented"
)


def checking_section(report: Report) -> list[Block]:
    manifest, folder = report.manifest, quote(report.folder)
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    blocks: list[Block] = []
    files = [file for file in (manifest.data, manifest.clicks) if file is not None]
    if files:
        lines: list[str] = []
        for file in files:
            # The checksum of parts is the sum of their own.
            of_parts = "/* | cut -d ' ' -f 1 | sha256sum" if file.parts else ""
            lines += [f"sha256sum {folder}/{file.name}{of_parts}", file.sha256]
        blocks += [Paragraph(_ONE_FILE if len(files) == 1 else _SEVERAL_FILES), Commands(tuple(lines))]
    key = " --key FILE" if manifest.columns.ids is Ids.KEYED else ""
    if not manifest.promise.promises_nothing:
        alone = f"queryveil verify {folder}"
        beside = f"{alone} --original LOG{key}{_taxonomy(manifest)}"
        needs_original = manifest.promise.needs_original
        who = f"{_ONLY_OWNERS if needs_original else _WHOEVER} (exit code 0: it holds, 1: broken):"
        blocks += [Paragraph(who), Commands((beside,) if needs_original else (alone, beside))]
    return [
        *blocks,
        Paragraph("To make this report again, with the original for what attackers find and what it cost:"),
        Commands((f"queryveil report {folder} --original LOG{key}",)),
        Paragraph(f"The release was made with {versions}.", kind="note"),
    ]


def glossary_section(_report: Report) -> list[Block]:
    return [Table(columns=("word", "meaning"), rows=_GLOSSARY, caption="")]


def _taxonomy(manifest: Manifest) -> str:
    name = manifest.parameters.get("taxonomy")
    if not isinstance(name, str) or manifest.method == "plink":
        return ""
    return " --taxonomy wordnet" if name == "wordnet" else " --taxonomy FILE"


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
    TimeDetail.SHARED: "days that several people share, as the promise says",
}
_QUERIES = {
    "km": "terms were deleted until the promise held",
    "kdelta": "rows were left out and made up, and queries of one kind exchanged, until the promise held",
    "clump": "only terms of the taxonomy, as lists, moved up until lists were equal",
    "partition": "only terms of the taxonomy, as sets, moved up until sets were equal",
    "plink": "only terms of the taxonomy, as one profile for each group",
    "dp": "in lower case with single blanks, where enough people asked the same, noise included",
    "swap": "as asked, without recognised identifiers, beside the id of somebody else",
    "google_2024": "in lower case with single blanks, where enough people asked the same, with an exact count",
    "ec_2026": "in lower case with single blanks, where enough people asked each word",
    "ddg_2026": "in lower case with single blanks, where no rule found personal data",
    "brave_wdp": "in lower case with single blanks, where it keeps the rules",
    "mozilla": "in lower case with single blanks, where it keeps the rules",
    "pseudonymise": "as asked",
    "token_hash": "each term replaced by a code under a secret key",
    "query_threshold": "as asked, where enough people asked the same",
}
_NOT_COVERED = "released as it is, not covered by the promise"


def columns_section(report: Report) -> list[Block]:
    rows = (_noisy_rows if report.manifest.promise.is_noisy else _rows)(report.manifest, released=report.columns)
    return [Table(columns=("column", "in the release"), rows=tuple(rows), caption="")]


def warnings_section(report: Report) -> list[Block]:
    found = report.manifest.warnings
    return [Bullets(tuple(map(_sentence, found)))] if found else []


def _rows(manifest: Manifest, *, released: tuple[str, ...]) -> list[tuple[str, str]]:
    policy = manifest.columns
    of_release = manifest.method == "swap" and policy.time is not TimeDetail.DROP
    rows = [
        ("user", _IDS[policy.ids] if "user" in released else "not released"),
        ("query", _queries(manifest)),
        ("time", f"{'that of the release of a row, ' if of_release else ''}{_TIMES[policy.time]}"),
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
    rows = [("user", "not released"), ("query", _queries(manifest)), ("count", "how many people asked it, with noise")]
    if any(part.what == "clicks" for part in manifest.noise):
        rows.append(("url", "in a file of its own, where enough people clicked it, with a noisy count"))
    return [*rows, ("all others", "not released")]


def _queries(manifest: Manifest) -> str:
    if manifest.changed.get("term_occurrences_moved_up"):
        return "terms were moved up in a taxonomy or deleted until the promise held"
    return _QUERIES.get(manifest.method, "as the method left them")
