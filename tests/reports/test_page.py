"""The page and all charts, as text and in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.browsers import HAS_BROWSER, browsing
from tests.support.html_trees import parsed

from queryveil.html_tables import Html, table
from queryveil.reports.charts import Bar, BeforeAfter, Dot, Line, bar_chart, dot_chart, line_chart, paired_bar_chart
from queryveil.reports.render import badge, bullets, command, page, paragraph, scrolling, section, tiles

needs_browser = pytest.mark.skipif(not HAS_BROWSER, reason="chromium or chromedriver is not installed")


def charts() -> list[Html]:
    known = (2, 3, 4, 6, 8)
    shares = {"before": (0.17, 0.49, 0.64, 0.76, 0.85), "after": (0.001, 0.004, 0.006, 0.011, 0.02)}
    dots = [Dot(label=f"method k={5 * i}", x=0.3 + i / 22, y=0.002 * (i % 4) ** 2, picked=i == 9) for i in range(13)]
    dots += [Dot(label="new ids only", x=1, y=0.64, kind="baseline"), Dot(label="odd one", x=0.5, y=0.2, kind="broken")]
    attackers = ("knows 4 words of a person", "knows when a person asked", "name and town")
    rows = [BeforeAfter(label=name, before=0.6, after=0.02, chance=0.01, interval=(0.01, 0.04)) for name in attackers]
    bars = [Bar(label=f"kind {i} of what was removed", value=10.0**i, note="of all") for i in range(5)]
    found = [
        Line(name="before", points=tuple(zip(known, shares["before"], strict=True)), kind="before"),
        Line(name="after", points=tuple(zip(known, shares["after"], strict=True))),
        Line(name="after, 2 wrong", points=((2, 0.0), (8, 0.01)), thin=True),
        Line(name="chance", points=((2, 0.0001), (8, 0.0001)), kind="chance"),
    ]
    frequent = [
        Line(name="original", points=tuple((r, 9000 / r) for r in range(1, 900)), kind="before"),
        Line(name="release", points=tuple((r, 4000 / r) for r in range(1, 900))),
    ]
    plane = partial(dot_chart, title="Dots", description="Of methods.", x_label="kept", y_label="people found")
    return [
        paired_bar_chart(title="Pairs", description="Of attackers.", rows=rows),
        line_chart(title="Lines", description="", x_label="words known", y_label="found", lines=found, is_share=True),
        line_chart(title="Rank", description="", x_label="rank", y_label="times", lines=frequent, is_log=True),
        bar_chart(title="Bars", description="Of rows.", bars=bars),
        plane(dots=dots, path=[(0.3, 0.0), (0.7, 0.002)], limit=0.05),
        plane(dots=dots[:5]),
    ]


def sample() -> str:
    wide = table(["a heading", *"bcdefgh"], rows=[["row", *(10**i for i in range(7))]], caption="A wide table")
    return page(
        title="A release & its <promise>",
        kicker="queryveil report",
        lead=[badge("The promise holds", kind="good"), badge("broken", kind="bad"), badge("not judged", kind="open")],
        body=[
            section("Charts", body=charts(), name="charts"),
            section(
                "Words",
                body=[
                    paragraph("A warning.", kind="warning"),
                    paragraph("A quote.", kind="quote"),
                    paragraph("A note.", kind="note"),
                    tiles([("Rows", "78 %", "of 100"), ("Users", "97 %", "")]),
                    bullets(["one", "<two>"]),
                    command("sha256sum " + "0123456789abcdef" * 4),
                    scrolling(wide),
                ],
            ),
        ],
        footer="Made by queryveil",
    )


def test_a_page_is_whole_and_has_what_readers_and_machines_need() -> None:
    tree = parsed(sample())
    assert tree.all("html")[0].attributes["lang"] == "en"
    assert [node.text for node in tree.all("title")[:1]] == ["A release & its <promise>"]
    assert [node.text for node in tree.all("h1")] == ["A release & its <promise>"]
    for name in ("header", "main", "footer", "section"):
        assert tree.all(name)
    for node in tree.all("section"):
        assert node.all("h2")[0].text
    assert "width=device-width" in [node.attributes.get("content", "") for node in tree.all("meta")][2]
    ids = [node.attributes["id"] for node in tree.nodes if "id" in node.attributes]
    assert len(ids) == len(set(ids))


def test_a_page_asks_for_nothing_and_forbids_it() -> None:
    text = sample()
    tree = parsed(text)
    assert not tree.all("script")
    assert not [node for node in tree.nodes for name in node.attributes if name.startswith("on")]
    links = [node.attributes[name] for node in tree.nodes for name in ("src", "href") if name in node.attributes]
    assert all(link.startswith(("data:", "#")) for link in links)
    for word in ("url(", "@import", "@font-face", 'http-equiv="refresh'):
        assert word not in text
    policy = next(n.attributes["content"] for n in tree.all("meta") if "http-equiv" in n.attributes)
    assert policy.split("; ")[0] == "default-src 'none'"
    assert "script-src" not in policy
    assert len(text) < 150_000


def test_the_same_page_is_the_same_text() -> None:
    assert sample() == sample()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a browser that has no network."""
    with browsing(tmp_path_factory.mktemp("profile"), offline=True) as started:
        yield started


def show(browser: Any, folder: Path, *, width: int = 1280, scheme: str = "light", media: str = "screen") -> None:
    """Open the sample; what the browser says from then on is about it."""
    (folder / "sample.html").write_text(sample(), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get((folder / "sample.html").as_uri())


def asked(browser: Any) -> list[str]:
    """Return the addresses that were asked for; those of the browser's own pages are left out."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if not url.startswith(("chrome:", "data:"))]


# Texts that lie on one another or reach out of the page, by how many pixels.
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("svg[role=img]")) {
  if (!svg.checkVisibility()) continue;
  const boxes = [...svg.querySelectorAll("text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => {
    if (p.left < 0 || p.right > document.documentElement.clientWidth) found.push([a, "outside", p.left, p.right]);
    boxes.slice(i + 1).forEach(([b, q]) => {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 1 && down > 4) found.push([a, b, across, down]);
    });
  });
}
return found;
"""

FONT_SIZES = """
return [...document.querySelectorAll("svg[role=img] text")].filter((e) => e.checkVisibility())
  .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getCTM().a);
"""

SHOWN = 'return [...document.querySelectorAll("svg[role=img]")].filter((e) => e.checkVisibility()).length'

CONTRAST = """
const lum = (c) => c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
  const style = getComputedStyle(e), ink = e.closest("svg") ? style.fill : style.color;
  const a = lum(parse(ink).slice(0, 3)), b = lum(back(e));
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + "." + e.getAttribute("class")]; });
"""


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_opens_offline_and_every_text_can_be_read(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    show(browser, tmp_path, width=width, scheme=scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OVERLAPS) == []
    assert [found for found in browser.execute_script(CONTRAST) if found[0] < 4.5] == []
    assert min(browser.execute_script(FONT_SIZES)) >= 10
    back = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.execute_script(SHOWN) == len(charts())
    assert asked(browser) == [(tmp_path / "sample.html").as_uri()]
    assert browser.get_log("browser") == []


@pytest.mark.slow
@needs_browser
def test_every_chart_has_a_name_that_a_screen_reader_says(browser: Any, tmp_path: Path) -> None:
    show(browser, tmp_path)
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") in ("image", "img")]
    assert [name.split()[0] for name in named] == ["Pairs", "Lines", "Rank", "Bars", "Dots", "Dots"]
    tables = [node for node in tree if node.get("role", {}).get("value") == "table"]
    assert [node["name"]["value"] for node in tables] == ["A wide table"]


@pytest.mark.slow
@needs_browser
def test_in_print_the_page_is_light_and_charts_are_not_cut(browser: Any, tmp_path: Path) -> None:
    show(browser, tmp_path, scheme="dark", media="print")
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    inside = "return [...document.querySelectorAll('.chart')].map((e) => getComputedStyle(e).breakInside)"
    assert set(browser.execute_script(inside)) == {"avoid"}
    assert browser.execute_script(OVERLAPS) == []
