"""`queryveil.plan`: search, judge the release itself on fresh targets, and write it with its report."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbits

import msgspec
import numpy as np
import polars as pl

from queryveil import progress
from queryveil.attacks import Person
from queryveil.attacks.limits import NEED_PUBLIC, Aim
from queryveil.comparison.judged import ComparisonInput, Made, judge
from queryveil.comparison.methods import build_method, key_of
from queryveil.comparison.workers import Workers
from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadInput, BadParameter, QueryveilError, ReleaseExists
from queryveil.formats import read_log
from queryveil.formats.atomic_folders import new_file
from queryveil.methods import warn_if_little
from queryveil.pairing import ESTIMATED, Pair
from queryveil.planning.candidates import ladders
from queryveil.planning.deciding import Decision, Finding
from queryveil.planning.planned import FIGURES, PLAN_FILE, TABLE, Planned, Wanted, read_wanted
from queryveil.planning.searching import Search
from queryveil.release import check_target, read_release
from queryveil.reports import render, report, write_whole
from queryveil.reports.value import Circumstances
from queryveil.rng import check_seed, generator
from queryveil.settings import parse_share
from queryveil.utility import measuring

_SEED_BITS = 63
_RELEASE = "release"


def plan(
    log: QueryLog | Path | str,
    *,
    folder: Path | str,
    purpose: str | None = None,
    limit: float | str | None = None,
    readers: Sequence[str] | None = None,
    exceptions: Mapping[str, str] | None = None,
    minutes: float | None = None,
    plan: Path | str | None = None,
    public: QueryLog | None = None,
    later: QueryLog | None = None,
    people: Sequence[Person] = (),
    values: pl.DataFrame | None = None,
    jobs: int = 1,
    seed: int | None = None,
    force: bool = False,
) -> Planned:
    """Find the most useful release for a purpose in which no attacker finds more than a limit, and write it.

    Many methods and settings are tried on samples of users, then the best on the whole log. What is written is judged
    once more, by attackers who look for other people. If nothing may be released, the result says what stands against
    it.

    - folder: where the release and all figures go; a search that was ended goes on from there
    - purpose: what it is for: ranking, suggestions, spelling, related, trends, advertising or personalisation
    - limit: the most that may be found, such as `"5%"`
    - readers: who will read it; everybody if none is named
    - exceptions: attackers that are left out, each with the reason
    - minutes: how long the search may take, 10 if not said
    - plan: the file of an earlier search, to do it again; what else is given overrides it
    - public, later, people, values: a public log, one of the same people from another time, people to look for by name,
      and what terms are worth
    - jobs: with more than 1, runs have processes of their own; a script must work below `if __name__ == "__main__":`
    - seed: repeats the release, too; not for releases
    - force: replace the release in `folder`, and search anew
    """
    started = time.monotonic()
    check_seed(seed)
    if jobs < 1:
        raise BadParameter("jobs", jobs, allowed="1 or more")
    given = {
        "purpose": purpose,
        "limit": None if limit is None else parse_share(limit, name="limit"),
        "readers": None if readers is None else tuple(readers),
        "exceptions": None if exceptions is None else dict(exceptions),
        "minutes": minutes,
    }
    wanted = _wanted(plan, {name: value for name, value in given.items() if value is not None})
    if wanted.purpose == "advertising" and values is None:
        raise BadParameter("for", "advertising", allowed="given with a table of what terms are worth: --values FILE")
    home = _home(Path(folder), force=force)
    may_replace = _may_replace(home, force=force)
    wanted = _with_seed(wanted, home, seed=seed)
    whole = log if isinstance(log, QueryLog) else read_log(log)
    drawn = wanted.targets_seed if wanted.targets_seed is not None else _derived(seed, 1)
    inputs = ComparisonInput(
        log=whole, public=public, later=later, people=people, values=values, seed=drawn, targets_seed=drawn
    )
    _check_measured(inputs, wanted)
    # Until the end figures of an earlier search would be taken for those of this one.
    for name in (FIGURES, TABLE):
        (home / name).unlink(missing_ok=True)
    write_whole(wanted.to_toml(), home / PLAN_FILE)
    with Workers(jobs=jobs) as workers:
        tried = ladders(wanted.purpose, columns=whole.with_clicks_as_rows().columns)
        search = Search(wanted=wanted, inputs=inputs, folder=home, workers=workers, ladders=tried, started=started)
        decision = search.climb()
    confirming = Confirming(
        wanted=wanted, inputs=inputs, folder=home / _RELEASE, seed=seed, end=search.end, force=may_replace
    )
    planned = replace(confirming.release(decision), rungs=tuple(search.rungs))
    planned = replace(planned, seconds=time.monotonic() - started)
    planned.write(home)
    return planned


def _wanted(path: Path | str | None, given: Mapping[str, object]) -> Wanted:
    if path is not None:
        return msgspec.structs.replace(read_wanted(path), **given)
    if "purpose" not in given:
        raise BadParameter("for", "nothing", allowed="what the release is for, such as suggestions")
    return Wanted(**given)  # type: ignore[arg-type]


def _home(folder: Path, *, force: bool) -> Path:
    """Make the folder, or take that of an earlier search; any other is refused."""
    if folder.exists() and not folder.is_dir():
        raise BadParameter("output", str(folder), allowed="a folder, and this is a file")
    is_new = not folder.is_dir() or not any(folder.iterdir())
    if not is_new and not (folder / PLAN_FILE).is_file():
        raise BadParameter("output", str(folder), allowed="a new folder, an empty one, or that of a search")
    if not _may_replace(folder, force=force):
        raise ReleaseExists(str(folder / _RELEASE))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force and (folder / "search").is_dir():
            shutil.rmtree(folder / "search")
    except OSError as error:
        raise BadFile(str(folder), f"the folder cannot be used: {error.strerror}") from None
    check_target(folder / _RELEASE, force=_may_replace(folder, force=force))
    return folder


def _may_replace(folder: Path, *, force: bool) -> bool:
    """Return whether a release that may be there may be replaced: one without figures was killed before its end."""
    return force or not (folder / _RELEASE).exists() or not (folder / FIGURES).is_file()


def _with_seed(wanted: Wanted, home: Path, *, seed: int | None) -> Wanted:
    """Return what is wanted with the seed of samples and targets: its own, that of the search to go on with, or new."""
    if seed is not None:
        # Privacy: who knows the seed of a release can undo its shuffling, so that nothing made from it is written down.
        return msgspec.structs.replace(wanted, targets_seed=None)
    if wanted.targets_seed is not None:
        return wanted
    before: int | None = None
    if (home / "search").is_dir():
        before = read_wanted(home / PLAN_FILE).targets_seed
    return msgspec.structs.replace(wanted, targets_seed=randbits(_SEED_BITS) if before is None else before)


def _derived(seed: int | None, place: int) -> int | None:
    """Return another seed for another use; none of none.

    >>> _derived(7, 1) == _derived(7, 1) != _derived(7, 2)
    True
    """
    if seed is None:
        return None
    return int(np.random.SeedSequence(seed, spawn_key=(place,)).generate_state(1, np.uint64)[0]) >> 1


def _check_measured(inputs: ComparisonInput, wanted: Wanted) -> None:
    """Raise if the purpose has no measure on this log: then not even the log itself has a score."""
    if inputs.log.n_users == 0:
        raise BadInput("there is nobody to plan a release of; give a log with users")
    progress.step("measuring the log itself")
    measure = wanted.for_purpose.measure
    itself = Pair.pseudonymised(inputs.log)
    found = measuring.run(itself, values=inputs.values, reference=inputs.reference, only=measure)
    if found.named(measure) is None:
        why = "; ".join(found.notes) or "no measure of this name applies to such a log"
        raise BadInput(f"{wanted.purpose} ({measure}) cannot be measured on this log: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirming:
    """The last step: the release is made, attacked by those who look for other people, and written if it passes.

    - `wanted`, `inputs`: what was asked, and the whole log.
    - `folder`: where the release goes.
    - `seed`: repeats the release.
    - `end`: when the time is over, by the monotonic clock; one release is tried even after that.
    - `force`: replace a release.
    """

    wanted: Wanted
    inputs: ComparisonInput
    folder: Path
    seed: int | None
    end: float
    force: bool

    def release(self, decision: Decision) -> Planned:
        """Write the most useful release that passes, and return what came of it."""
        limit, measure = self.wanted.as_limit, self.wanted.for_purpose.measure
        targets_seed = (self.inputs.targets_seed or 0) + 1
        aim = Aim(limit=limit, measure=measure, is_final=True, with_baseline=True)
        fresh = replace(self.inputs, seed=self.seed, targets_seed=targets_seed, aim=aim)
        planned = Planned(wanted=self.wanted, decision=decision, rungs=())
        for one in decision.qualified:
            if planned.refused and time.monotonic() > self.end:
                note = "there was no time to try the next best; the same command goes on from here with more --minutes"
                return replace(planned, notes=(*planned.notes, note))
            run = one.judged.run
            assert run is not None  # only runs qualify
            progress.step(f"making and attacking the release: {one.name}")
            try:
                method = build_method(run.method, run.settings, values=self.inputs.values, seed=self.seed)
                made = Made.of(method, self.inputs.log)
            except QueryveilError as error:
                # What was made in the search may fail by other draws.
                failed = msgspec.structs.replace(one.judged, failed=str(error))
                planned = replace(planned, refused=(*planned.refused, replace(one, judged=failed)))
                continue
            found = Finding.of(judge(run, fresh, made=made), limit=limit, measure=measure)
            if found.qualifies:
                self._write(made, found)
                return replace(planned, confirmed=found, notes=(*planned.notes, *self._notes(found)))
            planned = replace(planned, refused=(*planned.refused, found))
        return planned

    def _write(self, made: Made, found: Finding) -> None:
        """Write the release that was attacked, its ids replaced by fresh ones, with its key beside it if it has one."""
        release, key = made.release.with_fresh_ids(generator(_derived(self.seed, 2))), key_of(made.method)
        release = warn_if_little(made.method, self.inputs.log, release)
        beside: dict[Path, Path] = {}
        if key is not None:
            partial = self.folder.with_name(f".{self.folder.name}.key.partial")
            with new_file(partial, replace=True, so="nothing was released") as file:
                file.write(key)
            beside = {partial: self.folder.with_name(f"{self.folder.name}.key")}
        release.save(self.folder, force=self.force, beside=beside)
        progress.step("writing the report")
        written = read_release(self.folder).manifest
        # Under ids that are known, since a report on fresh ones would have to guess who is who.
        told = report(
            replace(made.release, manifest=msgspec.structs.replace(made.release.manifest, data=written.data)),
            original=self.inputs.log,
            key=key,
            public=self.inputs.public,
            values=self.inputs.values,
            membership=made.membership,
            # Other targets, or fewer, could contradict what made the release pass.
            attacks=found.judged.attacks,
            limit=self.wanted.as_limit,
            circumstances=Circumstances(purpose=self.wanted.for_purpose.title),
        )
        told = replace(told, folder=self.folder.name, manifest=written)
        # Privacy: figures beside the original are exact, and those of noisy counts are for the releaser alone.
        place = self.folder.parent if release.promise.is_noisy else self.folder
        write_whole(render(told), place / "report.html")

    def _notes(self, found: Finding) -> tuple[str, ...]:
        notes = []
        if found.judged.attacks is not None and not found.judged.attacks.exact:
            notes.append(f"{ESTIMATED}: what attackers find comes out too low")
        ran = {one.attacker for one in found.judged.exposures if one.n_targets}
        if self.inputs.public is None and (held_out := [name for name in NEED_PUBLIC if name in ran]):
            notes.append(
                f"{', '.join(held_out)} attacked another release of the same kind, made without a quarter of the "
                "users, who stand for the public"
            )
        if self.seed is not None:
            notes.append("made with a seed: whoever knows that can undo the shuffling; do not hand the release out")
        return tuple(notes)
