"""A real browser without a window, for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import patience

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
HAS_BROWSER = CHROMIUM is not None and DRIVER is not None
"""Whether Debian's chromium and chromium-driver are there."""
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
_OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}


@contextmanager
def browsing(profile: Path, *, offline: bool = False) -> Iterator[Any]:
    """Return a Chromium that keeps its profile in a folder, and logs what it asks for and what goes wrong."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*_FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    # Selenium's own limits are fixed times.
    browser.set_page_load_timeout(patience(60))
    browser.set_script_timeout(patience())
    try:
        if offline:
            browser.execute_cdp_cmd("Network.enable", {})
            browser.execute_cdp_cmd("Network.emulateNetworkConditions", _OFFLINE)
        yield browser
    finally:
        browser.quit()


def set_screen(browser: Any, *, width: int = 1280, scheme: str = "light") -> None:
    """Let pages think that the screen is so wide, and light or dark; below 500 it is a phone."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
