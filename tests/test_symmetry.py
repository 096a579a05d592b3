"""Symmetries of patterns, known and learned, and poses folded by them."""

from typing import Any

import numpy as np
import pytest

import patternfold as pf
from patternfold import datasets, manifold
from patternfold.estimators.symmetric import tolerance_of
from patternfold.model.overlaps import centroid, mirrors, overlap_of, turns
from patternfold.symmetry import equivalent_poses, fold, symmetry_of

BASE = pf.Pattern([1.0, -0.7], [[0.7, 0.45, 0.1, 0.2, 0.09], [0.2, 0.2, 0.12, 0.12, 0.1]])
CENTRE = np.array([0.1, -0.05])


def symmetric(order, mirror, mother: Any = "gaussian"):
    """The base pattern at all turns, and mirrored, about the centre."""
    psi, x, y, *sigma = BASE.gamma.T
    rows = []
    for sign in (1, -1) if mirror else (1,):
        for turn in 2 * np.pi * np.arange(order) / order:
            c, s = np.cos(turn), np.sin(turn)
            place = (c * x - s * sign * y + CENTRE[0], s * x + c * sign * y + CENTRE[1])
            rows.append(np.column_stack([sign * psi + turn, *place, *sigma]))
    return pf.Pattern(np.tile(BASE.coef, len(rows)), np.concatenate(rows), mother)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("order", range(1, 7))
def test_known_symmetry(order, mirror):
    found = symmetry_of(symmetric(order, mirror))
    assert (found.order, found.mirror) == (order, mirror)
    assert found.confidence > 0.9
    if order > 1:
        np.testing.assert_allclose(found.centre, CENTRE, atol=1e-3)
    if mirror:
        away = found.axis % (np.pi / order)
        assert min(away, np.pi / order - away) < 1e-2
    turned = np.interp(2 * np.pi / order, found.angles, found.turned, period=2 * np.pi)
    assert turned == pytest.approx(1, abs=1e-3)


def test_round_one():
    found = symmetry_of(pf.Pattern([1.0, -0.5], [[0, 0.2, 0, 0.4, 0.4], [0, 0.2, 0, 0.2, 0.2]]))
    assert found.order == 0
    assert found.mirror
    assert found.name == "round"


def test_closed_form_is_the_integral():
    """Against sums over a grid, which other mother functions get."""
    pattern, other = symmetric(3, False), symmetric(3, False, pf.CustomMother(_gaussian))
    group = np.concatenate([turns(np.array([0.0, 0.7, 2.0])), mirrors(np.array([0.3]))])
    centre = np.array([0.2, 0.1])
    exact, summed = (overlap_of(p)(group, centre) for p in (pattern, other))
    np.testing.assert_allclose(summed, exact, rtol=1e-6)
    np.testing.assert_allclose(centroid(other), centroid(pattern), atol=1e-6)
    np.testing.assert_allclose(centroid(pattern), CENTRE, atol=1e-6)
    assert symmetry_of(other).order == 3


def _gaussian(x, y):
    import jax.numpy as jnp

    return jnp.sqrt(2 / jnp.pi).astype(x.dtype) * jnp.exp(-x * x - y * y)


def test_asymmetry_is_what_the_mean_loses():
    pattern = symmetric(2, False).add_atom(0.1, [[0.0, 0.3, 0.3, 0.2, 0.2]])
    strict, lenient = symmetry_of(pattern, 1e-4), symmetry_of(pattern, 0.05)
    assert (strict.order, lenient.order) == (1, 2)
    assert 1e-4 < lenient.asymmetry < 0.05
    assert lenient.confidence < 1


@pytest.mark.parametrize("family", ["rotation-translation", "similarity", "affine"])
def test_equivalent_poses_render_alike(family, rng):
    pattern = symmetric(4, False)
    lam = datasets.random_images(pattern, 5, rng, family, shape=(8, 8))[1]
    found = equivalent_poses(lam, symmetry_of(pattern), family)
    known = np.isfinite(found[:, :, 0])
    assert known[:, 0].all()
    assert known.sum() > 5
    first = manifold.render(pattern, lam, family, (16, 16))
    for k in range(4):
        same = manifold.render(pattern, found[known[:, k], k], family, (16, 16))
        np.testing.assert_allclose(same, first[known[:, k]], atol=1e-4)
    np.testing.assert_allclose(
        fold(found[:, 2][known[:, 2]], symmetry_of(pattern), family, toward=lam[known[:, 2]]),
        lam[known[:, 2]],
        atol=1e-4,
    )


def test_poses_that_a_family_does_not_have():
    lam = [[0.3, 0.1, 0.0, 1.2, 0.8]]
    found = equivalent_poses(lam, symmetry_of(symmetric(4, False)), "rotation-translation-scaling")
    # A quarter turn exchanges the scales: then it is in the family; of a third only itself is.
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0, 1, 3:], [0.8, 1.2])
    third = equivalent_poses(lam, symmetry_of(symmetric(3, False)), "rotation-translation-scaling")
    assert np.isfinite(third[0, :, 0]).tolist() == [True, False, False]
    bend = pf.CustomTransformation(
        lambda lam, x, y: (x, y - lam[0] * x**2), pf.Box(["k"], [-1.0], [1.0]), [0.0]
    )
    with pytest.raises(TypeError, match="affine"):
        fold([[0.1]], symmetry_of(symmetric(2, False)), bend)


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    pattern = symmetric(3, False)
    bounds = {"tx": (-0.1, 0.1), "ty": (-0.1, 0.1)}
    images, truth = datasets.random_images(
        pattern, 24, rng, "rotation-translation", bounds, (24, 24), noise=0.01
    )
    model = pf.PATS(6, transformation="rotation-translation", n_starts=1, n_exchanges=0)
    return model.fit(images), truth


def test_symmetry_of_a_learned_pattern(learned, tmp_path):
    model, truth = learned
    found = model.symmetry_
    assert (found.order, found.mirror) == (3, False)
    assert found.tolerance > tolerance_of(model.pattern_, 0.0, 24, 576) == 0.004
    model.save(tmp_path / "model.ptm")
    again = pf.load(tmp_path / "model.ptm").symmetry_
    assert (again.order, again.tolerance) == (3, pytest.approx(found.tolerance))
    # Errors against the truth, in the frame of the pattern learned, are small once folded.
    start = fold(model.parameters_, found, model.transformation_)
    goal = fold(truth, symmetry_of(symmetric(3, False)), model.transformation_)
    gap = np.exp(3j * (start[:, 0] - goal[:, 0]))  # frames differ by one angle
    assert np.abs(gap.mean()) > 0.99


def test_before_it_is_fitted():
    assert not hasattr(pf.PATS(), "symmetry_")
    assert not hasattr(pf.JPATS(), "symmetry_")
    with pytest.raises(ValueError, match="no atoms"):
        symmetry_of(pf.Pattern())


def test_the_report_draws_it(learned):
    text = learned[0].report().html
    assert "3 turns, no mirror" in text
    assert "Correlation of the pattern with itself" in text
