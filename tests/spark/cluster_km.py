"""km twice on two executors that are processes of their own; the second time one of them is killed in the middle.

python cluster_km.py LOG LEFT KILLED SEED PARTITIONS
"""

from __future__ import annotations

import json
import os
import signal
import sys
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
    path, left, killed, seed, n_partitions = sys.argv[1:]
    engine = start_spark("local-cluster[2,1,1024]")
    engine.session.conf.set("spark.sql.shuffle.partitions", n_partitions)
    log = engine.read_log(path)
    told = []
    for folder in (left, killed):
        there, steps, gone = executors(), list[str](), list[int]()

        def follow(step: str, _: float, steps: list[str] = steps, gone: list[int] = gone, to: str = folder) -> None:
            steps.append(step)
            if to == killed and step == "counting, round 2" and not gone:
                gone.append(executors()[0])
                os.kill(gone[0], signal.SIGKILL)

        with progress.watch(follow):
            engine.anonymize(Km(k=10, m=3, seed=int(seed)), log, folder)
        n_rounds = sum(step.startswith("counting, round") for step in steps)
        told.append({"executors": len(there), "killed": len(gone), "n_rounds": n_rounds})
    print(json.dumps(told))
    engine.session.stop()


if __name__ == "__main__":
    main()
