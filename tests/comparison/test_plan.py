"""What a plan may say, in TOML and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryveil.attacks.limits import Limit
from queryveil.comparison.plan import Plan, Run, default_plan, plan_of, read_plan
from queryveil.errors import BadFile, BadParameter

WHOLE = """
holdout = 0.1
limit = 0.2
utility = "rows_kept"
readers = ["recipient", "site-owner"]
exceptions = {neighbour = 'we say "so"'}
exposure = "clock"

[[run]]
name = "ours"
method = "km"
k = 10
m = 3

[[run]]
method = "clump"
k = [5, 20]
dedupe = true
"""


def read(text: str, tmp_path: Path) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_a_plan_is_read_and_a_list_of_values_means_one_run_each(tmp_path: Path) -> None:
    plan = read(WHOLE, tmp_path)
    assert (plan.holdout, plan.exposure, plan.measure) == (0.1, "clock", "rows_kept")
    assert plan.rule == Limit(share=0.2, readers=("recipient", "site-owner"), exceptions={"neighbour": 'we say "so"'})
    assert [(run.name, run.method) for run in plan.runs] == [
        ("ours", "km"),
        ("clump k=5 dedupe", "clump"),
        ("clump k=20 dedupe", "clump"),
    ]
    assert [run.settings for run in plan.runs] == [
        {"k": 10, "m": 3},
        {"k": 5, "dedupe": True},
        {"k": 20, "dedupe": True},
    ]


def test_several_lists_mean_all_their_combinations_under_names_of_their_own(tmp_path: Path) -> None:
    plan = read('[[run]]\nname = "grid"\nmethod = "km"\nk = [5, 10]\nm = [1, 2]', tmp_path)
    assert [run.name for run in plan.runs] == ["grid k=5 m=1", "grid k=5 m=2", "grid k=10 m=1", "grid k=10 m=2"]


def test_columns_to_keep_are_one_setting_and_not_many_runs(tmp_path: Path) -> None:
    plan = read('[[run]]\nmethod = "km"\nkeep = ["url", "rank"]', tmp_path)
    assert [run.settings for run in plan.runs] == [{"keep": ["url", "rank"]}]


def test_a_plan_that_is_written_reads_the_same(tmp_path: Path) -> None:
    settings = {"k": 5, "m": None, "target": 'a "word"\\', "keep": ["url"], "restore": False, "odd name": 0.5}
    plan = Plan(runs=(Run(name='the "first" one', method="km", settings=settings),), limit=0.01)
    again = read(plan.to_toml(), tmp_path)
    assert again.limit == 0.01
    assert again.runs[0].name == plan.runs[0].name
    assert again.runs[0].settings == settings | {"m": "none"}
    assert read(default_plan().to_toml(), tmp_path) == default_plan()
    own = Plan(
        runs=default_plan().runs[:1], purpose="trends", readers=("recipient",), exceptions={"clock": 'so "we" say\\'}
    )
    assert read(own.to_toml(), tmp_path) == own


def test_a_purpose_names_the_measure_and_without_one_it_is_the_size_kept() -> None:
    runs = (Run(name="one", method="km"),)
    assert Plan(runs=runs, purpose="trends").measure == "trends_kept"
    assert Plan(runs=runs, utility="terms_kept").measure == "terms_kept"
    assert Plan(runs=runs).measure == "log_size_kept"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("holdouts = 0.1\n[[run]]\nmethod = 'km'", "unknown field `holdouts`"),
        ("", "missing required field `run`"),
        ("run = []", "no run"),
        ("holdout = 'some'\n[[run]]\nmethod = 'km'", "Expected `float`, got `str`"),
        ("holdout = 1.0\n[[run]]\nmethod = 'km'", "holdout must be 0 or more and below 1, got 1.0"),
        ("purpose = 'fame'\n[[run]]\nmethod = 'km'", "for must be one of ranking"),
        ("purpose = 'trends'\nutility = 'terms_kept'\n[[run]]\nmethod = 'km'", "utility must be left out"),
        ("readers = ['all']\n[[run]]\nmethod = 'km'", "reader must be one or more of recipient"),
        ("exceptions = {clock = ' '}\n[[run]]\nmethod = 'km'", "except must be an attacker with the reason why"),
        ("limit = nan\n[[run]]\nmethod = 'km'", "limit must be between 0 and 1, got nan"),
        ("[[run]]\nk = 5", "a run must be a table with method"),
        ("[[run]]\nmethod = 'nosuch'", "method must be one of km"),
        ("[[run]]\nmethod = 'km'\n[[run]]\nmethod = 'km'", "the name of a run must be unlike that of any other run"),
        ("[[run]]\nmethod = 'km'\nname = 'Original'", "the name of a run must be unlike that of any other run"),
        ("[[run]\n", "the plan is not TOML"),
    ],
)
def test_what_a_plan_may_not_say_is_one_line_with_the_file(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile) as refused:
        read(text, tmp_path)
    line = str(refused.value)
    assert line.startswith(f"{tmp_path / 'plan.toml'}: ")
    assert said in line
    assert "\n" not in line


def test_a_plan_that_is_not_there_or_not_text_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="the plan cannot be read: No such file"):
        read_plan(tmp_path / "nosuch.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadFile, match="not written in UTF-8"):
        read_plan(tmp_path / "bytes.toml")


def test_a_setting_that_there_is_not_is_found_before_any_work() -> None:
    with pytest.raises(BadParameter, match=r"mine: a setting of km must be one of k, m, .*, got q"):
        Plan(runs=(Run(name="mine", method="km", settings={"q": 1}),)).check()
    default_plan().check()


def test_methods_are_read_with_and_without_settings() -> None:
    plan = plan_of("km:k=5:m=none, token-hash,kdelta:no_such=1")
    assert [(run.method, run.settings) for run in plan.runs] == [
        ("km", {"k": 5, "m": None}),
        ("token_hash", {}),
        ("kdelta", {"no_such": 1}),
    ]
    every = [run.method for run in default_plan().runs]
    assert [run.method for run in plan_of(dict.fromkeys(every)).runs] == every


@pytest.mark.parametrize("words", ["km:k", "km:=5", "km:k=5:"])
def test_settings_that_are_no_pairs_are_one_line(words: str) -> None:
    with pytest.raises(BadParameter, match="methods must be names with settings, such as km:k=5:m=2,clump"):
        plan_of(words)


@pytest.mark.parametrize("words", ["", "nosuch", "km,"])
def test_a_method_that_there_is_not_is_one_line(words: str) -> None:
    with pytest.raises(BadParameter, match="method must be one of km"):
        plan_of(words)


@pytest.mark.parametrize(
    ("line", "said"),
    [("k = [[1]]", "one value, or a list of values"), ("name = 7", "the name of a run must be a text")],
)
def test_lists_of_lists_and_names_that_are_no_texts_are_one_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'[[run]]\nmethod = "km"\n{line}\n')
    with pytest.raises(BadFile, match=said):
        read_plan(path)
