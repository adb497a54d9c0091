from __future__ import annotations

import pytest

from queryveil.papers._km_runs import Runs, gather


@pytest.fixture(scope="session")
def km_runs() -> Runs:
    """Runs on one small made-up log; a run that one test made is there for the next."""
    return gather(None, users=1500, values=None, seed=3)
