"""The page of a comparison in a real browser, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.browsers import HAS_BROWSER, browsing, set_screen
from tests.support.made_up_runs import found, judged, known, side_by_side

from queryveil.comparison.page import render_html

pytest.importorskip("selenium.webdriver")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_BROWSER, reason="chromium or chromedriver is not installed")]
NAMELESS = """
return [...document.querySelectorAll('svg[role=img]')].filter(
  svg => !svg.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)?.textContent)).length
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browsing(tmp_path_factory.mktemp("browser"), offline=True) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [
        judged(f"method k={k}", known(10 * k), found("clock", 30 * k, n_known=5), kept=0.06 * k, distance=0.1)
        for k in range(1, 15)
    ]
    everything = judged("all of it", known(900), kept=1.0, standing="promises nothing")
    path = tmp_path_factory.mktemp("compare") / "compare.html"
    path.write_text(render_html(side_by_side(*runs, everything)), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [390, 1280])
def test_it_opens_offline_without_errors_and_fits_the_screen(browser: Any, page: Path, width: int) -> None:
    set_screen(browser, width=width)
    browser.get(page.as_uri())
    assert browser.title == "Methods side by side"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_every_picture_has_a_name_and_a_description(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    assert browser.execute_script("return document.querySelectorAll('svg[role=img]').length") > 0
    assert browser.execute_script(NAMELESS) == 0
