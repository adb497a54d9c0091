"""Search a release for a purpose: on samples of users first, then on the whole log, then once more on fresh targets."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import polars as pl

from queryveil import progress
from queryveil.attacks.limits import Aim
from queryveil.comparison.judged import ComparisonInput, Judged
from queryveil.comparison.plan import Run
from queryveil.comparison.running import Folder
from queryveil.comparison.workers import Workers
from queryveil.data import QueryLog
from queryveil.planning.candidates import by_turns, stronger_than
from queryveil.planning.deciding import Decision, Finding, is_ruled_out, spoken_against, to_go_on_with
from queryveil.planning.planned import Rung, Wanted
from queryveil.rng import generator

_SHARES = (1 / 8, 1 / 4, 1 / 2)
_FOR_SAMPLES = 0.45
"""The share of the time that samples may take."""
_GROWTH = 1.3
"""The power of the number of users that the time of a run grows with, about."""
_FOR_SAMPLES_AT_MOST = 0.6
_CONFIRMING = 4.0
"""How many times longer than judging a run it takes to make the release, judge it by everything, and report on it."""
_MOST_CONFIRMING = 0.4
_N_TO_THE_END = 6


@dataclass(slots=True, kw_only=True)
class Search:
    """A search under way.

    - `wanted`: what is asked.
    - `inputs`: the whole log, and what attackers and measures are given.
    - `folder`: where results are kept, so that a search that was ended goes on.
    - `workers`: who does the runs.
    - `ladders`: what is tried, if what is wanted does not name it.
    - `started`: when it began, by the monotonic clock.
    - `least_users`: fewer users in a sample tell too little of what is found among all.
    """

    wanted: Wanted
    inputs: ComparisonInput
    folder: Path
    workers: Workers
    ladders: Sequence[tuple[Run, ...]] = ()
    started: float = field(default_factory=time.monotonic)
    least_users: int = 400
    rungs: list[Rung] = field(default_factory=list)
    seconds: dict[str, tuple[int, float]] = field(default_factory=dict)
    largest: int = 0
    most_useful: float = 0.0
    best: str = ""

    def climb(self) -> Decision:
        """Judge all that is to be tried, and return what follows."""
        n_all, runs = self.inputs.log.n_users, self.wanted.run or by_turns(self.ladders)
        sizes = [n for n in (round(share * n_all) for share in _SHARES) if n >= self.least_users]
        for i, n_users in enumerate(() if self.wanted.run else sizes):
            runs = self._on_sample(runs, n_users, part=_FOR_SAMPLES * (i + 1) / len(sizes))
        whole = replace(self.inputs, aim=self._aim())
        # As long as nothing qualifies, half of the time that a release would take goes to more runs.
        found = self._judge(
            runs, whole, name="whole", end=lambda: self.end - self._to_confirm() * (1.0 if self.best else 0.5)
        )
        decision = self._decide(found)
        return decision if decision.picked is not None else self._decide(self._to_the_end(found, decision))

    @property
    def end(self) -> float:
        """When the time is over; never, if it is known what to try."""
        return inf if self.wanted.run else self.started + 60 * self.wanted.minutes

    def _aim(self, *, share: float = 1.0, is_final: bool = False) -> Aim:
        limit, measure = self.wanted.as_limit, self.wanted.for_purpose.measure
        # What is found falls with the number of users at most in proportion, so that a sample may show so much more.
        return Aim(limit=replace(limit, share=min(1.0, limit.share / share)), measure=measure, is_final=is_final)

    def _decide(self, found: Sequence[Judged]) -> Decision:
        return Decision.of(found, limit=self.wanted.as_limit, measure=self.wanted.for_purpose.measure)

    def _on_sample(self, runs: Sequence[Run], n_users: int, *, part: float) -> tuple[Run, ...]:
        """Return the runs to go on with, after those that there was time for were judged on a sample."""
        share = n_users / self.inputs.log.n_users
        sample = replace(sampled(self.inputs, n_users), aim=self._aim(share=share))
        end = self.started + 60 * self.wanted.minutes * part
        found = self._judge(runs, sample, name=f"{n_users}", end=lambda: end)
        limit, measure = self.wanted.as_limit, self.wanted.for_purpose.measure
        findings = [Finding.of(judged, limit=limit, measure=measure) for judged in found]
        kept = to_go_on_with(findings, share=share)
        tried = {one.name for one in findings}
        # What there was no time for may still be tried on the whole log, after what is known to be promising.
        left = (run for run in runs if run.name not in tried)
        return (*(one.judged.run for one in kept if one.judged.run is not None), *left)

    def _to_the_end(self, found: Sequence[Judged], decision: Decision) -> list[Judged]:
        """Judge some of the runs to the end that were given up: those with the least against them, and useful ones."""
        given_up = [one for one in decision.findings if one.is_promised and one.judged.stopped_by]
        safest = sorted(given_up, key=lambda one: (spoken_against(one), -one.useful))
        chosen = {one.name: one.judged.run for pair in zip(safest, given_up, strict=True) for one in pair}
        aimed = replace(self.inputs, aim=self._aim(is_final=True))
        runs = [run for run in list(chosen.values())[:_N_TO_THE_END] if run is not None]
        ends = {judged.name: judged for judged in self._judge(runs, aimed, name="to-the-end", end=lambda: self.end)}
        self.rungs.pop()
        whole = [ends.get(judged.name, judged) for judged in found]
        self.rungs[-1] = replace(self.rungs[-1], judged=tuple(whole))
        return whole

    def _judge(
        self, runs: Sequence[Run], inputs: ComparisonInput, *, name: str, end: Callable[[], float]
    ) -> list[Judged]:
        """Judge as many runs as can be judged until `end`, one after another, and remember what came of them."""
        home = Folder.at(self.folder / "search" / name)
        kept = (home.result_of(run, fingerprint=inputs.fingerprint_of(run)) for run in runs)
        results = {judged.name: judged for judged in kept if judged is not None}
        missing = [run for run in runs if run.name not in results]
        n_users = inputs.log.n_users
        for judged in results.values():
            self._learn(judged, n_users)

        def on_result(judged: Judged) -> None:
            results[judged.name] = judged
            home.keep(judged)
            self._learn(judged, n_users)

        stronger, share = stronger_than(self.ladders), n_users / self.inputs.log.n_users
        limit, measure = self.wanted.as_limit, self.wanted.for_purpose.measure

        def is_hopeless(run: Run) -> bool:
            found = (results[name] for name in stronger.get(run.name, ()) if name in results)
            return any(is_ruled_out(Finding.of(each, limit=limit, measure=measure), share=share) for each in found)

        def in_time() -> Iterator[Run]:
            left = list(missing)
            while left:
                # A run whose stronger neighbour was ruled out comes last: most likely it would be, too.
                run = min(left, key=is_hopeless)
                left.remove(run)
                if time.monotonic() + self._expected(run, n_users) <= end():
                    yield run

        with _telling(lambda: f"{n_users:,} users, {len(results)} of {len(runs)} tried{self.best}"):
            self.workers.judge(in_time(), inputs, on_result=on_result, n_all=len(missing), until=self._hard_end(end()))
        found = [results[run.name] for run in runs if run.name in results]
        is_whole = n_users == self.inputs.log.n_users
        rung = Rung(n_users=n_users, is_whole=is_whole, judged=tuple(found), n_left=len(runs) - len(found))
        self.rungs.append(rung)
        return found

    def _hard_end(self, end: float) -> float:
        """Return when work is ended that takes longer than expected: of samples not before it would cost the rest."""
        for_samples = _FOR_SAMPLES_AT_MOST * 60 * self.wanted.minutes
        return max(end, self.started + for_samples)

    def _learn(self, judged: Judged, n_users: int) -> None:
        self.seconds[judged.name] = n_users, sum(judged.seconds.values())
        found = Finding.of(judged, limit=self.wanted.as_limit, measure=self.wanted.for_purpose.measure)
        if n_users != self.largest:
            self.largest, self.most_useful, self.best = n_users, 0.0, ""
        if found.qualifies and found.useful > self.most_useful:
            self.most_useful = found.useful
            self.best = f"; best so far {found.name}: {found.keeps}"

    def _expected(self, run: Run, n_users: int) -> float:
        """Return about how long a run takes on so many users: as on fewer, or as others did."""
        if run.name in self.seconds:
            n_before, seconds = self.seconds[run.name]
            return float(seconds * (n_users / n_before) ** _GROWTH)
        same = [seconds for n_before, seconds in self.seconds.values() if n_before == n_users]
        return sum(same) / len(same) if same else 0.0

    def _to_confirm(self) -> float:
        """Return how long it takes to make, judge and report on a release of the whole log, about."""
        n_users = self.inputs.log.n_users
        full = [seconds * (n_users / n) ** _GROWTH for n, seconds in self.seconds.values()]
        longest = sorted(full)[-(len(full) // 4) - 1] if full else 0.0
        return min(_MOST_CONFIRMING * 60 * self.wanted.minutes, _CONFIRMING * longest)


def sampled(inputs: ComparisonInput, n_users: int) -> ComparisonInput:
    """Return a part of the users, drawn so that smaller parts lie in larger ones; as many others are the public.

    A public log that was given stays.
    """
    users = inputs.log.frame["user"].unique().sort()
    drawn = generator(inputs.targets_seed).permutation(len(users))
    ours, others = users.gather(drawn[:n_users]), users.gather(drawn[n_users : 2 * n_users])
    log = _of_users(inputs.log, ours)
    public = _of_users(inputs.log, others) if inputs.public is None else inputs.public
    there = set(ours)
    people = tuple(person for person in inputs.people if person.user is None or person.user in there)
    return replace(inputs, log=log, public=public, people=people)


def _of_users(log: QueryLog, users: pl.Series) -> QueryLog:
    return log.with_frame(log.frame.filter(pl.col("user").is_in(users.implode())))


@contextmanager
def _telling(text: Callable[[], str]) -> Iterator[None]:
    """Put words before what is told of the work in the block."""
    outside = copy_context()
    with progress.watch(lambda name, share: outside.run(progress.step, f"{text()} ({name})", share)):
        yield
