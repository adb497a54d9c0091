"""A report in a real browser, without a network: narrow and wide, light and dark, and in print."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.browsers import HAS_BROWSER, browsing, set_screen
from tests.support.made_up_reports import made_up_report

from queryveil.reports import render_html
from queryveil.reports.languages import LANGUAGES

pytest.importorskip("selenium.webdriver")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_BROWSER, reason="chromium or chromedriver is not installed")]
SIZES = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]


def look(browser: Any, page: Path, *, width: int = 1280, scheme: str = "light") -> None:
    set_screen(browser, width=width, scheme=scheme)
    browser.get(page.as_uri())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(made_up_report(warnings=("times are exact",))), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=LANGUAGES)
def spoken_page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / f"report-{request.param}.html"
    warned = ("times are exact: whoever knows when a person searched finds the person's rows",)
    path.write_text(render_html(made_up_report(warnings=warned), lang=request.param), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browsing(tmp_path_factory.mktemp("browser"), offline=True) as found:
        yield found


def test_it_opens_without_a_network_asks_for_nothing_and_nothing_goes_wrong(browser: Any, page: Path) -> None:
    # Whatever the browser does on its own behalf when it starts is over by then.
    browser.get("about:blank")
    browser.get_log("performance")
    look(browser, page)
    assert browser.title == "Release \u201cout\u201d"
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
    assert page.as_uri() in asked
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_it_fits_the_screen_in_light_and_dark(browser: Any, page: Path, width: int, scheme: str) -> None:
    look(browser, page, width=width, scheme=scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour)[:3])) > 3 * 128) == (scheme == "light")
    assert browser.get_log("browser") == []


# Whatever reaches beyond the screen outside of what scrolls by itself, and words that stand on two lines.
MISFITS = """
const [width] = arguments, seen = (e) => e.checkVisibility() && !e.closest("svg, pre, code");
const out = [...document.querySelectorAll("body *")].filter((e) => seen(e) && (e.matches(".scroll") ||
  !e.closest(".scroll")) && e.getBoundingClientRect().right > width + 0.5).map((e) => e.tagName + e.textContent);
const cut = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
while (walk.nextNode()) {
  const node = walk.currentNode;
  if (!seen(node.parentElement) || node.parentElement.closest("#validity")) continue;
  for (const word of node.textContent.matchAll(/[\\p{L}\\p{N}]+/gu)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) cut.push(word[0]);
  }
}
return [out, cut];
"""


def test_on_a_phone_nothing_sticks_out_and_no_word_is_cut_in_two(browser: Any, spoken_page: Path) -> None:
    look(browser, spoken_page, width=390)
    assert browser.execute_script(MISFITS, 390) == [[], []]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_on_a_phone_what_decides_is_in_sight_in_every_table(browser: Any, spoken_page: Path) -> None:
    look(browser, spoken_page, width=390)
    right = "return [...document.querySelectorAll('table')].map((t) => [...t.querySelectorAll('td:nth-child(2)')]"
    right += ".filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().right)).flat()"
    places = browser.execute_script(right)
    assert len(places) > 40
    assert max(places) <= 390


# Contrast as WCAG counts it, of all text that is seen, that in pictures too.
CONTRAST = """
const lum = (c) => c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest("title, desc") &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
  const style = getComputedStyle(e), inSvg = e.closest("svg") !== null;
  const a = lum(parse(inSvg ? style.fill : style.color).slice(0, 3)), b = lum(back(e));
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + "." + e.getAttribute("class")]; });
"""


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_all_text_stands_out(browser: Any, page: Path, width: int, scheme: str) -> None:
    look(browser, page, width=width, scheme=scheme)
    found = browser.execute_script(CONTRAST)
    assert len(found) > 150
    assert [each for each in found if each[0] < 4.5] == []


def test_every_picture_has_a_name_and_a_description_of_its_own(browser: Any, page: Path) -> None:
    look(browser, page)
    browser.execute_cdp_cmd("Accessibility.enable", {})
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") in ("image", "img")]
    assert len(names) >= 4
    assert len(set(names)) == len(names)
    assert all(len(name) > 20 for name in names)
    for table in browser.find_elements("css selector", "table"):
        assert table.find_elements("css selector", "th[scope]")
    levels = [heading.tag_name for heading in browser.find_elements("css selector", "h1, h2, h3")]
    assert levels[0] == "h1"
    assert levels.count("h1") == 1


def test_the_first_screen_says_the_essentials(browser: Any, page: Path) -> None:
    look(browser, page)
    for selector in (".badge", ".lead", ".warning", ".facts", ".tiles", "#criteria h2"):
        place = browser.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().bottom", selector
        )
        assert place < 900, selector


def test_it_prints_on_white_in_a_few_pages_without_links_to_click(browser: Any, page: Path) -> None:
    look(browser, page, scheme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    colour = browser.execute_script("return getComputedStyle(document.documentElement).getPropertyValue('--page')")
    assert colour.strip() == "#ffffff"
    assert not browser.find_element("css selector", "nav").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    pages = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
    assert 2 <= len(pages) <= 8
