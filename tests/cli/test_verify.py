"""`queryveil verify`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest

from queryveil.data import GROUPS_SCHEMA, Groups, QueryLog
from queryveil.guarantees import Guarantee, KdeltaAnonymity, Linkability, NoPromise
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def put_in(release: Path, line: str) -> None:
    """Add a row to the data and make the manifest fit, as a careful forger would."""
    data, manifest = release / "log.tsv", release / "manifest.json"
    data.write_text(data.read_text() + line)
    said = json.loads(manifest.read_text())
    said["data"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    rows = data.read_text().splitlines()[1:]
    n_users, counts = len({row.split("\t")[0] for row in rows}), said["counts"]
    n_before = counts["n_rows_before"] + len(rows) - counts["n_rows_after"]
    counts |= {"n_rows_before": n_before, "n_rows_after": len(rows), "n_users_after": n_users}
    counts["n_users_before"] = max(counts["n_users_before"], n_users)
    users: dict[str, list[str]] = {}
    for row in rows:
        users.setdefault(row.split("\t")[1], []).append(row.split("\t")[0])
    of_one = [each for each in users.values() if len(set(each)) == 1]
    said["texts"] |= {"n_texts": len(users), "n_of_one_person": len(of_one)}
    said["texts"]["n_rows_of_one_person"] = sum(map(len, of_one))
    manifest.write_text(json.dumps(said))


@pytest.fixture
def broken(release: Path) -> Path:
    put_in(release, "13\tquincebread\t\t\t\n")
    return release


def test_a_promise_that_holds_is_exit_0(run: Run, release: Path) -> None:
    done = run("verify", release)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(3, 2)-anonymity holds for 12 users.\n", "")


def test_a_promise_that_is_broken_is_exit_1_and_no_text_is_shown(run: Run, broken: Path) -> None:
    done = run("verify", broken)
    assert done.returncode == 1
    assert done.stdout.startswith("The promise is broken: 1 violation, for example a combination of 1 term")
    assert "row 37" in done.stdout
    assert "quincebread" not in done.stdout + done.stderr


def test_text_is_shown_only_when_asked_for(run: Run, broken: Path) -> None:
    done = run("verify", broken, "--show")
    assert done.returncode == 1
    assert "quincebread: a combination of 1 term is shared by 1 user, 3 are needed (row 37)" in done.stdout


def test_json_says_the_verdict_and_holds_text_only_with_show(run: Run, broken: Path) -> None:
    plain, shown = run("verify", broken, "--json"), run("verify", broken, "--json", "--show")
    verdict = json.loads(plain.stdout)
    assert (plain.returncode, verdict["holds"], verdict["n_violations"]) == (1, False, 1)
    assert "quincebread" not in plain.stdout
    assert json.loads(shown.stdout)["texts"][0].startswith("quincebread: ")


def test_data_that_was_changed_alone_is_wrong_input_and_not_a_broken_promise(refused: Refused, release: Path) -> None:
    with (release / "log.tsv").open("a") as file:
        file.write("99\tkestrel\t\t\t\n")
    assert "sha256 differs" in refused("verify", release)


def test_with_the_original_what_was_invented_is_found(run: Run, release: Path, log_file: Path) -> None:
    assert run("verify", release, "--original", log_file).returncode == 0
    for user in range(13, 16):
        put_in(release, f"{user}\tquincebread\t\t\t\n")
    assert run("verify", release).returncode == 0
    done = run("verify", release, "--original", log_file)
    assert done.returncode == 1
    assert "quincebread" not in done.stdout + done.stderr


def test_what_windows_cannot_tell_is_noted_on_stderr(run: Run, log_file: Path, tmp_path: Path) -> None:
    options = ["--k", 3, "--m", 1, "--window", "6h", "--time", "drop"]
    assert run("anonymize", "km", log_file, "-o", tmp_path / "out", *options).returncode == 0
    done = run("verify", tmp_path / "out")
    assert "note: " in done.stderr
    assert "note: " not in done.stdout


def test_what_is_no_release_is_exit_2(refused: Refused, tmp_path: Path, log_file: Path) -> None:
    assert "there is no such folder" in refused("verify", tmp_path / "nowhere")
    assert "this is a file, and a release is a folder" in refused("verify", log_file)
    assert "manifest.json is missing" in refused("verify", tmp_path)
    assert refused("verify") == "Missing argument 'DIR'."


def test_an_original_that_is_not_there_is_exit_2(refused: Refused, release: Path) -> None:
    assert "there is no such file" in refused("verify", release, "--original", "nowhere.tsv")


def test_the_exit_codes_are_those_of_a_real_process(run_apart: Run, release: Path, tmp_path: Path) -> None:
    assert run_apart("verify", release).returncode == 0
    put_in(release, "13\tquincechłeb\t2006-03-01 00:00:00\t\t\n")
    # A terminal without the letter shows its number, and the exit code is still that of the verdict.
    shown = run_apart("verify", release, "--show", PYTHONIOENCODING="latin-1")
    assert shown.returncode == 1
    assert "quincech\\u0142eb" in shown.stdout
    assert run_apart("verify", tmp_path / "nowhere").returncode == 2


def save_by_hand(data: QueryLog | Groups, promise: Guarantee, folder: Path, *, clusters: str = "") -> Path:
    n_before = 2 if data.kind == "groups" else data.n_rows
    manifest = Manifest(
        method="by hand",
        promise=promise,
        parameters={"weights": "given"} if data.kind == "groups" else {},
        counts=Counts(n_rows_before=n_before, n_rows_after=data.n_rows, n_users_before=2, n_users_after=2),
        removed={},
        columns=ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP, kept=("url",) if data.kind == "log" else ()),
        query_clusters=clusters,
    )
    return Release(data=data, manifest=manifest).save(folder)


CLICKS = QueryLog.from_frame(
    {
        "user": ["1", "2", "1", "2"],
        "query": ["quincebread", "quincebread", "kestrel", "kestrel"],
        "url": ["https://shop.example/q"] * 2 + ["https://shop.example/k"] * 2,
    }
)


def test_clusters_and_shares_are_judged_and_shown_only_when_asked_for(
    run: Run, refused: Refused, tmp_path: Path
) -> None:
    promise = KdeltaAnonymity(k=2, delta=0.5)
    good = save_by_hand(CLICKS, promise, tmp_path / "good", clusters="1 2")
    lying = save_by_hand(CLICKS, promise, tmp_path / "lying", clusters="1 1")
    short = save_by_hand(CLICKS, promise, tmp_path / "short", clusters="1")
    assert run("verify", good).stdout == "(2, 0.5) k-delta-anonymity holds for 2 users.\n"
    CLICKS.frame.write_parquet(tmp_path / "log.parquet")
    assert run("verify", good, "--original", tmp_path / "log.parquet").returncode == 0
    broken = run("verify", lying)
    assert broken.returncode == 1
    assert broken.stdout.startswith("The promise is broken: 1 violation, for example two queries of a cluster of 2")
    assert "quincebread" not in broken.stdout + broken.stderr
    assert "quincebread + kestrel: two queries" in run("verify", lying, "--show").stdout
    assert "query_clusters of the manifest needs a number" in refused("verify", short)


def test_groups_are_judged_and_compared_with_profiles_or_a_log(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame([(1, 2, 3, ["quincebread", "pup"], [1.0, 0.5], [2, 1])], schema=GROUPS_SCHEMA, orient="row")
    good = save_by_hand(Groups(frame=frame), Linkability(p=0.5), tmp_path / "good")
    broken = save_by_hand(Groups(frame=frame), Linkability(p=0.5, strict=True), tmp_path / "broken")
    assert run("verify", good).stdout == "0.5-linkability holds for 2 users.\n"
    done = run("verify", broken)
    assert done.returncode == 1
    assert "a term of a group is held by 2 of its members, 1 is allowed (row 1)" in done.stdout
    assert "quincebread" not in done.stdout
    assert json.loads(run("verify", broken, "--json", "--show").stdout)["texts"][0].startswith("quincebread: ")
    profiles, log = tmp_path / "before.jsonl", tmp_path / "log.csv"
    profiles.write_text('{"user": "1", "terms": ["quincebread", "pup"]}\n{"user": "2", "terms": ["quincebread"]}\n')
    log.write_text("user,query\n1,Quincebread pup\n2,quincebread\n")
    for original, options in (
        (profiles, []),
        (profiles, ["--format", "profiles"]),
        (log, []),
        (log, ["--format", "csv"]),
    ):
        assert run("verify", good, "--original", original, *options).returncode == 0
    log.write_text("user,query\n1,pup\n2,pup\n")
    assert run("verify", good, "--original", log).returncode == 1


def test_a_release_without_a_promise_is_exit_2(refused: Refused, tmp_path: Path) -> None:
    folder = save_by_hand(CLICKS, NoPromise(reason="counts were rounded"), tmp_path / "out")
    assert "this release promises nothing: counts were rounded" in refused("verify", folder)


def test_everything_in_the_folder_is_judged_and_each_fault_is_a_line(run: Run, release: Path) -> None:
    (release / "raw.tsv").write_text("persona00\tquincebread\n")
    done = run("verify", release)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "The release has a fault: raw.tsv is a file that manifest.json does not list.\n"
    data = release / "log.tsv"
    data.write_text(data.read_text().replace("\t\t\t\n", "\t2006-03-01 07:10:00\t\t\n"))
    put_in(release, "")
    done = run("verify", release)
    assert done.returncode == 1
    assert done.stdout.startswith("The release has 2 faults, for example raw.tsv is a file")
    assert done.stdout.splitlines()[1:] == [
        "fault: raw.tsv is a file that manifest.json does not list",
        "fault: log.tsv: column time should be empty, and is not in 36 rows (the first is row 1)",
    ]
    plain = run("verify", release, "--json")
    verdict = json.loads(plain.stdout)
    assert (plain.returncode, verdict["holds"], verdict["n_violations"], len(verdict["faults"])) == (1, False, 0, 2)


def test_a_pipe_in_the_folder_is_one_line_at_once(run_apart: Run, release: Path) -> None:
    os.mkfifo(release / "more")
    done = run_apart("verify", release)
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 1)
    (release / "log.tsv").unlink()
    os.mkfifo(release / "log.tsv")
    done = run_apart("verify", release)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "log.tsv is a pipe, and a release is made of files" in done.stderr


@pytest.mark.parametrize(
    "expected", ["km", "km k=3 m=2", "km k=2 m=1", "km k=3, m=2", "km window=none items=no"], ids=lambda text: text
)
def test_a_promise_as_strong_as_expected_passes(run: Run, release: Path, expected: str) -> None:
    assert run("verify", release, "--expect", expected).returncode == 0


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("km k=4", "k=3 is promised, and k=4 or more is expected"),
        ("km k=3 m=3", "m=2 is promised, and m=3 or more is expected"),
        ("km m=none", "m=2 is promised, and m=none is expected"),
        ("km window=7d", "window=none is promised, and window=7d or a part of it is expected"),
        ("km items=yes", "items=no is promised, and items=yes is expected"),
        ("clump k=3", "clump is expected, and this is a release of km"),
    ],
)
def test_a_weaker_promise_or_another_method_fails(run: Run, release: Path, expected: str, said: str) -> None:
    done = run("verify", release, "--expect", expected)
    assert (done.returncode, done.stdout) == (1, f"The release has a fault: {said}.\n")


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (
            "",
            "expect must be a method (km, clump, partition, transactions, kdelta, plink, swap, dp, google_2024, ",
        ),
        ("magic k=3", "expect must be a method ("),
        ("km l=3", "expect must be of km one of k=, m=, window=, time_unit=, items=, got l=3"),
        ("km k=many", "k of expect must be a whole number, got many"),
        ("km window=soon", "window of expect must be 12h, 1d, 7d, 2w or none, got soon"),
    ],
)
def test_an_expectation_that_makes_no_sense_is_one_line(
    refused: Refused, release: Path, expected: str, said: str
) -> None:
    assert said in refused("verify", release, "--expect", expected)


def test_a_release_that_promises_nothing_is_less_than_expected(run: Run, log_file: Path, tmp_path: Path) -> None:
    assert run("anonymize", "pseudonymise", log_file, "-o", tmp_path / "out").returncode == 0
    done = run("verify", tmp_path / "out", "--expect", "km k=3")
    assert done.returncode == 1
    assert "km is expected, and this is another release, which promises nothing" in done.stdout


def test_members_are_counted_again_by_their_file(run: Run, refused: Refused, log_file: Path, tmp_path: Path) -> None:
    who, folder = tmp_path / "who.csv", tmp_path / "groups"
    assert run("anonymize", "plink", log_file, "-o", folder, "--membership", who).returncode == 0
    done = run("verify", folder, "--membership", who, "--original", log_file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: members were counted" in run("verify", folder, "--membership", who).stderr
    lines = who.read_text().splitlines()
    who.write_text("\n".join(lines[:-1]) + "\n")
    done = run("verify", folder, "--membership", who)
    assert done.returncode == 1
    assert "in the membership file (row " in done.stdout
    assert "there is no such file" in refused("verify", folder, "--membership", tmp_path / "nowhere.csv")


def test_a_release_is_signed_and_checked_with_the_keys_of_keygen(run: Run, refused: Refused, release: Path) -> None:
    office = release.parent / "office"
    made = run("keygen", office)
    assert (made.returncode, made.stderr) == (0, "")
    assert run("verify", release, "--signed-by", f"{office}.pub").returncode == 1
    signed = run("sign", release, "--key", f"{office}.key")
    assert (signed.returncode, signed.stdout) == (0, f"signed: {release / 'manifest.sig'}\n")
    assert run("verify", release, "--signed-by", f"{office}.pub").returncode == 0
    assert "no public Ed25519 key" in refused("verify", release, "--signed-by", f"{office}.key")
    assert "is already there" in refused("keygen", office)
    other = release.parent / "other"
    run("keygen", other)
    told = run("verify", release, "--signed-by", f"{other}.pub")
    assert told.returncode == 1
    assert "manifest.sig was not made with this key" in told.stdout
