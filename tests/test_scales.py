"""Bounds of scales from the sizes of what pictures show."""

import numpy as np
import pytest

from patternfold.cli.scales import scale_bounds, sizes


def discs(radii, side=64):
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    shifts = np.linspace(-8, 8, len(radii))
    return np.array([np.hypot(x - t, y) < r for r, t in zip(radii, shifts, strict=True)], float)


def test_sizes_are_those_of_discs():
    radii = np.array([6.0, 10.0, 14.0])
    np.testing.assert_allclose(sizes(discs(radii), None), radii / np.sqrt(2), rtol=0.02)  # pixels


def test_masked_pixels_have_no_size():
    images, mask = discs([8.0, 8.0]), np.ones((2, 64, 64), bool)
    images[:, :4], mask[:, :4] = 9, False
    np.testing.assert_allclose(sizes(images, mask), 8 / np.sqrt(2), rtol=0.02)


def test_bounds_follow_the_sizes():
    alike = scale_bounds(discs([10, 10, 10, 10]), None, None, ("theta", "s"))
    assert alike == {"s": (pytest.approx(1 / 1.7, abs=0.01), 1.7)}
    mixed = scale_bounds(discs([5, 10, 10, 20]), None, None, ("sx", "sy"))
    assert mixed["sx"] == mixed["sy"]
    assert mixed["sx"][0] < 0.5 < 2 < mixed["sx"][1]
    assert scale_bounds(np.zeros((3, 8, 8)), None, None, ("s",)) == alike
    assert scale_bounds(discs([10, 20]), None, None, ("tx", "ty")) == {}


def test_classes_have_sizes_of_their_own():
    images = discs([5, 5, 20, 20])
    apart = scale_bounds(images, None, ["a", "a", "b", "b"], ("s",))
    assert apart["s"][1] == 1.7
    assert scale_bounds(images, None, None, ("s",))["s"][1] > 2
