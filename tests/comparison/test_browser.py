"""The page of a comparison in a real browser, without a network: what its script does is what Python says."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.support.browsers import HAS_BROWSER, browsing, set_screen
from tests.support.made_up_runs import found, judged, known, many_kinds, side_by_side

from queryveil.attacks.names import TITLES
from queryveil.attacks.readers import READERS
from queryveil.comparison.comparison import Comparison
from queryveil.comparison.page import render_html

pytest.importorskip("selenium.webdriver")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_BROWSER, reason="chromium or chromedriver is not installed")]
NAMELESS = """
return [...document.querySelectorAll('svg[role=img]')].filter(
  svg => !svg.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)?.textContent)).length
"""
CHOOSE = """
const [limit, purpose, readers] = arguments, form = document.getElementById('choice');
form.limit.value = limit;
form.purpose.value = purpose;
form.reader.forEach((box, i) => { box.checked = readers.includes(i); });
form.limit.dispatchEvent(new Event('input', { bubbles: true }));
"""
SHOWN = """
const text = node => node.textContent.replace(/\\u00a0/g, ' ').replace(/\\s+/g, ' ').trim();
const all = css => [...document.querySelectorAll(css)];
return {
  said: text(document.getElementById('said')),
  badge: text(document.getElementById('badge')),
  exceptions: all('#exceptions p').map(text),
  runs: all('#runs tbody tr').map(row => [...row.cells].map(text)),
  over: all('#matrix tr').map(row => [...row.cells].map((cell, i) => cell.className === 'over' ? i : 0).filter(i => i)),
  out: all('#matrix tr').map(row => row.className === 'out'),
  drawn: all('[data-dot]').filter(dot => dot.getAttribute('display') !== 'none').map(dot => +dot.dataset.dot),
  at: all('[data-dot]').map(
    dot => Math.round(dot.lastElementChild.getBBox().x + (dot.transform.baseVal[0]?.matrix.e ?? 0))),
  level: Math.round(document.querySelector('[data-axes] .limit').getBBox().y),
}
"""
OUTSIDE = """
const outer = node => { for (let at = node; at; at = at.parentElement) if (at.className === 'scroll') return true; };
return [...document.querySelectorAll('body *')].filter(node => {
  const box = node.getBoundingClientRect();
  return box.width && !outer(node) && (box.right > innerWidth + 1 || box.left < -1);
}).map(node => node.tagName + ' ' + node.textContent.slice(0, 40));
"""
CUT = """
const cut = [];
for (const cell of document.querySelectorAll('#runs td, #runs th, #choice label, #promises th, code')) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (range.getClientRects().length > 1) cut.push(word[0]);
    }
  }
}
return cut;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browsing(tmp_path_factory.mktemp("browser"), offline=True) as started:
        yield started


COMPARISON = side_by_side(*many_kinds(), exceptions={"neighbour": "who has the log has the log", "sybil": "<no> users"})


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "compare.html"
    path.write_text(render_html(COMPARISON), encoding="utf-8")
    return path


def without_script(page: Path) -> Path:
    """Write the page as a browser sees it that runs no scripts."""
    path = page.with_name("still.html")
    text = re.sub("script-src '[^']*'", "script-src 'none'", page.read_text(encoding="utf-8"), count=1)
    path.write_text(text, encoding="utf-8")
    return path


def expected(comparison: Comparison) -> dict[str, Any]:
    """What the page must say of a comparison."""
    picked, numbers = comparison.picked, {row.name: i for i, row in enumerate(comparison.rows, start=1)}
    return {
        "said": comparison.in_words(),
        "badge": f"best: {picked.name}" if picked else "none is under the limit",
        "exceptions": list(comparison.exceptions_in_words()),
        "runs": [[f"{numbers[row.name]} {row.name}", row.outcome] for row in comparison.ranked],
        "drawn": [i for i, row in enumerate(comparison.rows) if row.exposure is not None and row.utility is not None],
    }


def shown(browser: Any) -> dict[str, Any]:
    told: dict[str, Any] = browser.execute_script(SHOWN)
    return {name: told[name] for name in ("said", "badge", "exceptions", "drawn")} | {
        "runs": [cells[:2] for cells in told["runs"]]
    }


def test_the_script_finds_the_best_run_that_python_finds(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    limits = browser.execute_script("return JSON.parse(document.getElementById('figures').textContent).limits")
    names = list(READERS)
    some_readers = [(0, 1, 2, 3, 4, 5), (0,), (1, 2), (2,), (4,), (0, 3)]
    picked = set()
    for place, (purpose, which) in product((0, 3, 8, 14, 20, len(limits) - 1), product(range(3), some_readers)):
        browser.execute_script(CHOOSE, place, purpose, which)
        utility = [{"utility": "log_size_kept"}, {"purpose": "ranking"}, {"purpose": "trends"}][purpose]
        again = COMPARISON.by(limit=limits[place], readers=[names[i] for i in which], **utility)  # type: ignore[arg-type]
        assert shown(browser) == expected(again), (limits[place], purpose, which)
        picked.add(None if again.picked is None else again.picked.name)
    # The choices were such that it mattered.
    assert len(picked) >= 6


def test_with_and_without_the_script_the_page_says_the_same_of_the_choice_it_was_made_with(
    browser: Any, page: Path
) -> None:
    browser.get(page.as_uri())
    ranked = browser.execute_script(SHOWN)
    browser.get(without_script(page).as_uri())
    still = browser.execute_script(SHOWN)
    assert browser.execute_script("return document.getElementById('choice').hidden")
    assert "violates" in browser.get_log("browser")[0]["message"]
    assert still == ranked
    assert still["exceptions"][0].startswith("Not considered: With and without a person (neighbour), because: who has")


def test_the_limit_moves_the_line_and_the_purpose_the_dots(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    seen = []
    for place, purpose in ((3, 0), (12, 0), (12, 2)):
        browser.execute_script(CHOOSE, place, purpose, [0, 1, 2, 3, 4, 5])
        seen.append(browser.execute_script(SHOWN))
    assert seen[0]["level"] > seen[1]["level"]
    assert seen[0]["at"] == seen[1]["at"] != seen[2]["at"]
    assert seen[0]["over"] != seen[1]["over"] == seen[2]["over"]


def test_it_is_used_by_keyboard_and_one_reader_always_stays(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(page.as_uri())
    slider, *_ = browser.find_elements(By.ID, "limit")
    assert (slider.get_attribute("aria-valuetext"), slider.accessible_name) == (
        "5 %",
        "Limit: an attacker may find at most",
    )
    slider.send_keys(Keys.ARROW_RIGHT)
    assert slider.get_attribute("aria-valuetext") == "6 %"
    boxes = browser.find_elements(By.NAME, "reader")
    for box in boxes:
        assert box.accessible_name.startswith(("Recipient", "Acquaintance", "Owner", "Insider", "State body"))
        box.send_keys(Keys.SPACE)
    assert [box.is_selected() for box in boxes] == [False] * 5 + [True]
    select, *_ = browser.find_elements(By.ID, "purpose")
    assert select.accessible_name == "What the release is for, or should keep"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_offline_without_errors_and_nothing_sticks_out_or_is_cut(
    browser: Any, page: Path, width: int, scheme: str
) -> None:
    set_screen(browser, width=width, scheme=scheme)
    browser.get(page.as_uri())
    assert browser.title == "Methods side by side"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE) == []
    assert browser.execute_script(CUT) == []


def test_every_picture_has_a_name_and_a_description(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    assert browser.execute_script("return document.querySelectorAll('svg[role=img]').length") > 0
    assert browser.execute_script(NAMELESS) == 0


def test_a_comparison_of_many_runs_prints_on_six_pages(browser: Any, tmp_path: Path) -> None:
    many = [found(name, 30 + 7 * i) for i, name in enumerate(TITLES)]
    many += [found("likely_terms", 50 * n, n_known=n) for n in range(2, 9)]
    runs = [
        judged(
            f"method k={k} some_setting=value",
            known(10 * k),
            *many,
            kept=0.04 * k,
            measured={f"measure_{i}_kept": k / 50 for i in range(35)},
        )
        for k in range(1, 23)
    ]
    path = tmp_path / "many.html"
    path.write_text(render_html(side_by_side(*runs)), encoding="utf-8")
    browser.get(path.as_uri())
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    n_pages = len(re.findall(rb"/Type /Page\b", base64.b64decode(printed["data"])))
    assert 3 <= n_pages <= 6
