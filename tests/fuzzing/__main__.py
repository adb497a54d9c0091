"""Fuzz every reader: `python -m tests.fuzzing --minutes 30 [--target NAME] [--seed N]`.

Each target gets an equal share of the time, in a process of its own. An input at which it fails is kept in
`.test-home/fuzzing`, for its owner alone; `--input FILE` repeats it. Exits with 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".test-home" / "fuzzing"
HANGS_SECONDS = 20.0
_ROOM_BYTES = 6 << 30
"""Beyond what a process has when it begins: a wrong size in an input must not take the memory of the machine."""
_MOST_STARTS = 10
_LONGEST_SECONDS = 24 * 3600.0


class Report(msgspec.Struct, kw_only=True):
    """What came of one target."""

    n_executions: int = 0
    seconds: float = 0.0
    faults: dict[str, str] = {}
    """Where the input of each is kept."""


def keep(name: str, data: bytes) -> Path:
    """Write an input at which a target failed, for its owner alone."""
    KEPT.mkdir(parents=True, exist_ok=True)
    KEPT.chmod(0o700)
    path = KEPT / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def run_here(name: str, *, seed: str, seconds: float, folder: Path) -> None:
    """Run one target in this process; its input of the moment and its report are in the folder."""
    from tests.fuzzing import all_targets
    from tests.fuzzing.engine import Fault, Run
    from tests.support.kernels import compile_once

    compile_once()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _ROOM_BYTES, hard))
    report, began = Report(), time.monotonic()
    now = os.open(folder / "now", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def save() -> None:
        report.n_executions, report.seconds = run.n_executions, time.monotonic() - began
        (folder / "report.partial").write_bytes(msgspec.json.encode(report))
        (folder / "report.partial").replace(folder / "report")

    def note(data: bytes) -> None:
        os.ftruncate(now, 0)
        os.pwrite(now, data, 0)
        if run.n_executions % 200 == 0:
            save()

    def tell(fault: Fault) -> None:
        report.faults[fault.what] = str(keep(name, fault.data))
        save()

    run = Run(target=all_targets(folder / "files")[name], seed=seed, note=note, tell=tell)
    run.go(seconds=seconds)
    save()


def watch(name: str, *, seed: int, seconds: float) -> Report:
    """Run one target in a process of its own, which is begun again when it dies or hangs."""
    from tests.support.waiting import patience

    whole, until = Report(), time.monotonic() + seconds
    for start in range(_MOST_STARTS):
        left = until - time.monotonic()
        if start and left < 1:
            break
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            here, why = Path(folder), ""
            command = [sys.executable, "-m", "tests.fuzzing", "--here", folder, "--target", name]
            command += ["--seed", f"{seed}.{start}", "--minutes", str(max(1.0, left) / 60)]
            with (here / "errors").open("wb") as errors:
                process = subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env={**os.environ, "RUST_BACKTRACE": "0"},
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                )
                began = time.time()
                while process.poll() is None:
                    time.sleep(0.2)
                    now = here / "now"
                    seen = now.stat().st_mtime if now.exists() else began + 60
                    if time.time() - seen > patience(HANGS_SECONDS):
                        why = f"hangs for more than {HANGS_SECONDS:.0f} seconds"
                        process.kill()
                        process.wait()
            if process.returncode and not why:
                why = f"the process ended with {process.returncode}"
            if (here / "report").exists():
                part = msgspec.json.decode((here / "report").read_bytes(), type=Report)
                whole.n_executions += part.n_executions
                whole.seconds += part.seconds
                whole.faults |= part.faults
            if why:
                data = (here / "now").read_bytes() if (here / "now").exists() else b""
                whole.faults.setdefault(why, str(keep(name, data)))
                sys.stderr.write((here / "errors").read_text(errors="replace")[-300:])
    return whole


def repeat(name: str, file: Path) -> int:
    """Give one input to a target, with the traceback of what goes wrong."""
    from tests.fuzzing import all_targets
    from tests.fuzzing.engine import outcome

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        target, data = all_targets(Path(folder))[name], file.read_bytes()
        wrong, told = outcome(target, data)
        print(wrong or told or "it is read")
        if wrong is not None:
            target.read(data)
    return int(wrong is not None)


def main() -> int:
    """Parse the command line, run targets side by side, and print what came of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="for all targets together, by the clock")
    parser.add_argument("--target", default="*", help="a name or a pattern; all by default")
    parser.add_argument("--seed", default="0", help="other seeds try other inputs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--input", type=Path, help="give this file to the target once")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    # What is written while targets run stays in the checkout.
    scratch = ROOT / ".test-home" / "t"
    scratch.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(scratch)
    if given.here:
        run_here(given.target, seed=given.seed, seconds=given.minutes * 60, folder=given.here)
        return 0
    if given.input:
        return repeat(given.target, given.input)
    return fuzz(given)


def fuzz(given: Any) -> int:
    """Run the targets, and print a line for each as it ends."""
    from tests.fuzzing import all_targets

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        names = fnmatch.filter(all_targets(Path(folder)), given.target)
    if not names:
        print(f"no target is called {given.target}")
        return 2
    seconds = min(_LONGEST_SECONDS, given.minutes * 60 * min(given.processes, len(names)) / len(names))
    n_faults = 0
    print(f"{len(names)} targets, {seconds:.0f} seconds each, {given.processes} at once, seed {given.seed}", flush=True)
    print(f"{'target':26}{'executions':>12}{'seconds':>9}  faults")
    with ThreadPoolExecutor(given.processes) as threads:
        for name, report in zip(
            names, threads.map(lambda name: watch(name, seed=int(given.seed), seconds=seconds), names), strict=True
        ):
            print(f"{name:26}{report.n_executions:12,}{report.seconds:9.0f}  {len(report.faults)}", flush=True)
            for what, kept in report.faults.items():
                n_faults += 1
                print(f"    {what}: python -m tests.fuzzing --target {name} --input {kept}", flush=True)
    print(f"{n_faults} faults" if n_faults else "no fault")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
