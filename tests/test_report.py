"""Pages as text: complete, self-contained, honest. The browser tests look at what they draw."""

import html.parser
import json
import re
import sys

import numpy as np
import pytest
from helpers import small_jpats, small_model, small_views_classifier
from sklearn.exceptions import NotFittedError

from patternfold import PATS
from patternfold.persistence import Examples
from patternfold.show.pages import Page, explorer, report, save_explorer
from patternfold.show.pages.document import _environment
from patternfold.show.pages.explorer import spread
from patternfold.show.pages.payload import pack
from patternfold.show.pages.summary_classes import _lines
from patternfold.show.plotting import PatternDisplay
from patternfold.show.plotting.pattern import centre_of


class Collector(html.parser.HTMLParser):
    """Notes every address that a browser would load, and the headings."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.headings, self.alternatives, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self._inside = tag
        if tag in ("script", "img", "link", "iframe", "source"):
            self.loaded += [named[key] for key in ("src", "href") if named.get(key)]
        if tag == "img":
            self.alternatives.append(named.get("alt"))

    def handle_data(self, data):
        if self._inside in ("h1", "h2") and data.strip():
            self.headings.append(data.strip())
        self._inside = None


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.html, re.DOTALL)[1])


def test_explorer_loads_nothing():
    model, images = small_model()
    page = explorer(model, images, title="<Five> & co.")
    found = Collector(page.html)
    assert all(address.startswith("data:") for address in found.loaded)
    assert "@import" not in page.html
    assert "url(" not in page.html
    assert "&lt;Five&gt; &amp; co." in page.html
    assert "The pattern" in found.headings


def test_explorer_carries_the_numbers():
    model, images = small_model()
    data = data_of(explorer(model, images, names=[f"{i}.png" for i in range(6)]))
    assert data["exact"]
    np.testing.assert_array_equal(data["patterns"][0]["gamma"], model.pattern_.gamma)
    assert data["patterns"][0]["start"] == [0, 0, 0, 1]
    assert [example["name"] for example in data["examples"]][:2] == ["0.png", "1.png"]


def test_patterns_far_off_the_middle_begin_in_it():
    model, _ = small_model()
    gamma = model.pattern_.gamma + np.array([0, 0.3, -0.2, 0, 0])
    model.pattern_ = model.pattern_.replace(model.pattern_.coef, gamma)
    start = data_of(explorer(model))["patterns"][0]["start"]
    centre = centre_of(model.pattern_, (64, 64))
    np.testing.assert_allclose(start, [0, *-centre, 1], atol=0.01)  # of pictures of two sizes
    assert start[1] < -0.1
    display = PatternDisplay(model.pattern_, (24, 24)).plot(centred=True)
    assert np.mean(display.ax_.images[0].get_extent()[:2]) == pytest.approx(centre[0], abs=0.02)


def test_names_can_not_close_the_script():
    model, images = small_model()
    page = explorer(model, images, names=["</script><script>alert(1)</script>"] * 6)
    assert page.html.count("</script>") == 2
    assert data_of(page)["examples"][0]["name"].startswith("</script>")


def test_kept_examples_need_no_projection():
    model, images = small_model()
    examples = Examples(images[:2], model.parameters_[:2], ("a", "b"))
    data = data_of(explorer(model, examples=examples))
    assert [e["name"] for e in data["examples"]] == ["a", "b"]
    np.testing.assert_allclose(data["examples"][1]["lam"], model.parameters_[1])


def test_bytes_are_near_the_values(rng):
    import base64

    values = rng.normal(size=100)
    packed = pack(values)
    levels = np.frombuffer(base64.b64decode(packed["data"]), np.uint8)
    step = (packed["high"] - packed["low"]) / 255
    np.testing.assert_allclose(packed["low"] + step * levels, values, atol=step / 2 + 1e-12)
    assert pack(np.zeros(3))["low"] == 0


def test_examples_are_spread_evenly():
    assert spread(3).tolist() == [0, 1, 2]
    chosen = spread(1000, 36)
    assert len(chosen) == 36
    assert chosen[0] == 0
    assert chosen[-1] == 999


def test_wrong_input():
    model, images = small_model()
    with pytest.raises(NotFittedError):
        explorer(PATS())
    with pytest.raises(ValueError, match="names has 2 entries but there are 6"):
        explorer(model, images, names=["a", "b"])


def test_pages_are_saved_at_once(tmp_path):
    model, _ = small_model()
    path = save_explorer(model, tmp_path / "page.html")
    assert path.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        Page("").save(tmp_path / "nowhere" / "page.html")


def test_notebooks_show_pages():
    shown = Page('<p class="x">&</p>')._repr_html_()
    assert 'srcdoc="&lt;p class=&quot;x&quot;&gt;&amp;&lt;/p&gt;"' in shown


def test_missing_jinja_is_said(monkeypatch):
    _environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'patternfold\[cli\]'"):
        explorer(small_model()[0])
    _environment.cache_clear()


def test_report(tmp_path):
    model, images = small_model(bounds={"s": (0.7, 1.3)})
    page = model.report(tmp_path / "report.html", images)
    found = Collector((tmp_path / "report.html").read_text())
    assert found.headings[0] == "Report on a learned pattern"
    assert found.headings[1:5] == ["Results", "Remarks", "Alignment", "Images that fit worst"]
    assert {"Error path", "Prepared pictures", "Symmetry"} <= set(found.headings)
    assert len([a for a in found.loaded if a.startswith("data:image/png")]) == 9
    assert all(found.alternatives)
    assert all(address.startswith("data:") for address in found.loaded)
    assert "<td>0.0100</td>" in page.html  # the error
    assert found.headings[-1] == "Options"  # and only those that differ
    assert '<th scope="row">bounds' in page.html
    assert '<th scope="row">solver' not in page.html
    assert "of their mean, unaligned" in page.html


def test_report_names_the_worst_images():
    model, images = small_model()
    images[4] = np.rot90(images[4]) + np.random.default_rng(0).random(images[4].shape)
    page = model.report(X=images, names=[f"{i}.png" for i in range(6)])
    assert re.search(r"not explained: 4\.png \(0\.\d+\), ", page.html)
    assert "1 image(s) fit much worse than the others" in page.html


def test_report_without_images():
    page = report(small_model()[0])
    assert "Alignment" not in Collector(page.html).headings


def test_report_on_a_classifier(tmp_path):
    model, images, labels = small_jpats()
    found = Collector(report(model).html)
    assert found.headings[0] == "Report on a classifier"
    assert {"The patterns", "Learning"} <= set(found.headings)
    labels = labels.copy()
    labels[:2] = "dot"  # two bars that are called dots
    page = model.report(tmp_path / "report.html", images, labels)
    found = Collector(page.html)
    assert {"Confusions", "Misclassified images"} <= set(found.headings)
    assert "83.3% of 12" in page.html
    assert "25% of class dot are taken for bar" in page.html
    assert all(address.startswith("data:") for address in found.loaded)


@pytest.mark.parametrize("name", ["$\\frac$", "$", "caf\udce9", "a_b^c$x$", "\\"])
def test_names_of_classes_are_no_formulas(name, tmp_path):
    model, images, labels = small_jpats()
    model.classes_ = np.array([name, "dot"])
    labels = np.where(labels == "bar", name, "dot")
    labels[0] = "dot" if labels[0] == name else name  # some are wrong, and shown
    model.predict = lambda images, sample_mask: labels[::-1]
    page = report(model, tmp_path / "report.html", images, labels)
    assert "Misclassified images" in page.html
    (tmp_path / "report.html").read_text(encoding="utf-8")
    explorer(model, examples=None).save(tmp_path / "explorer.html")


def test_names_of_classes_are_shown_in_full():
    name = "a rather long name of a species, with its author and year"
    assert _lines(name).replace("\n", " ") == name


def test_many_images_are_bounded_by_their_size(monkeypatch):
    model, images = small_model()
    assert len(data_of(explorer(model, images, n_images=4))["examples"]) == 4
    module = sys.modules["patternfold.show.pages.explorer"]
    monkeypatch.setattr(module, "MOST_PIXELS", 3 * images[0].size)
    assert len(data_of(explorer(model, images))["examples"]) == 3


def test_reports_without_an_error_path():
    model, _ = small_model()
    model.error_path_ = np.empty(0)
    text = report(model).html
    assert "learning ended" in text
    assert "normalised error</" not in text
    classifier, _, _ = small_jpats()
    classifier.error_path_ = np.empty((0, 2))
    assert "learning ended" in report(classifier).html


def test_report_on_aligned_views():
    model, images, labels = small_views_classifier()
    found = Collector(model.report(None, images, labels).html)
    assert "Confusions" in found.headings
    assert "Learning" not in found.headings
