"""`queryveil anonymize kdelta`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_a_release_is_made_summed_up_and_verified(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "kdelta", log_file, "-o", tmp_path / "out", "--k", 3)
    assert done.returncode == 0
    assert "same shares of queries and clicked URLs as at least 2 others" in done.stdout
    assert not any(text in done.stdout + done.stderr for text in ("kestrel", "rarity", "persona", "shop.example"))
    assert "url" in read_release(tmp_path / "out").log.columns
    judged = run("verify", tmp_path / "out", "--original", log_file)
    assert (judged.returncode, judged.stdout) == (0, "(3, 0.5) k-delta-anonymity holds for 12 users.\n")


def test_what_was_made_up_is_counted_and_warned_of(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "kdelta", log_file, "-o", tmp_path / "out", "--k", 3, "--json")
    manifest = json.loads(done.stdout)
    counts, removed = manifest["counts"], manifest["removed"]
    gone = sum(n for name, n in removed.items() if "rows" in name and name != "bad_rows_skipped")
    assert counts["n_rows_after"] == counts["n_rows_before"] - gone + manifest["changed"]["rows_added"]
    assert manifest["changed"]["rows_added"] > 0
    assert any("made up" in warning for warning in manifest["warnings"])


def test_without_additions_no_row_is_made_up(run: Run, refused: Refused, log_file: Path, tmp_path: Path) -> None:
    rows = ["user,query,url"]
    rows += [f"persona{i},kestrel,https://birds.example" for i in range(4)]
    rows += [f"persona{i},lantern,https://lamps.example/{i % 3}" for i in range(4)]
    (tmp_path / "few.csv").write_text("\n".join(rows) + "\n")
    done = run("anonymize", "kdelta", tmp_path / "few.csv", "-o", tmp_path / "out", "--k", 4, "--no-additions")
    assert done.returncode == 0
    release = read_release(tmp_path / "out")
    assert release.manifest.changed["rows_added"] == 0
    assert release.log.frame["query"].to_list() == ["kestrel"] * 4
    assert run("verify", tmp_path / "out", "--original", tmp_path / "few.csv").returncode == 0
    # In this log nobody clicked what another did.
    line = refused("anonymize", "kdelta", log_file, "-o", tmp_path / "none", "--k", 3, "--no-additions")
    assert "a smaller k, or additions" in line


def test_the_papers_rounding_promises_nothing_and_cannot_be_verified(
    run: Run, refused: Refused, log_file: Path, tmp_path: Path
) -> None:
    done = run("anonymize", "kdelta", log_file, "-o", tmp_path / "out", "--k", 3, "--mode", "paper")
    assert done.returncode == 0
    assert "promises nothing" in done.stdout
    assert "largest distance left" in done.stdout
    assert refused("verify", tmp_path / "out").startswith("nothing to verify, this release promises nothing")


def test_shares_that_differ_by_so_much_at_most_are_promised_and_expected_by_name(
    run: Run, log_file: Path, tmp_path: Path
) -> None:
    for i, options in enumerate(([], ["--mode", "paper"])):
        folder = tmp_path / f"out{i}"
        done = run("anonymize", "kdelta", log_file, "-o", folder, "--k", 3, "--max-distance", 0.5, *options)
        assert done.returncode == 0
        assert "as at least 2 others, but for 50 % of them at most" in done.stdout
        assert "with D up to 0.5 holds for" in run("verify", folder, "--original", log_file).stdout
        assert run("verify", folder, "--expect", "kdelta k=3 max_distance=0.5").returncode == 0
        weaker = "max_distance=0.5 is promised, and max_distance=0.0 or less is expected"
        assert weaker in run("verify", folder, "--expect", "kdelta k=3").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "1"], "k must be 2 or more, got 1"),
        (["--k", "13"], "13 users with something to release are needed and there are 12"),
        (["--delta", "1.5"], "delta must be between 0 and 1, got 1.5"),
        (["--delta", "nan"], "delta must be between 0 and 1, got nan"),
        (["--mode", "loose"], "mode must be exact or paper, got loose"),
        (
            ["--mode", "paper", "--no-additions"],
            "mode must be exact with --no-additions and",
        ),
        (["--centroids", "worst"], "centroids must be best or paper, got worst"),
        (["--min-cluster-users", "0"], "min_cluster_users must be 1 or more, got 0"),
        (["--min-query-users", "0"], "min_query_users must be 1 or more, got 0"),
        (["--keep", "nosuch"], "keep must be columns of the log"),
    ],
)
def test_bad_settings_say_what_to_write_instead(
    refused: Refused, log_file: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    assert message in refused("anonymize", "kdelta", log_file, "-o", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_a_log_without_clicks_works_and_says_what_that_means(run: Run, tmp_path: Path) -> None:
    rows = [f"U{i}\t97091610543{i}\tred wine" for i in range(4)]
    (tmp_path / "day.log").write_text("\n".join(rows) + "\n")
    done = run("anonymize", "kdelta", tmp_path / "day.log", "-o", tmp_path / "out", "--k", 2)
    assert done.returncode == 0
    assert "no clicks: queries are alike only if their texts are the same" in done.stderr
    assert run("verify", tmp_path / "out", "--original", tmp_path / "day.log").returncode == 0


def test_transactions_are_refused(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "bags.txt").write_text("1 2 3\n1 2\n")
    options = ["--format", "transactions", "--k", 2]
    line = refused("anonymize", "kdelta", tmp_path / "bags.txt", "-o", tmp_path / "out", *options)
    assert line == "kdelta is for logs of queries; for transactions there are km, clump and partition"
