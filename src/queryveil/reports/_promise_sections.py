"""The sections on the promise: what it says and does not say, the verdict, columns, and how to check it."""

from shlex import quote

from queryveil import guarantees
from queryveil.release import Ids, Manifest, TimeDetail, text_facts
from queryveil.reports._blocks import Block, Bullets, Commands, Paragraph, Section, Table, capitalized
from queryveil.reports._definitions import source_of
from queryveil.reports.value import Report, State


def promise_section(report: Report) -> Section:
    """Return the promise in plain words and as the definition of its paper."""
    promise = report.manifest.promise
    blocks: list[Block] = [Paragraph(text=promise.in_words())]
    source = source_of(promise, method=report.manifest.method, noise=report.manifest.noise)
    if source is not None:
        formal = f"As a definition, {source.name}: {source.definition}"
        blocks.append(Paragraph(text=f"{formal} {source.differs}".rstrip(), kind="quote"))
        blocks.append(Paragraph(text=f"After {source.paper}.", kind="note"))
    return Section(name="promise", title="What is promised", blocks=tuple(blocks))


def limits_section(report: Report) -> Section:
    """Return what the promise does not cover."""
    law = "Whether this makes the release anonymous under a law is a judgement for which these are the facts."
    return Section(
        name="not-promised",
        title="What is not promised",
        blocks=(Bullets(items=report.manifest.promise.not_promised()), Paragraph(text=law, kind="note")),
    )


_OF_ONE = (
    "Whoever knows that somebody asked such a text finds this person's row by it, or learns that the person is in the "
    "log; and a text may tell by itself whose it is. The promise does not say that there are none."
)
_IDENTIFIERS = (
    "what the rules for names, addresses, numbers and dates recognise. They miss some, so that this is not the number "
    "of texts that name somebody."
)
_NOT_COUNTED = (
    "How many texts one person alone asked is not told: the count would be exact, and no noise would cover it. That a "
    "text of one person alone leaves has a chance of at most delta."
)


def texts_section(report: Report) -> Section | None:
    """Return how many texts one person alone asked, and how many hold an identifier; None where no text leaves."""
    said = [f"{capitalized(name)}: {fact}." for name, fact in text_facts(report.manifest).items()]
    if report.manifest.promise.is_noisy:
        blocks: tuple[Block, ...] = (Paragraph(text=_NOT_COUNTED),)
    elif said:
        of_one, found = said
        blocks = (Paragraph(text=f"{of_one} {_OF_ONE}"), Paragraph(text=f"{found} An identifier is {_IDENTIFIERS}"))
    else:
        return None
    return Section(name="single-texts", title="Texts of one person", blocks=blocks)


_BY = "The checker shares no code with the method that made the release."
_BY_OF_SWAP = "The checker shares the categories and the rules for identifiers with the method, and no other code."
_NOT_BESIDE = (
    "The release was judged by itself. Beside the original, verify also looks for anything in it that the original "
    "does not have: queryveil report DIR --original LOG."
)
_BESIDE = "It was also compared with the original, and nothing was found that the original does not have."
_BESIDE_OF: dict[type, str] = {
    guarantees.DifferentialPrivacy: "It was also compared with the original: whatever it holds was asked by somebody.",
    guarantees.KdeltaAnonymity: "It was also compared with the original: every query with its URL stands there too, "
    "made-up rows or not.",
}
_CHECKED_MADE_UP = (
    "From what the manifest says of the noise, epsilon and delta were worked out again in another way. That the noise "
    "was drawn as it says, and that the rows were drawn from the noisy counts alone, cannot be told from files."
)


def verdict_section(report: Report) -> Section:
    """Return the verdict of the checker, what it checked, and witnesses if the promise is broken."""
    judgement, title = report.judgement, "Does it hold?"
    verdict = judgement.verdict
    if verdict is None:
        is_none = report.state is State.NOTHING_PROMISED
        why = "There is nothing to judge" if is_none else "The promise was not judged"
        said = Paragraph(text=f"{why}: {judgement.reason}.", kind="warning")
        return Section(name="verdict", title=title, blocks=(said,))
    is_swap = verdict.promise.needs_original
    checked = _CHECKED_MADE_UP if verdict.is_made_up else _what_was_checked(verdict.promise)
    blocks: list[Block] = [
        Paragraph(text=verdict.in_words(), kind="plain" if verdict.holds else "warning"),
        Paragraph(text=f"{checked} {_BY_OF_SWAP if is_swap else _BY}"),
    ]
    if not verdict.holds:
        found = [_sentence(witness.in_words()) for witness in verdict.witnesses]
        # A fault may begin with the name of a file.
        blocks.append(Bullets(items=(*found, *(f"{fault}." for fault in verdict.faults))))
    elif judgement.beside_original and not is_swap:
        blocks.append(Paragraph(text=_BESIDE_OF.get(type(verdict.promise), _BESIDE)))
    if not judgement.beside_original:
        blocks.append(Paragraph(text=_NOT_BESIDE, kind="note"))
    warned = report.manifest.warnings
    blocks += [Paragraph(text=f"Note: {note}.", kind="warning" if note in warned else "note") for note in verdict.notes]
    return Section(name="verdict", title=title, blocks=tuple(blocks))


def _what_was_checked(promise: guarantees.Guarantee) -> str:
    match promise:
        case guarantees.KmAnonymity(m=None):
            return f"In the data file, the histories equal to each user's were counted; {promise.k} are needed."
        case guarantees.KmAnonymity():
            terms = "Every term" if promise.m == 1 else f"Every combination of up to {promise.m} terms"
            return f"{terms} of each user id in the data file was counted; {promise.k} ids must share it."
        case guarantees.TransactionAnonymity():
            return f"Identical transactions in the data file were counted; {promise.k} are needed of each."
        case guarantees.KdeltaAnonymity():
            near = f"shares that differ by {promise.max_distance:g} at most" if promise.max_distance else "equal shares"
            return (
                "From the data file, the width of each cluster of queries and the shares of each user id were "
                f"computed; {promise.k} ids must have {near}."
            )
        case guarantees.Linkability():
            return "The numbers of each group in the data file were checked against each other and against p."
        case guarantees.SwapAnonymity():
            return (
                "Beside the original, the events that could wait when each row left were counted, and for each row it "
                "was looked up whether its user had asked it."
            )
        case guarantees.DifferentialPrivacy():
            return (
                "From what the manifest says of the noise, epsilon and delta were worked out again in another way, and "
                "the counts were held against the threshold. That the noise was drawn as it says cannot be told from "
                "files."
            )
        case _:
            return ""


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


def checking_section(report: Report) -> Section:
    """Return the commands that repeat what this report says, and what it was made with."""
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
        blocks += [Paragraph(text=_ONE_FILE if len(files) == 1 else _SEVERAL_FILES), Commands(lines=tuple(lines))]
    if not manifest.promise.promises_nothing:
        blocks += _verify(report)
    blocks += [
        Paragraph(text="To make this report again, with the original for what attackers find and what it cost:"),
        Commands(lines=(f"queryveil report {folder} --original LOG{_key(report)}",)),
        Paragraph(text=f"The release was made with {versions}.", kind="note"),
    ]
    return Section(name="check", title="Check it yourself", blocks=tuple(blocks))


def glossary_section() -> Section:
    """Return the words of the report with their meaning."""
    table = Table(columns=("word", "meaning"), rows=_GLOSSARY, caption="")
    return Section(name="glossary", title="Glossary", blocks=(table,))


def _verify(report: Report) -> list[Block]:
    alone = f"queryveil verify {quote(report.folder)}"
    beside = f"{alone} --original LOG{_key(report)}{_taxonomy(report)}"
    needs_original = report.manifest.promise.needs_original
    who = "Only who has the original and the key can judge the promise again"
    if not needs_original:
        who = "Whoever has the folder can judge the promise again, without the original; who has the original can also "
        who += "look for what was invented"
    lines = (beside,) if needs_original else (alone, beside)
    return [Paragraph(text=f"{who} (exit code 0: it holds, 1: broken):"), Commands(lines=lines)]


def _key(report: Report) -> str:
    return " --key FILE" if report.manifest.columns.ids is Ids.KEYED else ""


def _taxonomy(report: Report) -> str:
    name = report.manifest.parameters.get("taxonomy")
    if not isinstance(name, str) or report.manifest.method == "plink":
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
    "pseudonymise": "as asked",
    "token_hash": "each term replaced by a code under a secret key",
    "query_threshold": "as asked, where enough people asked the same",
}
_NOT_COVERED = "released as it is, not covered by the promise"


def columns_section(report: Report) -> Section:
    """Return what each column of the release holds."""
    rows = tuple(_rows(report.manifest, released=report.columns))
    table = Table(columns=("column", "in the release"), rows=rows, caption="")
    return Section(name="columns", title="What became of the columns", blocks=(table,))


def warnings_section(report: Report) -> Section | None:
    """Return the warnings of the manifest; None if it has none."""
    found = report.manifest.warnings
    if not found:
        return None
    return Section(name="warnings", title="Warnings", blocks=(Bullets(items=tuple(map(_sentence, found))),))


def _rows(manifest: Manifest, *, released: tuple[str, ...]) -> list[tuple[str, str]]:
    if manifest.promise.is_noisy:
        return _noisy_rows(manifest, released=released)
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
