"""The page of a comparison, as it is written."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256

from tests.support.html_trees import Node, parsed
from tests.support.made_up_runs import found, judged, known, many_kinds, side_by_side

from queryveil.attacks.suite import Skipped
from queryveil.comparison.page import render_html


def words(node: Node) -> str:
    return " ".join(node.text.replace("\u00a0", " ").split())


def with_id(page: Node, name: str) -> Node:
    return next(node for node in page.nodes if node.attributes.get("id") == name)


def test_the_page_is_whole_and_has_the_choice_the_picture_the_table_and_the_command() -> None:
    skipped = (Skipped(attacker="known_terms", reason="the release has no rows"),)
    page = parsed(
        render_html(
            side_by_side(
                judged("ours & <theirs>", known(10), found("sybil", 20), kept=0.4, distance=0.3),
                judged("all of it", known(900), found("clock", 800), kept=1.0, standing="promises nothing"),
                judged("groups", kept=0.5, skipped=skipped),
                judged("gone", failed="too few users", standing="failed"),
            )
        )
    )
    assert words(with_id(page, "badge")) == "best: ours & <theirs>"
    assert words(with_id(page, "command")) == "queryveil anonymize km LOG -o DIR --k 5 --m 2"
    assert words(with_id(page, "said")).startswith("Best is ours & <theirs>: of the runs whose promise holds")
    lines = [[words(cell) for cell in row.inside if isinstance(cell, Node)] for row in with_id(page, "runs").all("tr")]
    assert lines == [
        ["run", "outcome", "log size kept", "highest risk, and by which attacker"],
        ["1 ours & <theirs>", "best", "40 %", "3.07 % Planted users"],
        ["3 groups", "not attacked", "50 %", ""],
        ["2 all of it", "promises nothing", "100 %", "91.7 % 4 search terms, only if sure, and 1 more"],
        ["4 gone", "failed", "", ""],
    ]
    assert "gone: too few users." in words(page)
    assert "profile distance, less is better" in words(with_id(page, "measures"))
    matrix = {
        words(row.all("th")[0]): [words(cell) for cell in row.all("td")] for row in with_id(page, "matrix").all("tr")
    }
    assert matrix["4 search terms, only if sure"] == ["92", "1.8", "92", "", ""]
    assert matrix["Planted users"] == ["", "3.1", "", "", ""]
    over = [words(cell) for cell in with_id(page, "matrix").of_class("over")]
    assert over == ["92", "82"]
    assert len([node for node in page.nodes if "data-dot" in node.attributes]) == 4


def test_only_the_pages_own_script_may_run_and_nothing_may_be_loaded() -> None:
    page = parsed(render_html(side_by_side(*many_kinds(), exceptions={"vanity": "</script><b>so we say"})))
    figures, script = page.all("script")
    (policy,) = (node for node in page.all("meta") if "http-equiv" in node.attributes)
    hashed = b64encode(sha256(script.text.encode()).digest()).decode()
    assert "default-src 'none'" in policy.attributes["content"]
    assert policy.attributes["content"].endswith(f"; script-src 'sha256-{hashed}'")
    assert not [node for node in page.nodes for name in node.attributes if name in ("src", "onclick", "onload")]
    # Small enough to be read before it is trusted.
    assert len(script.text) < 6700
    assert json.loads(figures.text)["runs"][5]["name"] == "</script> & such"


def test_exceptions_stand_on_the_first_screen() -> None:
    page = parsed(render_html(side_by_side(*many_kinds(), exceptions={"known_terms": "<nobody> knows any"})))
    assert words(with_id(page, "exceptions")) == (
        "Not considered: Search terms (known_terms), because: <nobody> knows any. It does not apply to groups p=0.4."
    )


def test_a_broken_promise_stands_at_the_top() -> None:
    page = parsed(render_html(side_by_side(judged("bad", known(0), kept=0.9, standing="broken"))))
    assert words(page.all("header")[0]).startswith(
        "Runs, each a method with its settings, on a search log of 4 people Methods side by side "
        "a promise is broken Do not use: bad."
    )


def test_a_comparison_in_which_everything_failed_is_a_page_too() -> None:
    page = parsed(render_html(side_by_side(judged("gone", failed="too few users", standing="failed"))))
    assert words(with_id(page, "badge")) == "none is under the limit"
    assert "hidden" in with_id(page, "command").attributes
