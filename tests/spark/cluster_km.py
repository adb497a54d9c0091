"""km on two executors that are processes of their own; one of them may be killed in the middle.

python cluster_km.py LOG FOLDER SEED [kill]
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from queryveil import Km, progress
from queryveil.spark import start_spark


def executors() -> list[int]:
    """Find the executors that this process has started, by what the system says of processes."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and is_mine(int(process.name)):
            found.append(int(process.name))
    return found


def is_mine(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def main() -> None:
    path, folder, seed, *rest = sys.argv[1:]
    engine = start_spark("local-cluster[2,1,1024]")
    log = engine.read_log(path)
    told: dict[str, object] = {"executors": len(executors()), "killed": 0, "steps": []}
    steps: list[str] = []

    def kill_one(step: str, _: float) -> None:
        steps.append(step)
        if rest and step == "counting, round 2" and not told["killed"]:
            os.kill(executors()[0], signal.SIGKILL)
            told["killed"] = 1

    start = time.monotonic()
    with progress.watch(kill_one):
        engine.anonymize(Km(k=10, m=3, seed=int(seed)), log, folder)
    told |= {"n_rounds": sum(step.startswith("counting, round") for step in steps), "seconds": time.monotonic() - start}
    print(json.dumps(told))
    engine.session.stop()


if __name__ == "__main__":
    main()
