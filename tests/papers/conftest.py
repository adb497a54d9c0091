from __future__ import annotations

import pytest

from queryveil.papers.km_runs import Outcomes, gather


@pytest.fixture(scope="session")
def outcomes() -> Outcomes:
    """Runs on one small made-up log; a run that one test made is there for the next."""
    return Outcomes(gather(None, users=1500, values=None, seed=3), seed=3)
