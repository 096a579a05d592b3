"""The explorer in a real browser: what it draws is what Python renders."""

import base64
from dataclasses import replace

import numpy as np
import pytest
from browser import open_browser
from formula_components import Bend, Ridge, RoundAtoms, ShearTranslation, SoftExponential
from helpers import small_jpats, small_model

from patternfold import CustomMother, InverseMultiquadric, Pattern, datasets, manifold
from patternfold.learning.fitted import fitted_manifolds
from patternfold.persistence import Examples
from patternfold.show.pages import explorer, report
from patternfold.show.pages.explorer import explorer_page
from patternfold.show.pages.payload import Example
from patternfold.show.png import to_grey

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

# Moves sliders as a hand would, waits for the drawing, and reads the canvas and the sliders.
MOVE = """async (values) => {
  for (const [name, value] of Object.entries(values)) {
    const slider = document.getElementById("slider-" + name);
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
  }
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const canvas = document.getElementById("stage");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let text = "";
  for (let i = 0; i < pixels.length; i += 4) text += String.fromCharCode(pixels[i]);
  const sliders = [...document.querySelectorAll("#sliders input")].map((s) => Number(s.value));
  return { width: canvas.width, height: canvas.height, pixels: btoa(text), lam: sliders };
}"""

# Milliseconds from the beginning of loading to a picture on the stage. Pages refuse what playwright
# waits with by itself, a text that is evaluated.
FIRST_PICTURE = """async () => {
  while (document.getElementById("stage").width !== 256 && performance.now() < 10000)
    await new Promise((done) => requestAnimationFrame(done));
  return performance.now();
}"""


def read(found):
    levels = np.frombuffer(base64.b64decode(found["pixels"]), np.uint8)
    return levels.reshape(found["height"], found["width"]).astype(int), np.array(found["lam"])


@pytest.fixture(scope="module")
def browser():
    with open_browser() as started:
        yield started


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page from disk; at the end, nothing may have gone wrong or been asked for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    troubles, requests = [], []

    def visit_page(made):
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        path = made.save(tmp_path / "page.html")
        page.goto(f"file://{path}")
        return page

    yield visit_page
    context.close()
    assert troubles == []
    assert [url for url in requests if not url.startswith(("file://", "data:"))] == []


def expected(model, lam, shape):
    """What Python draws, in grey levels between those of the page."""
    images = manifold.render(model.pattern_, lam, model.transformation_, shape)
    untouched = model.pattern_.render(shape)
    low, high = min(0.0, untouched.min()), untouched.max()
    return to_grey(images, low, high).reshape(-1, *shape).astype(int)


CASES = [
    ("rotation-translation-scaling", "gaussian", 20),
    ("rotation-translation-scaling", "inverse-multiquadric", 20),
    ("affine", "gaussian", 4),
    ("similarity", InverseMultiquadric(-1.5), 4),
    ("rotation-translation", "gaussian", 4),
    ("scaling", "gaussian", 4),
    ("translation", "gaussian", 4),
    (ShearTranslation(), SoftExponential(2.5), 4),
    (ShearTranslation(), Ridge(), 4),
    (Bend(), "gaussian", 4),
]


@pytest.mark.parametrize(("transformation", "mother", "n"), CASES)
def test_canvas_matches_python(transformation, mother, n, visit, rng):
    model, _ = small_model(transformation, mother)
    page = visit(explorer(model))
    box = model.transformation_.parameters
    seen, lams = [], []
    for values in box.sample(rng, n):
        found = page.evaluate(MOVE, dict(zip(box.names, values.tolist(), strict=True)))
        levels, lam = read(found)
        np.testing.assert_allclose(lam, values, atol=0.01)  # sliders move in steps
        seen.append(levels)
        lams.append(lam)
    drawn = np.array(seen)
    assert drawn.shape == (n, 256, 256)
    assert drawn.max() > 100
    difference = np.abs(drawn - expected(model, np.array(lams), (256, 256)))
    assert difference.max() <= 2
    assert drawn.std(axis=0).max() > 10  # the pictures differ, so the sliders do something


def test_other_dictionaries_are_drawn(visit, rng):
    model, _ = small_model(ShearTranslation(), SoftExponential(2.5))
    gamma = RoundAtoms().parameters.sample(rng, 3) * [0.5, 0.5, 0.5] + [0.1, 0, 0]
    model.pattern_ = Pattern([1.0, -0.5, 0.8], gamma, SoftExponential(2.5), RoundAtoms())
    page = visit(explorer(model))
    levels, lam = read(page.evaluate(MOVE, {"k": 0.3, "right": -0.2}))
    assert np.abs(levels - expected(model, lam, levels.shape)[0]).max() <= 2
    page.get_by_label("Outlines of atoms").check()
    expect(page.locator("#outlines circle")).to_have_count(3)


def test_maps_that_are_not_affine_have_no_outlines(visit):
    model, _ = small_model(Bend())
    page = visit(explorer(model))
    assert not page.get_by_label("Outlines of atoms").is_visible()


def test_pictures_that_are_not_square(visit):
    model, _ = small_model(shape=(12, 30))
    levels, lam = read(visit(explorer(model)).evaluate(MOVE, {"tx": 0.2}))
    assert levels.shape == (102, 256)
    assert np.abs(levels - expected(model, lam, levels.shape)[0]).max() <= 2


def test_atoms_are_switched_and_grow(visit):
    model, _ = small_model()
    page = visit(explorer(model))
    page.get_by_role("button", name="Atom 2, subtracts").click()
    levels, _ = read(page.evaluate(MOVE, {}))
    whole = model.pattern_.render((256, 256))
    low, high = min(0.0, whole.min()), whole.max()
    without = to_grey(model.pattern_.take([0, 2]).render((256, 256)), low, high)
    assert np.abs(levels - without.astype(int)).max() <= 2
    assert page.inner_text("#count-value") == "2 of 3, chosen"
    page.get_by_role("slider", name="First atoms").fill("1")
    levels, _ = read(page.evaluate(MOVE, {}))
    first = to_grey(model.pattern_.take([0]).render((256, 256)), low, high)
    assert np.abs(levels - first.astype(int)).max() <= 2
    page.get_by_role("button", name="Watch it grow").click()
    expect(page.locator("#count-value")).to_have_text("3 of 3")


def test_outlines_follow_the_atoms(visit):
    model, _ = small_model()
    page = visit(explorer(model))
    assert page.locator("#outlines circle").count() == 0
    page.get_by_label("Outlines of atoms").check()
    expect(page.locator("#outlines circle")).to_have_count(3)
    page.evaluate(MOVE, {"tx": 0.25, "theta": 0})
    box = page.locator("#outlines circle").nth(2).bounding_box()
    frame = page.locator("#frame").bounding_box()
    centre = (box["x"] + box["width"] / 2 - frame["x"]) / frame["width"] * 2 - 1
    assert centre == pytest.approx(model.pattern_.gamma[2, 1] + 0.25, abs=0.01)


def test_images_beside_their_projections(visit):
    model, images = small_model()
    page = visit(explorer(model, images, names=[f"{i}.png" for i in range(6)]))
    page.get_by_role("button", name="3.png").click()
    _, lam = read(page.evaluate(MOVE, {}))
    found = model.transform(images)[3]
    np.testing.assert_allclose(lam, found, atol=0.01)
    text = page.inner_text("#compare-text")
    distance = model.distances(images)[3]
    assert text.startswith("3.png: distance ")
    # The page keeps images as bytes: 1/255 of the range for each of 256 pixels.
    assert float(text.split()[2]) == pytest.approx(distance, abs=0.1)
    assert page.is_visible("#residual")


def test_large_pictures(visit):
    """As many numbers as 360 × 360 pixels have can't be the arguments of a function."""
    model, _ = small_model(n_images=1, shape=(4, 4))
    model.image_shape_ = (400, 400)
    image = np.zeros((1, 400, 400), np.float32)
    image[0, 100:200, 50:300] = 1
    page = visit(explorer(model, examples=Examples(image, model.parameters_, ("x.png",))))
    page.get_by_role("button", name="x.png").click()
    expect(page.locator("#compare-text")).to_contain_text("x.png: distance ")


def test_keyboard_and_themes(visit):
    model, images = small_model()
    page = visit(explorer(model, images))
    page.focus("#slider-s")
    before = float(page.input_value("#slider-s"))
    page.keyboard.press("ArrowRight")
    assert float(page.input_value("#slider-s")) > before
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "reset"
    page.keyboard.press("Enter")
    assert read(page.evaluate(MOVE, {}))[1][3] == pytest.approx(1, abs=0.01)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    # Everything that can be reached says what it is.
    nameless = """[...document.querySelectorAll("button, input, canvas[role]")].filter((e) =>
      !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).length"""
    assert page.evaluate(nameless) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(scheme, browser, tmp_path):
    """No violation of the rules that axe-core checks: names, roles, contrast, order."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    model, images, labels = small_jpats()
    pages = [explorer(model, images, labels), report(model)]
    with browser.new_context(color_scheme=scheme, bypass_csp=True) as context:
        for made in pages:
            page = context.new_page()
            page.goto(f"file://{made.save(tmp_path / 'page.html')}")
            assert axe.Axe().run(page).response["violations"] == []


def test_dragging_moves_the_pattern(visit):
    model, _ = small_model()
    page = visit(explorer(model))
    box = page.locator("#frame").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    _, lam = read(page.evaluate(MOVE, {}))
    assert lam[1:3] == pytest.approx([0.2, 0], abs=0.01)


def test_classes_side_by_side(visit):
    model, images, labels = small_jpats()
    page = visit(explorer(model, images, labels))
    assert page.locator("#class-list button").count() == 2
    page.get_by_role("button", name="Class dot", exact=True).click()
    levels, lam = read(page.evaluate(MOVE, {"tx": 0.1, "theta": 1.0}))
    drawn = manifold.render(model.patterns_[1], lam[None], "similarity", (256, 256))
    picture = model.patterns_[1].render((256, 256))
    grey = to_grey(drawn, min(0.0, picture.min()), picture.max()).reshape(256, 256)
    assert np.abs(levels - grey.astype(int)).max() <= 2
    expect(page.locator("#caption")).to_have_text("Class dot: all 2 atoms")
    # An image of the other class brings its pattern back.
    page.get_by_role("button", name="image 0, class bar").click()
    expect(page.locator("#caption")).to_have_text("Class bar: all 2 atoms")


def test_many_classes_and_images_stay_quick(visit, rng):
    """A hundred classes and 2,000 images: under 20 MB, and under 2 s to the first picture."""
    model, _, _ = small_jpats()
    view = fitted_manifolds(model)
    labels = [f"species {k:03} of a long list" for k in range(100)]
    patterns = [datasets.random_pattern(12, rng) for _ in labels]
    many = replace(view, patterns=patterns, labels=labels, error_paths=[np.empty(0)] * 100)
    images, lam = rng.random((2000, 40, 40)), np.array([0.3, 0.1, 0.0, 1.0])
    shown = [Example(im, lam, f"{i}.png", labels[i % 100]) for i, im in enumerate(images)]
    made = explorer_page(replace(many, image_shape=(40, 40)), shown, None, [])
    assert len(made.content) < 20e6
    page = visit(made)
    assert page.evaluate(FIRST_PICTURE) < 2000
    assert page.locator("#class-list button").count() == 100
    assert page.locator("#image-list button").count() == 2000
    expect(page.get_by_text(labels[0], exact=True)).to_be_visible()
    levels, _ = read(page.evaluate(MOVE, {"theta": 0.5}))
    assert np.ptp(levels) > 200
    page.get_by_role("button", name=f"1999.png, class {labels[99]}").click()
    expect(page.locator("#caption")).to_have_text(f"Class {labels[99]}: all 12 atoms")


def test_the_stage_does_not_lie_over_training_images(visit):
    model, images = small_model()
    page = visit(explorer(model, images))
    page.set_viewport_size({"width": 1280, "height": 700})  # panels are taller than the window
    edges = """async (down) => {
      scrollTo(0, down);
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const edge = (element, side) => element.getBoundingClientRect()[side];
      const stage = document.querySelector(".stage"), images = document.getElementById("gallery");
      return [edge(stage, "top"), edge(stage, "bottom"), edge(images, "top")];
    }"""
    tops = []
    for down in (0, 100, 2000):
        top, bottom, images_top = page.evaluate(edges, down)
        assert bottom < images_top
        tops.append(top)
    assert tops[0] > tops[1] > tops[2]


def test_phone(browser, tmp_path):
    model, images = small_model()
    path = explorer(model, images).save(tmp_path / "page.html")
    with browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True) as context:
        page = context.new_page()
        page.goto(f"file://{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def ridge(x, y):
    import jax.numpy as jnp

    return jnp.cos(3 * x) * jnp.exp(-(x**2) - y**2)


def test_own_components_move_through_frames(visit):
    model, images = small_model(mother=CustomMother(ridge))
    page = visit(explorer(model, images))
    assert not page.is_visible("#atoms")
    found = page.evaluate(MOVE, {"theta": model.transformation_.parameters.upper[0]})
    levels, lam = read(found)
    drawn = expected(model, lam, levels.shape)[0]
    assert levels.shape == (96, 96)
    # Values are kept as bytes and drawn in grey: two roundings.
    assert np.abs(levels - drawn).max() <= 2
    page.get_by_role("button", name="image 2").click()
    expect(page.locator("#compare")).to_be_visible()
