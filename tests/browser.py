"""A headless browser for tests of pages, and why there is none if there is none."""

import os
import shutil
from contextlib import contextmanager

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@contextmanager
def open_browser():
    """Start the machine's Chromium, or playwright's own; skip the test if there is neither."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    named = os.environ.get("PATTERNFOLD_BROWSER")
    program = named or next(filter(None, map(shutil.which, PROGRAMS)), None)
    with playwright.sync_playwright() as play:
        try:
            browser = play.chromium.launch(executable_path=program, args=FLAGS)
        except playwright.Error as error:
            if program is not None:
                raise
            pytest.skip(
                "no Chromium: install your system's package, or run 'playwright install chromium' "
                f"({str(error).splitlines()[0]})"
            )
        yield browser
        browser.close()
