"""One run of a comparison: anonymize, verify, attack and measure; only figures are kept."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from queryveil import progress
from queryveil.attacks import Attacks, AuxiliaryData, Exposure, Person, suite
from queryveil.attacks.limits import Aim, attack_in_turn
from queryveil.checks import verify
from queryveil.comparison.methods import Method, build_method, key_of
from queryveil.comparison.plan import ORIGINAL, Run
from queryveil.data import QueryLog
from queryveil.errors import NothingPromised, QueryveilError, fault_in_words
from queryveil.guarantees import Guarantee
from queryveil.methods import Plink
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import Counts, Release
from queryveil.utility import Score, measuring
from queryveil.version import __version__

_SPLIT_SEED = 2006
_HELD_OUT = 0.25
"""The share of users who stand for the public in a second release of a run, if there is no public log."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ComparisonInput:
    """The log and the other inputs that all runs of a comparison share.

    - `log`, `public`, `people`, `values`: what is released, and what attackers and measures are given.
    - `n_targets`: the most people that an attacker seeks.
    - `seed`: repeats what methods draw, and who is left out.
    - `targets_seed`: repeats what attackers draw, where it is not `seed`.
    - `aim`: what runs are judged for, if not for everything.
    """

    log: QueryLog
    public: QueryLog | None = None
    later: QueryLog | None = None
    people: Sequence[Person] = ()
    values: pl.DataFrame | None = None
    n_targets: int = 1000
    seed: int | None = None
    targets_seed: int | None = None
    aim: Aim | None = None

    @cached_property
    def reference(self) -> measuring.Reference:
        """What measures need of the log alone."""
        return measuring.Reference(log=self.log, public=self.public, seed=self.seed or 0)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all of it, so that results of another log or of other people are not taken for these."""
        others = (None if log is None else log.frame for log in (self.public, self.later))
        frames = (self.log.frame, self.log.events, *others, self.values)
        figures = [self.n_targets, self.seed, self.targets_seed, self.aim]
        rest = msgspec.json.encode([self.log.layout.format, list(self.people), *figures])
        parts = [*(b"none" if frame is None else _hash(frame) for frame in frames), rest]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def fingerprint_of(self, run: Run | None) -> str:
        """Return the hash of one run; None stands for the attacks on the log itself."""
        what = None if run is None else (run.method, sorted(run.settings.items()))
        text = msgspec.json.encode([self.fingerprint, what, __version__])
        return hashlib.sha256(text).hexdigest()[:32]

    def with_holdout(self, share: float) -> "ComparisonInput":
        """Leave a share of the users out to stand for the public, unless there is a public log."""
        log, public = self.log, self.public
        if public is None and share > 0:
            log, left_out = split(log, share=share, seed=_SPLIT_SEED if self.seed is None else self.seed)
            public = left_out if left_out.n_rows else None
        there = set(log.frame["user"].unique())
        people = tuple(person for person in self.people if person.user is None or person.user in there)
        return replace(self, log=log, public=public, people=people)

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"ComparisonInput(log={self.log!r}, public={self.public!r}, n_people={len(self.people)})"


def split(log: QueryLog, *, share: float, seed: int) -> tuple[QueryLog, QueryLog]:
    """Split users at random; the same log and seed give the same two parts, so that a comparison can be resumed."""
    users = log.frame["user"].unique().sort()
    n_out = round(share * len(users))
    order = np.random.Generator(np.random.Philox(seed)).permutation(len(users))
    out = users.gather(order[:n_out])
    is_out = log.frame["user"].is_in(out.implode())
    return log.with_frame(log.frame.filter(~is_out)), log.with_frame(log.frame.filter(is_out))


def _hash(frame: pl.DataFrame) -> bytes:
    names = msgspec.json.encode([(name, str(kind)) for name, kind in frame.schema.items()])
    # Another Polars may count differently; then the runs are done again.
    rows = frame.hash_rows(seed=1).to_numpy().tobytes()
    return hashlib.sha256(names + pl.__version__.encode() + rows).digest()


Standing = Literal["holds", "broken", "promises nothing", "not judged", "failed"]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run, without any text or id of the log.

    `failed` says why it has no release, or why not all of it was judged; the rest is as far as it came. `run` is None
    for the log itself with nothing but its ids changed, which is only attacked. `stopped_by` is the attacker after whom
    the others were not tried.
    """

    run: Run | None
    fingerprint: str
    standing: Standing
    verdict: str = ""
    promise: Guarantee | None = None
    counts: Counts | None = None
    attacks: Attacks | None = None
    scores: tuple[Score, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = {}
    failed: str = ""
    stopped_by: str = ""

    @property
    def name(self) -> str:
        return name_of(self.run)

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        """What each attacker found."""
        return () if self.attacks is None else tuple(attempt.after for attempt in self.attacks.attempts)


def name_of(run: Run | None) -> str:
    return ORIGINAL if run is None else run.name


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Made:
    """A release with the method that made it, and who is in which group if it has groups."""

    method: Method
    release: Release
    membership: pl.DataFrame | None = None

    @classmethod
    def of(cls, method: Method, log: QueryLog) -> "Made":
        """Make a release of a log."""
        if isinstance(method, Plink):
            grouping = method.group(log)
            return cls(method=method, release=grouping.release, membership=grouping.membership)
        return cls(method=method, release=method.anonymize(log))


def judge(run: Run | None, inputs: ComparisonInput, *, made: Made | None = None) -> Judged:
    """Do a run, or judge a release `made` by it; what goes wrong becomes a part of the result, as other runs go on."""
    found: dict[str, Any] = {"standing": "failed"}
    seconds: dict[str, float] = {}
    try:
        if run is None:
            with _timed("attack", seconds):
                found |= _attack(Pair.pseudonymised(inputs.log), inputs)
                found["standing"] = "promises nothing"
        else:
            _judge(run, inputs, made, found, seconds)
    except KeyboardInterrupt:
        raise
    except (QueryveilError, MemoryError) as error:
        found["failed"] = str(error) or "not enough memory"
    except BaseException as error:  # a panic of Polars is no Exception
        found["failed"] = fault_in_words(error)
    return Judged(run=run, fingerprint=inputs.fingerprint_of(run), seconds=seconds, **found)


def _judge(
    run: Run, inputs: ComparisonInput, made: Made | None, found: dict[str, Any], seconds: dict[str, float]
) -> None:
    if made is None:
        method = build_method(run.method, run.settings, values=inputs.values, seed=inputs.seed)
        with _timed("anonymize", seconds):
            made = Made.of(method, inputs.log)
    release, key = made.release, key_of(made.method)
    found |= {"promise": release.promise, "counts": release.manifest.counts, "standing": "not judged"}
    with _timed("verify", seconds):
        found |= _verdict(release, inputs, key=key)
    with _timed("pair", seconds):
        progress.step("telling who is who")
        pair = Pair(inputs.log, release=release, key=key)
        _ = pair.identity
    if inputs.aim is not None:
        # First, since of a run that is given up one wants to know what it would have kept.
        with _timed("measure", seconds):
            found |= _measure(pair, made, inputs)
    with _timed("attack", seconds):
        found |= _attack(pair, inputs, made=made)
    if inputs.aim is None:
        with _timed("measure", seconds):
            found |= _measure(pair, made, inputs)


def _measure(pair: Pair, made: Made, inputs: ComparisonInput) -> dict[str, Any]:
    progress.step("measuring")
    only = None if inputs.aim is None or inputs.aim.is_final else inputs.aim.measure
    measures = measuring.run(
        pair, values=inputs.values, membership=made.membership, reference=inputs.reference, only=only
    )
    wanted = [one for one in measures.scores if only in (None, one.name)]
    # What is no number has no place in a picture, nor in JSON.
    return {"scores": tuple(one for one in wanted if isfinite(one.value)), "notes": measures.notes}


def _attack(pair: Pair, inputs: ComparisonInput, *, made: Made | None = None) -> dict[str, Any]:
    auxiliary = _auxiliary(inputs, made)
    # The same people are looked for in every release; who they are is nobody's secret.
    seed = inputs.seed or 0 if inputs.targets_seed is None else inputs.targets_seed
    crowd = suite.attackers(pair.release, n_targets=inputs.n_targets, seed=seed)
    if inputs.aim is None or made is None:
        return {"attacks": suite.run(crowd, pair, auxiliary=auxiliary, with_baseline=False)}

    def held_out() -> tuple[Pair, AuxiliaryData]:
        rest = inputs.with_holdout(_HELD_OUT)
        other = Made.of(made.method, rest.log)
        return Pair(rest.log, release=other.release, key=key_of(made.method)), _auxiliary(rest, other)

    crowd = inputs.aim.crowd(crowd, is_noisy=pair.release.promise.is_noisy)
    attacks, stopped_by = attack_in_turn(crowd, pair, aim=inputs.aim, auxiliary=auxiliary, held_out=held_out)
    return {"attacks": attacks, "stopped_by": stopped_by}


def _auxiliary(inputs: ComparisonInput, made: Made | None) -> AuxiliaryData:
    return AuxiliaryData(
        public=inputs.public,
        people=inputs.people,
        remake=pseudonymised if made is None else made.method.anonymize,
        key=None if made is None else key_of(made.method),
        membership=None if made is None else made.membership,
        later=inputs.later,
    )


def _verdict(release: Release, inputs: ComparisonInput, *, key: bytes | None) -> dict[str, str]:
    progress.step("verifying")
    try:
        # Queries that changed hands are judged beside the original alone.
        verdict = verify(release, original=inputs.log if release.promise.needs_original else None, key=key)
    except NothingPromised as error:
        return {"standing": "promises nothing", "verdict": str(error)}
    return {"standing": "holds" if verdict.holds else "broken", "verdict": verdict.in_words()}


@contextmanager
def _timed(name: str, seconds: dict[str, float]) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = round(time.perf_counter() - started, 3)
