"""Noisy counts in a comparison."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from queryveil.comparison import compare
from queryveil.comparison.methods import build_method, method_of
from queryveil.comparison.plan import default_plan
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import Dp, Mechanism
from queryveil.methods.dp.dp import synthesized
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of

pytestmark = pytest.mark.slow

WITHOUT_OPENDP = """
import sys
# As if it were not installed.
sys.modules["opendp"] = None
from queryveil.comparison import compare
from queryveil.testing.logs import log_of
log = log_of({f"persona{i}": ["red wine", f"own {i}"] for i in range(60)})
found = compare(log, "dp:epsilon=1.0,query_threshold:k=5", holdout=0.0)
for row in found.rows:
    print(row.name, "|", row.judged.standing, "|", row.missing)
print(len(found.broken))
"""


@pytest.fixture(scope="module")
def log() -> QueryLog:
    people = {f"persona{i}": ["red wine", "old oak", f"kestrel {i}"] for i in range(300)}
    return log_of(people)


def test_a_run_of_noisy_counts_is_judged_like_any_other(log: QueryLog, tmp_path: Path) -> None:
    found = compare(log, "dp:epsilon=1.0", folder=tmp_path / "out", exposure="sybil", seed=1)
    (row,) = found.rows
    assert row.judged.standing == "holds"
    assert row.missing == ""
    assert row.exposure is not None
    assert 50 < row.exposure.n_targets <= 400
    assert row.utility is not None
    assert 0 < row.utility.value < 1
    assert row.command == "queryveil anonymize dp LOG -o DIR --epsilon 1.0"
    page = (tmp_path / "out" / "compare.html").read_text()
    assert "kestrel" not in page
    assert "its probability differs by a factor" in page


def test_nobody_can_be_sought_in_counts_and_the_row_says_so(log: QueryLog) -> None:
    found = compare(log, "dp:epsilon=1.0", exposure="likely_terms:4", seed=1)
    (row,) = found.rows
    assert row.missing == "likely_terms does not apply: the release has no rows that are one person's"
    assert found.picked is None


def test_without_the_extra_the_run_says_how_to_get_it_and_others_go_on() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_OPENDP], capture_output=True, text=True, check=True)
    first, second, n_broken = done.stdout.splitlines()
    assert first.startswith("dp epsilon=1.0 | failed | ")
    assert first.endswith("pip install 'queryveil[dp]'")
    assert second.startswith("query_threshold k=5 | promises nothing | ")
    assert n_broken == "0"


def test_without_the_extra_nobody_is_shown_a_run_that_they_did_not_ask_for(
    log: QueryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "dp is left out: pip install 'queryveil[dp]'"
    assert "dp" in {run.method for run in default_plan().runs}
    monkeypatch.setattr("queryveil.comparison.plan._DEFAULT", {"dp": ({},), "query_threshold": ({"k": 5},)})
    assert said not in compare(log, holdout=0.0, seed=1).notes()
    # As Python treats a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    found = compare(log, folder=tmp_path / "out", holdout=0.0, seed=1)
    assert [row.name for row in found.rows] == ["query_threshold k=5"]
    assert found.left_out == (said,)
    assert found.notes()[-1] == said
    assert found.by(limit=0.5).left_out == (said,)
    assert "dp is left out" in (tmp_path / "out" / "compare.html").read_text()
    assert compare(log, "query_threshold", holdout=0.0, seed=1).left_out == ()


def test_the_method_behind_made_up_sessions_is_that_of_their_counts() -> None:
    made = synthesize(users=50, seed=1).log
    release = Dp(epsilon=2.0, max_queries=3, mechanism=Mechanism.GAUSSIAN, rounds=2, seed=1).anonymize(made)
    again = method_of(synthesized(release, n_users=5, seed=1).manifest)
    assert isinstance(again, Dp)
    assert release.manifest.noise == again.noise


@pytest.mark.parametrize(
    ("setting", "value", "allowed"),
    [("rounds", 3, "1 or 2"), ("mechanism", "dice", "one of auto, .*gaussian"), ("epsilon", 0, "above 0")],
)
def test_a_setting_it_cannot_have_is_one_line(setting: str, value: str | int, allowed: str) -> None:
    with pytest.raises(BadParameter, match=f"{setting} must be {allowed}"):
        build_method("dp", {setting: value})
