"""Displays: scikit-learn's conventions, and what is drawn is what was learned."""

import csv
import io
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import small_model, small_pattern
from sklearn.exceptions import NotFittedError

from patternfold import PATS, Pattern
from patternfold.show.export import (
    export_pattern,
    pattern_to_csv,
    pattern_to_png,
    pattern_to_svg,
)
from patternfold.show.plotting import (
    AlignmentDisplay,
    ErrorPathDisplay,
    ManifoldDisplay,
    PatternDisplay,
)
from patternfold.show.plotting.alignment import mosaic
from patternfold.show.png import encode_png, to_grey


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_pattern_is_drawn_as_rendered():
    model, _ = small_model()
    display = PatternDisplay.from_estimator(model, resolution=32, title="p")
    (image,) = display.ax_.images
    np.testing.assert_allclose(image.get_array(), model.pattern_.render((32, 32)))
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_title() == "p"


def test_atoms_are_outlined_by_sign():
    display = PatternDisplay(small_pattern()).plot(atoms=True)
    colours = [patch.get_edgecolor()[:3] for patch in display.ax_.patches]
    assert len(set(colours)) == 2
    assert colours[0] == colours[2] != colours[1]  # coefficients 1, -0.6, 0.8
    centres = [patch.get_center() for patch in display.ax_.patches]
    np.testing.assert_allclose(centres, small_pattern().gamma[:, 1:3])


def test_growth_ends_with_the_whole_pattern():
    display = PatternDisplay(small_pattern(), (16, 16)).plot_growth(resolution=20)
    assert [ax.get_title() for ax in display.axes_[0]] == ["1", "2", "3"]
    last = display.axes_[0, -1].images[0].get_array()
    np.testing.assert_allclose(last, small_pattern().render((20, 20)))


def test_error_path_on_given_axes():
    model, _ = small_model()
    ax = plt.figure().add_subplot()
    display = ErrorPathDisplay.from_estimator(model, ax=ax, log=True, label="fives")
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.line_.get_ydata(), model.error_path_)
    assert ax.get_yscale() == "log"
    assert ax.get_legend() is not None


def test_alignment_shows_mean_and_spread(rng):
    images, aligned = rng.random((2, 5, 8, 8))
    display = AlignmentDisplay(images, aligned).plot(n_images=2)
    before, after = display.axes_
    np.testing.assert_allclose(before[2].images[0].get_array(), images.mean(axis=0))
    np.testing.assert_allclose(after[3].images[0].get_array(), aligned.std(axis=0))
    assert after[3].images[0].get_clim() == before[3].images[0].get_clim()
    assert before[0].get_ylabel() == "as given"


def test_alignment_of_an_estimator():
    model, images = small_model()
    flat = images.reshape(len(images), -1)
    display = AlignmentDisplay.from_estimator(model, flat, n_images=3)
    assert display.axes_.shape == (2, 5)
    # Aligned images agree more than the given ones.
    assert display.aligned.std(axis=0).sum() < 0.7 * display.images.std(axis=0).sum()


def test_alignment_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"both must be \(N, H, W\)"):
        AlignmentDisplay(np.zeros((2, 4, 4)), np.zeros((2, 5, 5)))


def test_mosaic_keeps_every_pixel(rng):
    images = rng.random((7, 4, 6))
    picture = mosaic(images)
    assert np.nansum(picture) == pytest.approx(images.sum())
    display = AlignmentDisplay(images, images).plot_mosaics(n_images=5)
    assert display.axes_.shape == (1, 2)


def test_manifold_sweeps_one_parameter_at_a_time():
    model, _ = small_model(bounds={"s": (0.8, 1.25)})
    display = ManifoldDisplay.from_estimator(model, n_steps=5)
    assert display.frames.shape == (4, 5, 64, 64)
    np.testing.assert_allclose(display.values[3], np.linspace(0.8, 1.25, 5))
    unmoved = model.pattern_.render((64, 64))
    for k in range(3):  # θ, t_x and t_y are 0 in the middle
        np.testing.assert_allclose(display.frames[k, 2], unmoved, atol=1e-10)
    assert np.abs(display.frames[0, 0] - unmoved).max() > 0.1


def test_grids_inside_given_axes_and_figures():
    figure, (left, _) = plt.subplots(1, 2)
    display = PatternDisplay(small_pattern()).plot_growth(ax=left, counts=[1, 3])
    assert display.figure_ is figure
    assert len(figure.axes) == 4
    part = plt.figure().subfigures(1, 1)
    assert PatternDisplay(small_pattern()).plot_growth(ax=part).figure_ is part
    with pytest.raises(ValueError, match="placed by hand"):
        PatternDisplay(small_pattern()).plot_growth(ax=figure.add_axes((0, 0, 1, 1)))


@pytest.mark.parametrize("display", [PatternDisplay, ErrorPathDisplay, ManifoldDisplay])
def test_unfitted_models_are_refused(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(PATS())


def test_missing_matplotlib_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'patternfold\[plots\]'"):
        ErrorPathDisplay([0.5]).plot()


# Files for other programs


def test_png_is_read_by_others(tmp_path):
    export_pattern(small_pattern(), tmp_path / "pattern.PNG", (20, 30))
    read = plt.imread(tmp_path / "pattern.PNG")
    expected = to_grey(small_pattern().render((20, 30)))
    np.testing.assert_array_equal(np.round(255 * read), expected)
    assert expected.min() == 0
    assert expected.max() == 255


@pytest.mark.parametrize(("background", "level"), [("dark", 0), ("light", 255)])
def test_exported_pictures_have_the_background_of_the_pictures(background, level):
    """Black or white, though the pattern swings a little below 0 somewhere."""
    dip = Pattern([1.0, -0.08], [[0.0, 0.0, 0.0, 0.3, 0.2], [0.0, 0.8, 0.8, 0.1, 0.1]])
    assert dip.render((32, 32)).min() < -0.05
    levels = plt.imread(io.BytesIO(pattern_to_png(dip, (32, 32), background)))
    assert np.round(255 * levels[[0, 0, -1], [0, -1, 0]]).tolist() == 3 * [level]
    assert np.ptp(levels) == 1
    with pytest.raises(ValueError, match="background='grey'"):
        pattern_to_png(dip, (32, 32), "grey")


def test_colour_png(tmp_path, rng):
    pixels = rng.integers(256, size=(5, 7, 3), dtype=np.uint8)
    (tmp_path / "x.png").write_bytes(encode_png(pixels))
    np.testing.assert_array_equal(np.round(255 * plt.imread(tmp_path / "x.png")), pixels)
    deep = rng.integers(2**16, size=(5, 7, 4), dtype=np.uint16)
    deep[..., 3] |= 0xFF00
    (tmp_path / "deep.png").write_bytes(encode_png(deep))
    read = plt.imread(tmp_path / "deep.png")  # of which pillow keeps the upper eight bits
    np.testing.assert_array_equal(np.round(255 * read), deep >> 8)
    with pytest.raises(ValueError, match="no picture of 8 or 16 bits"):
        encode_png(pixels.astype(float))


def test_csv_gives_the_same_pattern():
    rows = list(csv.reader(io.StringIO(pattern_to_csv(small_pattern()))))
    assert rows[0] == ["coef", "psi", "tau_x", "tau_y", "sigma_x", "sigma_y"]
    numbers = np.array(rows[1:], float)
    assert Pattern(numbers[:, 0], numbers[:, 1:]) == small_pattern()


def test_svg_has_an_outline_per_atom():
    tree = ElementTree.fromstring(pattern_to_svg(small_pattern(), (40, 80)))
    assert tree.get("viewBox") == "-1 -0.5 2 1"
    ellipses = tree.findall(".//{*}ellipse")
    assert [float(e.get("rx", "0")) for e in ellipses] == [0.4, 0.15, 0.2]
    image = tree.find("{*}image")
    assert image is not None
    assert (image.get("href") or "").startswith("data:image/png;base64,")


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'\.bmp' is not known"):
        export_pattern(small_pattern(), tmp_path / "pattern.bmp")
