"""Attack the program with every malformed log and tampered release: `python -m tests.hostile`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.hostile.campaign import Table, attack_with_logs, attack_with_releases, spread, tampered_releases
from tests.hostile.malformed_logs import malformed_logs


def run(
    *, seed: int, n_logs: int | None = None, n_releases: int | None = None, only: Sequence[str] | None = None
) -> Table:
    """Run the campaign on so many logs and releases, or on all; `only` names the releases that are tampered with."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("logs", "made", "copies"):
            (folder / part).mkdir()
        for found in attack_with_logs(spread(malformed_logs(seed=seed), n_logs), folder / "logs"):
            table.add(found)
        cases = spread(tampered_releases(folder / "made", seed=seed, only=only), n_releases)
        for found in attack_with_releases(cases, folder / "copies"):
            table.add(found)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--cases", type=int, help="logs, and releases; all of them by default")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    table = run(seed=given.seed, n_logs=given.cases, n_releases=given.cases)
    for line in table.lines():
        print(line)
    for found in table.wrong:
        print(f"{found.result}: {found.case}: {found.why}")
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
