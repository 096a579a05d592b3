"""Bounds in degrees and pixels, and what is refused."""

import argparse
import math
from types import SimpleNamespace

import pytest
from helpers import small_model

import patternfold as pf
from patternfold.cli.bounds import bounds_of, check_bounds
from patternfold.cli.console import Failure
from patternfold.cli.values import bound
from patternfold.estimators.options import transformation_of
from patternfold.model.units import read, scaled_pixels
from patternfold.persistence import load, save

pytestmark = pytest.mark.usefixtures("as_users_run")


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [("-30deg", -30, "deg"), ("−30°", -30, "°"), (" 1e-1 rad", 0.1, "rad"), ("+.5px", 0.5, "px")],
)
def test_quantities_are_read(text, value, unit):
    assert read(text) == (value, unit)
    assert read(str(read(text))) == read(text)


@pytest.mark.parametrize("text", ["", "deg", "5 mm", "1:2", "nan", "5px5", "0x1px"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match=r"is no number, nor one with a unit: deg, rad or px"):
        read(text)


def test_families_take_degrees():
    family = pf.Similarity().with_bounds({"theta": ("-30deg", "0.5rad"), "s": ("0.8", 1.2)})
    assert family.parameters.lower[0] == pytest.approx(-math.pi / 6)
    assert family.parameters.upper[0] == 0.5
    assert (family.parameters.lower[3], family.parameters.upper[3]) == (0.8, 1.2)
    turned = pf.Affine().with_bounds({"theta": ("-180deg", "180deg")})
    assert turned.parameters.periodic[0]  # still the whole turn


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"theta": (-30, 30)}, r"beyond a full turn, 2π radians; write -30deg:30deg if"),
        ({"theta": (0.0, "700deg")}, None),
        ({"theta": (0.0, "1e6deg")}, r"bounds of 'theta' are \(0, 17453.3\); they must stay"),
        ({"theta": ("-5px", "5px")}, "the unit 'px', but theta is an angle, in rad or deg"),
        ({"tx": ("-5deg", "5deg")}, "the unit 'deg', but tx is a length, in px or half sides"),
        ({"s": ("0.8px", "1px")}, "the unit 'px', but s is a plain number"),
        ({"tx": ("-5px", "5px")}, "the size of the images is not known here"),
        (
            {"tx": ("-5 mm", 1)},
            r"must be a pair .* of texts such as '-30deg' or '5px' \('-5 mm' is",
        ),
        ({"tx": "12"}, r"bounds\['tx'\]='12' must be a pair \(lower, upper\)"),
        ({"tx": 3.0}, r"bounds\['tx'\]=3.0 must be a pair \(lower, upper\)"),
    ],
)
def test_units_must_suit(bounds, message):
    if message is None:
        assert pf.Similarity().with_bounds(bounds)
        return
    with pytest.raises(ValueError, match=message):
        pf.Similarity().with_bounds(bounds)


def test_estimators_take_pixels_of_their_images():
    bounds = {"tx": ("-2px", "2px"), "ty": (-0.25, 0.25)}
    model = pf.PATS(1, transformation="translation", bounds=bounds)
    model.image_shape_ = (16, 32)
    assert transformation_of(model).parameters.upper == pytest.approx((2 * 2 / 32, 0.25))


def test_estimators_refuse_bare_degrees(rng):
    for kind in (pf.PATS, pf.JPATS):
        with pytest.raises(ValueError, match="write -30deg:30deg if they are degrees"):
            kind(1, bounds={"theta": (-30, 30)}).fit(rng.random((4, 8, 8)), [0, 0, 1, 1])


def test_bounds_with_units_are_kept(tmp_path):
    bounds = {"theta": ("-30deg", "30°"), "s": (0.5, 1.5)}
    save(small_model(bounds=bounds)[0], tmp_path / "model.pfold")
    kept = load(tmp_path / "model.pfold")
    assert kept.bounds == {"theta": ("-30.0deg", "30.0°"), "s": (0.5, 1.5)}
    assert kept.transformation_.parameters.upper[0] == pytest.approx(math.pi / 6)


def options(*texts):
    """As with --paper, which chooses no bounds by itself."""
    bounds = [bound(text) for text in texts]
    return argparse.Namespace(bound=bounds, transformation="similarity", atoms=None, paper=True)


class Found:
    def __init__(self, *scales):
        self.placements = [SimpleNamespace(scale=scale) for scale in scales]


def test_pixels_of_the_command_line_are_those_of_the_pictures():
    given = options("theta=-30deg:30deg", "tx=-8px:8px", "s=0.8:1.2")
    check_bounds(given)
    expected = {"theta": ("-30.0deg", "30.0deg"), "tx": ("-2.0px", "2.0px"), "s": (0.8, 1.2)}
    assert bounds_of(given, Found(0.25, 0.25)) == expected
    assert bounds_of(options(), Found(0.25)) is None
    with pytest.raises(Failure, match=r"one scale, .* \(0.25 to 0.5 times theirs\); give half"):
        bounds_of(given, Found(0.25, 0.5))
    bounds_of(options("s=0.8:1.2"), Found(0.25, 0.5))  # nothing is in pixels
    assert scaled_pixels((0.1, "8px"), 0.5) == (0.1, "4.0px")


@pytest.mark.parametrize(
    "text", ["theta", "theta=1", "theta=1:0", "=0:1", "tx=5px:-5px", "a=1:2:3"]
)
def test_bounds_that_are_none(text):
    with pytest.raises(
        argparse.ArgumentTypeError, match="is no bound; write for example theta=-30"
    ):
        bound(text)


def test_bare_degrees_are_refused_before_any_work():
    with pytest.raises(ValueError, match="write -30deg:30deg"):
        check_bounds(options("theta=-30:30"))
