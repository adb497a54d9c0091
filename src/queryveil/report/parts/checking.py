"""How to check it oneself, and the words that a reader may not know."""

from __future__ import annotations

from shlex import quote

from queryveil.columns import Ids
from queryveil.guarantees import NoPromise, SwapAnonymity
from queryveil.release import DataFile
from queryveil.report.blocks import Block, Commands, Paragraph, Section, Table
from queryveil.report.value import Report

_GLOSSARY = (
    ("attacker", "somebody who tries to find people in the release, with what the table says is known"),
    ("before", "the same attack on the original with nothing changed but the user ids"),
    (
        "blind guessing",
        "what somebody finds who knows nothing; who finds no more has learned nothing, but another may",
    ),
    ("95 % interval", "where the true share lies, but for one time in twenty"),
    ("user", "an id in the log: mostly a person, sometimes a device or a program"),
    ("term", "a run of letters and digits in a query, in lower case"),
    ("row", "one line of the log: a query, or a click on a result of it"),
)
_ONE_FILE = "The data file is the one that was judged if its checksum is this:"
_SEVERAL_FILES = "The data files are those that were judged if their checksums are these:"


def checking(report: Report) -> Section:
    """Give the commands that repeat what this report says, and what it was made with."""
    manifest, folder = report.manifest, quote(report.folder)
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    blocks: list[Block] = []
    files = [file for file in (manifest.data, manifest.clicks) if file is not None]
    if files:
        lines = [line for file in files for line in (_sum(file, folder=folder), file.sha256)]
        blocks += [Paragraph(text=_ONE_FILE if len(files) == 1 else _SEVERAL_FILES), Commands(lines=tuple(lines))]
    if not isinstance(manifest.promise, NoPromise):
        blocks += [Paragraph(text=_who_can(report)), Commands(lines=_verify(report))]
    blocks += [
        Paragraph(text="To make this report again, with the original for what attackers find and what it cost:"),
        Commands(lines=(f"queryveil report {folder} --original LOG{_key(report)}",)),
        Paragraph(text=f"The release was made with {versions}.", kind="note"),
    ]
    return Section(name="check", title="Check it yourself", blocks=tuple(blocks))


def _sum(file: DataFile, *, folder: str) -> str:
    """Give the command that prints the checksum of a file; that of parts is the sum of their own."""
    if file.parts:
        return f"sha256sum {folder}/{file.name}/* | cut -d ' ' -f 1 | sha256sum"
    return f"sha256sum {folder}/{file.name}"


def glossary() -> Section:
    """Say what words mean here."""
    table = Table(columns=("word", "meaning"), rows=_GLOSSARY, caption="")
    return Section(name="glossary", title="Glossary", blocks=(table,))


def _verify(report: Report) -> tuple[str, ...]:
    folder = quote(report.folder)
    with_original = f"queryveil verify {folder} --original LOG{_key(report)}{_taxonomy(report)}"
    if isinstance(report.manifest.promise, SwapAnonymity):
        return (with_original,)
    return (f"queryveil verify {folder}", with_original)


def _who_can(report: Report) -> str:
    if isinstance(report.manifest.promise, SwapAnonymity):
        return "Only who has the original and the key can judge the promise again (exit code 0: it holds, 1: broken):"
    return (
        "Whoever has the folder can judge the promise again, without the original; who has the original can also look "
        "for what was invented (exit code 0: it holds, 1: broken):"
    )


def _key(report: Report) -> str:
    return " --key FILE" if report.manifest.columns.ids is Ids.KEYED else ""


def _taxonomy(report: Report) -> str:
    name = report.manifest.parameters.get("taxonomy")
    if not isinstance(name, str) or report.manifest.method == "plink":
        return ""
    return " --taxonomy wordnet" if name == "wordnet" else " --taxonomy FILE"
