"""km against plain Python, against only listing frequent triples with pyfim, and against itself at larger sizes."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.support.plain_km import paper_delete

from benchmarks.timing import print_ratios, take_turns
from queryveil.cli.output import print_table
from queryveil.methods import Target
from queryveil.methods.km._deletion import Objective, choose
from queryveil.synthesis import synthesize
from queryveil.text import tokenize
from queryveil.text.histories import Histories, collect
from queryveil.text.tokens import encode

SEED = 0


def histories_of(users: int | None) -> Histories:
    """Make up a log of AltaVista's shape and collect its histories."""
    log = synthesize(like="altavista", users=users, seed=SEED).log
    tokens = tokenize(log.frame["query"])
    owners, distinct = encode(log.frame["user"])
    return collect(tokens, owners, n_users=len(distinct))


def anonymize(histories: Histories, *, k: int, m: int, restore: bool = True) -> np.ndarray:
    """Choose what stays: the whole work between reading and writing."""
    objective = Objective(target=Target.LOG_SIZE, worth=np.ones(histories.n_terms), restore=restore)
    return choose(histories, objective, k=k, m=m, rng=np.random.default_rng(SEED))


def against_plain_python(*, users: int = 1500, k: int = 5, m: int = 3) -> None:
    """Compare with the paper's algorithm in plain Python on a small log."""
    small = histories_of(users)
    names = [str(t) for t in range(small.n_terms)]
    utility = dict(zip(names, small.frequency().tolist(), strict=True))
    sets = [frozenset(names[t] for t in terms) for terms in small.user_terms.to_lists()]
    seconds = take_turns({"ours": lambda: anonymize(small, k=k, m=m)}, rounds=5)
    seconds |= take_turns({"plain Python": lambda: paper_delete(sets, utility, k=k, m=m)}, rounds=1)
    print_ratios(f"{users:,} users, k={k}, m={m}: ours against the paper's algorithm", seconds, ours="ours")


def against_mining(large: Histories, *, k: int = 10) -> None:
    """Compare with only listing the frequent sets of size 3 of the same log."""
    from fim import eclat, fpgrowth  # noqa: PLC0415

    rows = large.user_terms.to_lists()
    seconds = take_turns(
        {
            "ours, k=10, m=3": lambda: anonymize(large, k=k, m=3),
            "ours without restore": lambda: anonymize(large, k=k, m=3, restore=False),
            "pyfim eclat, only triples": lambda: eclat(rows, target="s", supp=-k, zmin=3, zmax=3),
            "pyfim fpgrowth, only triples": lambda: fpgrowth(rows, target="s", supp=-k, zmin=3, zmax=3),
        }
    )
    title = f"{large.n_users:,} users, {large.counts.sum():,} occurrences, {len(large.terms):,} user-terms"
    print_ratios(title, seconds, ours="ours, k=10, m=3")


def growth(*, users: int = 45_975, k: int = 10, m: int = 3) -> None:
    """Show the time per million occurrences as the log doubles up to AltaVista's size."""
    logs = {n: histories_of(users * n) for n in (1, 2, 4, 8)}
    seconds = take_turns({str(n): lambda log=log: anonymize(log, k=k, m=m) for n, log in logs.items()})  # type: ignore[misc]
    rows = []
    for n, log in logs.items():
        per_million = seconds[str(n)] / log.counts.sum() * 1e6
        first = seconds["1"] / logs[1].counts.sum() * 1e6
        rows.append((f"{n}x", log.n_users, int(log.counts.sum()), f"{per_million:.3f} s", f"{per_million / first:.2f}"))
    print_table(["size", "users", "occurrences", "per million", "of 1x"], rows, title=f"growth at k={k}, m={m}")
    print()


def memory(*, k: int = 10, m: int = 3) -> None:
    """Report the peak memory of the commands at AltaVista's shape, from file to verified release."""
    with TemporaryDirectory() as scratch:
        log, folder = Path(scratch) / "big", Path(scratch) / "release"
        rows = []
        for name, arguments in {
            "synth": ["synth", str(log), "--like", "altavista"],
            "anonymize km": ["anonymize", "km", str(log), "-o", str(folder), "--k", str(k), "--m", str(m)],
            "verify": ["verify", str(folder)],
        }.items():
            program = "from queryveil.cli import main; import sys; main(sys.argv[1:])"
            watch = (
                "import resource, subprocess, sys; code = subprocess.call([sys.executable, '-c', *sys.argv[1:]],"
                " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
                " print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            )
            done = subprocess.run(
                [sys.executable, "-c", watch, program, *arguments], capture_output=True, text=True, check=True
            )
            code, kilobytes = map(int, done.stdout.split())
            rows.append((name, code, f"{kilobytes / 2**20:.2f} GB"))
    print_table(["command", "exit code", "peak memory"], rows, title="AltaVista's shape")
    print()


if __name__ == "__main__":
    against_plain_python()
    full = histories_of(None)
    against_mining(full)
    del full
    growth()
    memory()
    print(f"this process peaked at {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
