"""`queryveil verify`, `attack`, `measure` and `report`: is the promise kept, who is found, what is it good for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import queryveil
from queryveil.cli import options
from queryveil.cli.output import echo, print_json, print_table, progress_bar, write_out
from queryveil.errors import BadParameter
from queryveil.html_tables import percent
from queryveil.settings import parse_share, setting, values_of

if TYPE_CHECKING:
    from queryveil.attacks import Attacks
    from queryveil.attacks.limits import Limit
    from queryveil.utility import Score


def verify(
    place: options.Place,
    *,
    original: str | None = options.file_option(help="The log or profiles it was made from: nothing may be invented."),
    taxonomy: str | None = setting(None, metavar="wordnet|FILE", help="The taxonomy it was made with, for --original."),
    key: options.Key = None,
    membership: options.Membership = None,
    expect: str | None = setting(None, metavar="PROMISE", help="Fail a weaker promise, or another: 'km k=5 m=2'."),
    signed_by: str | None = setting(None, metavar="PUBLIC", help="Fail what the owner of this key did not sign."),
    show: bool = setting(False, help="Show the terms or queries of what breaks the promise."),
    tables: options.SwapTables,
    reading: options.OriginalReading,
    engine: options.Engine,
    as_json: options.Json = False,
) -> None:
    """Judge a release, its promise and all that lies in its folder: exit 0 if it holds, 1 if anything is wrong."""
    unread = {"show": show, "key": key, "taxonomy": taxonomy, "membership": membership, "signed_by": signed_by}
    engine.refuse(**unread, classifier=tables.classifier_kind != "evidence", **tables.files)
    spark, texts = engine.start(), None
    with progress_bar():
        if spark is not None:
            there = None if original is None else reading.read_on(spark, original)
            verdict = spark.verify(place, original=there, expect=expect)
        else:
            release = queryveil.read_release(place)
            verdict = queryveil.verify(
                release,
                original=None if original is None else reading.read_original(original, release),
                classifier=tables.own_classifier(),
                expect=expect,
                signed_by=signed_by,
                **options.release_files(release, key=key, taxonomy=taxonomy, membership=membership),
            )
            texts = verdict.show(release.data) if show else None
    if as_json:
        print_json(verdict.to_dict() | ({} if texts is None else {"texts": texts}))
    else:
        # Where the first of the faults is all there is, the sentence has told it.
        faults = verdict.faults if verdict.n_violations or len(verdict.faults) > 1 else ()
        echo(verdict.in_words(), *(f"fault: {fault}" for fault in faults), *(texts or []))
        echo(*(f"note: {note}" for note in verdict.notes), err=True)
    raise typer.Exit(0 if verdict.holds else 1)


def keygen(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Writes NAME.key, to be kept secret, and NAME.pub.")],
) -> None:
    """Make a key pair: sign releases with the private key, and give the public one to whoever checks them."""
    from queryveil.release.signing import make_keys

    private, public = make_keys(name)
    echo(f"{private}: keep it secret; sign with: queryveil sign DIR --key {private}")
    echo(f"{public}: for whoever checks: queryveil verify DIR --signed-by {public}")


def sign(
    folder: options.Folder,
    *,
    key: Annotated[str, typer.Option(metavar="FILE", help="The private key that keygen made.")],
) -> None:
    """Sign the manifest of a release, and with it every file that the manifest lists."""
    from queryveil.release.signing import sign_release

    echo(f"signed: {sign_release(folder, key=key)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attackers:
    """What attackers are given, and how many people they look for."""

    public: str | None = options.file_option(help="A log by other people, to learn from.")
    people: Path | None = options.file_option(help="JSON lines with name and town.")
    later: str | None = options.file_option(help="A later log of the same people.")
    targets: int = setting(1000, help="Most people each looks for.")
    seed: int | None = setting(None, help="Repeat what attackers draw.")

    def read(self, reading: options.Reading, release: queryveil.Release) -> dict[str, Any]:
        """Return the arguments of `attack` and `report`, with the files read, and what makes such a release again."""
        from queryveil.attacks import read_people
        from queryveil.comparison import method_of
        from queryveil.comparison.methods import remaker

        method = method_of(release.manifest)
        return {
            "public": None if self.public is None else reading.read(self.public),
            "people": () if self.people is None else read_people(self.people),
            "remake": None if method is None else remaker(method, seed=self.seed),
            "later": None if self.later is None else reading.read(self.later),
            "n_targets": self.targets,
            "seed": self.seed,
        }


def attack(
    log: options.Original,
    folder: options.Folder,
    *,
    key: options.Key = None,
    taxonomy: options.OwnTaxonomy = None,
    membership: options.Membership = None,
    only: str | None = setting(None, metavar="NAME,..", help="Run these attackers only."),
    attackers: Attackers,
    reading: options.OriginalReading,
    as_json: options.Json = False,
) -> None:
    """Run all attacks that apply to a release, and for comparison on the log with only its ids replaced."""
    with progress_bar():
        release = queryveil.read_release(folder)
        found = queryveil.attack(
            reading.read_original(log, release),
            release,
            only=options.parse_list(only),
            **options.release_files(release, key=key, taxonomy=taxonomy, membership=membership),
            **attackers.read(reading, release),
        )
    if as_json:
        print_json(found.to_dict())
    else:
        _print_attacks(found, is_noisy=release.promise.is_noisy)


def _print_attacks(found: Attacks, *, is_noisy: bool) -> None:
    from queryveil.attacks.names import label
    from queryveil.attacks.suite import ESTIMATED_EXPOSURE
    from queryveil.attacks.sybil import BY_CHANCE_UNDER_NOISE

    rows = []
    for attempt in found.attempts:
        after, surest = attempt.after, attempt.after.surest
        before = None if attempt.before is None else percent(attempt.before.share)
        interval = after.interval_in_words.removeprefix("95 % interval ")
        sure = (None, None) if surest is None else (percent(surest.share), surest.n_certain)
        found_by = (before, percent(after.share), interval, percent(after.chance_share), *sure)
        rows.append((label(after).replace(":", " "), after.what, *found_by))
    if rows:
        columns = ("attacker", "finds", "before", "after", "95 % interval", "by chance", "surest 1 %", "certain")
        print_table(columns, rows)
    if is_noisy and found.named("sybil") is not None:
        echo(f"note: sybil, by chance: {BY_CHANCE_UNDER_NOISE}", err=True)
    if not found.exact:
        echo(f"note: {ESTIMATED_EXPOSURE}", err=True)
    reasons: dict[str, list[str]] = {}
    for skipped in found.skipped:
        reasons.setdefault(skipped.reason, []).append(skipped.attacker)
    for reason, names in reasons.items():
        echo(f"not run: {', '.join(names)}: {reason}", err=True)


def measure(
    log: options.Original,
    place: options.Place,
    *,
    key: options.Key = None,
    values: options.Values = None,
    taxonomy: options.OwnTaxonomy = None,
    membership: options.Membership = None,
    public: str | None = options.file_option(help="A log by other people: ranking and completions are judged on it."),
    reading: options.OriginalReading,
    engine: options.Engine,
    as_json: options.Json = False,
) -> None:
    """Measure what a release is still good for, beside the log it was made from."""
    engine.refuse(key=key, values=values, taxonomy=taxonomy, membership=membership, public=public)
    spark = engine.start()
    with progress_bar():
        if spark is not None:
            found = spark.measure(reading.read_on(spark, log), place)
        else:
            release = queryveil.read_release(place)
            found = queryveil.measure(
                reading.read_original(log, release),
                release,
                values=options.read_values(values) if values else None,
                public=None if public is None else reading.read(public),
                **options.release_files(release, key=key, taxonomy=taxonomy, membership=membership),
            )
    if as_json:
        print_json(found.to_dict())
        return
    rows: list[tuple[str, str, str]] = []
    for family, scores in found.by_group().items():
        rows.append((family, "", ""))
        rows += [(f"  {score.title}", score.written, _explained(score)) for score in scores]
    if rows:
        print_table(("measure", "value", "what it is"), rows, ends_in_words=True)
    echo(*(f"note: {note}" for note in found.notes), err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Who releases it to whom, and for what, in words that the report repeats."""

    releaser: str = setting("", metavar="NAME", help="Who hands it out.")
    recipient: str = setting("", metavar="NAME", help="Who gets it.")
    purpose: str = setting("", option="purpose_text", metavar="TEXT", help="What it is for.")
    period: str = setting("", metavar="TEXT", help="The time it covers, if not as its times say.", hidden=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The limit of exposure, and how long the report may be relied on."""

    limit: str = setting("5%", metavar="SHARE", help="What they may find.")
    valid_months: int = setting(12, at_least=1, at_most=120, help="When to attack again.", hidden=True)

    def read(self, exceptions: list[str] | None) -> Limit:
        """Return the limit, without the attackers that were ruled out."""
        from queryveil.attacks.limits import Limit

        return Limit(share=parse_share(self.limit), exceptions=options.parse_exceptions(exceptions) or {})


def _explained(score: Score) -> str:
    return score.about if score.better == "more" else f"{score.about}; less is better"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReading(options.Reading):
    """How the original is read, where `--format` is that of the report."""

    file_format: str | None = options.reading_option(option="original_format", help="As --format of verify.")


def report(
    folder: options.Folder,
    *,
    original: str | None = setting(None, metavar="LOG", help="The log, to attack and measure."),
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="If not DIR/report.html; - is stdout.")
    ] = None,
    report_format: str = setting("html", option="format", help="html, md, json or pdf."),
    lang: str = setting("en", help="en, de, fr or es."),
    key: options.Key = None,
    show: bool = setting(False, help="Show its most frequent queries."),
    force: bool = setting(False, help="Replace FILE."),
    taxonomy: options.OwnTaxonomy = None,
    values: options.Values = None,
    membership: options.Membership = None,
    stated: Stated,
    judging: Judging,
    exceptions: options.Exceptions = None,
    attackers: Attackers,
    tables: options.SwapTables,
    reading: ReportReading,
    as_json: options.Json = False,
) -> None:
    """Write what is promised, if it holds, what attackers find and what it cost: exit 1 if the promise is broken."""
    from queryveil import reports
    from queryveil.checks.whole import REPORTS
    from queryveil.release import MANIFEST
    from queryveil.reports.languages import spoken
    from queryveil.reports.render import check_report_format, check_report_target

    kind = "json" if as_json else report_format
    check_report_format(kind)
    spoken(lang)
    limit = judging.read(exceptions)
    goes_out = output == "-" or (as_json and output is None)
    with progress_bar():
        release = queryveil.read_release(folder)
        # Privacy: figures beside the original are exact, and whatever is handed out with noisy counts must be covered.
        is_private = original is not None and release.promise.is_noisy
        whole = folder.absolute()
        own = whole.with_name(f"{whole.name}-report.{kind}") if is_private else folder / f"report.{kind}"
        path = Path(output) if output else own
        if not goes_out:
            is_inside = path.resolve().is_relative_to(folder.resolve())
            if is_private and is_inside:
                raise BadParameter("output", str(path), allowed="a file outside the release, which others will get")
            # A report in the folder is made from it, so that an older one may go.
            check_report_target(path, force=force or output is None)
            files = [file.name for file in (release.manifest.data, release.manifest.clicks) if file is not None]
            _check_is_apart(path, [original, key, *(folder / name for name in (MANIFEST, *files))])
            if is_inside and path.resolve() not in [folder.resolve() / name for name in REPORTS]:
                allowed = "report.html, .md, .json or .pdf in a release, where nothing else may lie, or outside"
                raise BadParameter("output", str(path), allowed=allowed)
        made = queryveil.report(
            release,
            original=None if original is None else reading.read_original(original, release),
            classifier=tables.own_classifier(),
            values=options.read_values(values) if values else None,
            show=show,
            limit=limit,
            circumstances=reports.Circumstances(**values_of(stated)),
            valid_months=judging.valid_months,
            **options.release_files(release, key=key, taxonomy=taxonomy, membership=membership),
            **attackers.read(reading, release),
        )
        text = reports.render(made, format=kind, lang=lang)
    if isinstance(text, bytes) and goes_out:
        sys.stdout.buffer.write(text)
    elif isinstance(text, str) and goes_out:
        write_out(text)
    else:
        reports.write_whole(text, path)
        echo(reports.in_short(made), reports.decision(made))
        echo(f"written to {path}", err=True)
    raise typer.Exit(1 if made.state is reports.State.BROKEN else 0)


def _check_is_apart(path: Path, others: Iterable[str | Path | None]) -> None:
    """Raise if the report would take the place of what it is about."""
    for other in others:
        if other is not None and Path(other).exists() and path.exists() and path.samefile(other):
            raise BadParameter("output", str(path), allowed="a file that is not a part of what is reported on")
