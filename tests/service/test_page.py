"""The live page in a real browser, with a service that runs as a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.browsers import HAS_BROWSER, browsing, set_screen
from tests.support.waiting import patience, until

from queryveil.synthesis import synthesize

pytest.importorskip("selenium.webdriver")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_BROWSER, reason="chromium or chromedriver is not installed")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


def look(browser: Any, client: httpx.Client, *, width: int = 1280, scheme: str = "light") -> None:
    set_screen(browser, width=width, scheme=scheme)
    browser.get(str(client.base_url))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "queryveil", "serve", "--port", str(port), "--k", "4", "--l", "3"]
    process = subprocess.Popen(command, cwd=tmp_path_factory.mktemp("service"), stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patience()) as found:
            until(lambda: is_ready(found))
            yield found
    finally:
        process.terminate()
        process.wait(patience())


def is_ready(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.get("/readyz").status_code == 200
    return False


def post(client: httpx.Client, events: list[tuple[str, str]]) -> None:
    body = "".join(json.dumps({"user": user, "query": query}) + "\n" for user, query in events)
    answer = client.post("/events", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.json()["accepted"] == len(events)


def shown(browser: Any, name: str) -> int:
    text = browser.execute_script("return document.getElementById(arguments[0]).textContent", name)
    return int(text.replace(",", "")) if text[:1].isdigit() else -1


def addresses_asked(browser: Any) -> set[str]:
    """Return the hosts that were asked for anything."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {httpx.URL(url).netloc.decode() for url in urls if url.startswith("http")}


def test_the_numbers_move_without_a_reload_and_nothing_of_the_log_is_shown(client: httpx.Client, browser: Any) -> None:
    log = synthesize(users=300, seed=5).log.frame
    events = [*log.select("user", "query").iter_rows(), *[(f"u{i}", f"call 555-010-{i:04}") for i in range(9)]]
    look(browser, client)
    until(lambda: shown(browser, "n_read") >= 0)
    browser.execute_script("window.isTheSame = true")
    before = shown(browser, "n_read")
    for i in range(0, len(events), 400):
        post(client, events[i : i + 400])
    until(lambda: shown(browser, "n_read") == before + len(events))
    for name in ("n_released", "n_waiting", "n_identifiers", "n_outbox_rows"):
        assert shown(browser, name) > 0
    until(lambda: bool(browser.find_elements("css selector", "#example table")))
    assert browser.execute_script("return window.isTheSame") is True
    until(lambda: browser.find_element("id", "status").text == "Ready")
    html = browser.execute_script("return document.documentElement.outerHTML")
    assert addresses_asked(browser) == {client.base_url.netloc.decode()}
    assert browser.get_log("browser") == []
    seen = "\n".join([html, client.get("/stats").text, client.get("/metrics").text])
    assert not [query for _, query in events if len(query) > 8 and query in seen]
    assert not [user for user, _ in events if f">{user}<" in seen or f'"{user}"' in seen]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_narrow_and_wide_screens_in_light_and_dark(
    client: httpx.Client, browser: Any, width: int, scheme: str
) -> None:
    look(browser, client, width=width, scheme=scheme)
    until(lambda: bool(browser.find_elements("css selector", "#example table")))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    red, green, blue = rgb(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert (red + green + blue > 3 * 128) == (scheme == "light")
    assert browser.get_log("browser") == []


def rgb(text: str) -> list[int]:
    return [int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(",")]


CONTRAST = """
const lum = (c) => c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest(".hidden, svg") &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
  const a = lum(parse(getComputedStyle(e).color).slice(0, 3)), b = lum(back(e));
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + "." + e.className]; });
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_every_picture_has_a_name(client: httpx.Client, browser: Any, scheme: str) -> None:
    look(browser, client, scheme=scheme)
    until(lambda: bool(browser.find_elements("css selector", "#example table")))
    pale = [found for found in browser.execute_script(CONTRAST) if found[0] < 4.5]
    assert pale == []
    pictures = browser.find_elements("css selector", "[role=img]")
    assert len(pictures) > 30
    assert all(picture.get_attribute("aria-label") for picture in pictures)
    for table in browser.find_elements("css selector", "table"):
        assert table.find_elements("css selector", "th[scope=col]")
    for header in browser.find_elements("css selector", "thead th"):
        assert header.get_attribute("textContent").strip()


def test_a_service_that_is_gone_is_said_on_the_page(browser: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "queryveil", "serve", "--port", str(port), "--store", "memory:"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patience()) as client:
            until(lambda: is_ready(client))
            look(browser, client)
            until(lambda: browser.find_element("id", "status").text == "Ready")
            assert browser.find_element("id", "hint").is_displayed()
            process.kill()
            until(lambda: browser.find_element("id", "status").text == "No answer from the service")
    finally:
        process.kill()
        process.wait(patience())
