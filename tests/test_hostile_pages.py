"""Names that are markup, quotes or odd separators: pages show them, and none executes."""

import json

import numpy as np
import pytest
from browser import open_browser
from helpers import small_jpats, small_model

from patternfold.experiments import Claim
from patternfold.experiments import page as experiments_page
from patternfold.experiments.results import Record
from patternfold.persistence import Examples
from patternfold.show.pages import explorer, report

NAMES = [
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 2</script>",
    "<img src=x onerror='window.hit = 3'>",
    '"><svg onload="window.hit = 4">',
    "'); window.hit = 5; ('",
    "<!--<script>",
    "a\u2028window.hit = 6\u2029b",
    "${window.hit = 7}`{{ 7 * 7 }}",
    "javascript:window.hit = 8",
    "\u202egpj.x\x00\x1b[2J\n\r\t&lt;b&gt;",
    "\u8449\u7247 \U0001f41b.png",
]


@pytest.fixture(scope="module")
def browser():
    with open_browser() as started:
        yield started


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page; nothing in it may run, be refused by the policy, or be asked for."""
    context = browser.new_context()
    troubles, requests = [], []

    def visit_page(text):
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        (tmp_path / "page.html").write_bytes(text)
        page.goto(f"file://{tmp_path / 'page.html'}")
        assert page.evaluate("window.hit") is None
        policy = page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content")
        assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'")
        assert "script-src 'unsafe" not in policy
        return page

    yield visit_page
    context.close()
    assert troubles == []
    assert [url for url in requests if not url.startswith(("file://", "data:"))] == []


def test_explorer(visit):
    model, images = small_model(n_images=len(NAMES))
    labels = tuple(reversed(NAMES))
    examples = Examples(images, model.parameters_, tuple(NAMES), labels)
    page = visit(explorer(model, examples=examples, title=NAMES[0]).content)
    assert page.inner_text("h1") == NAMES[0]
    buttons = page.locator("#image-list button")
    assert buttons.count() == len(NAMES)
    for k, name in enumerate(NAMES):
        buttons.nth(k).click()
        words = page.text_content("#compare-text") + (buttons.nth(k).get_attribute("title") or "")
        words += buttons.nth(k).get_attribute("aria-label") or ""
        assert name.split("\n")[0].strip("\x00") in words, words
    assert page.evaluate("window.hit") is None


def test_classes(visit):
    model = small_jpats()[0]
    model.classes_ = np.array([NAMES[1], NAMES[2]])
    page = visit(explorer(model, title="classes").content)
    assert NAMES[1] in page.text_content("#class-list")
    page = visit(report(model, title=NAMES[3]).content)
    assert page.inner_text("h1") == NAMES[3]
    assert NAMES[1] in page.text_content("table")


def test_report(visit):
    model, images = small_model(n_images=len(NAMES))
    model.stop_reason_ = NAMES[0]
    page = visit(report(model, X=images, names=NAMES, title=NAMES[2]).content)
    assert page.inner_text("h1") == NAMES[2]
    assert NAMES[0] in page.text_content("table")


def test_reproduce_page(visit, monkeypatch, tmp_path):
    config = {
        "title": NAMES[0],
        "figure": NAMES[1],
        "quick": True,
        "seed": 0,
        "seconds_of_steps": {},
        "notes": NAMES,
        "stand_in": NAMES[4],
        "pictures": {},
        "configuration": {NAMES[3]: NAMES},
    }
    claim = Claim(NAMES[0], NAMES[1], False, NAMES[3], NAMES[2])
    record = Record(NAMES[3], tmp_path, config, [claim])
    monkeypatch.setattr(experiments_page, "all_results", lambda results, warn: [record])
    page = visit(experiments_page.write_page(tmp_path).read_bytes())
    assert page.text_content("h2") == NAMES[0]
    assert NAMES[6] in page.text_content(".remarks")


def test_markup_that_is_not_escaped_would_not_run_either(browser, tmp_path):
    """The policy is a wall of its own: a script that got into the page is refused."""
    text = explorer(small_model()[0]).html.replace("</h1>", f"</h1>{NAMES[0]}{NAMES[2]}")
    context = browser.new_context()
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    (tmp_path / "own.html").write_text(text)
    page.goto(f"file://{tmp_path / 'own.html'}")
    assert page.evaluate("window.hit") is None
    assert page.locator("#sliders input").count() == 4  # the page's own script did run
    assert any("Content Security Policy" in line for line in said)
    context.close()


def test_data_can_not_end_the_script():
    model, images = small_model(n_images=len(NAMES))
    made = explorer(model, examples=Examples(images, model.parameters_, tuple(NAMES)))
    inside = made.html.split('id="data">')[1].split("</script>")[0]
    assert [e["name"] for e in json.loads(inside)["examples"]] == NAMES
