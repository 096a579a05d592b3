import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import AtomDictionary, Box, CustomDictionary
from patternfold.model.dictionaries import AbstractDictionary, as_dictionary
from patternfold.testing import check_dictionary


def rotated_and_scaled(gamma, x, y):
    """Eq. DictModel once more, for derivatives by differentiation instead of closed forms."""
    c, s = jnp.cos(gamma[0]), jnp.sin(gamma[0])
    dx, dy = x - gamma[1], y - gamma[2]
    return (c * dx + s * dy) / gamma[3], (c * dy - s * dx) / gamma[4]


def twin() -> CustomDictionary:
    return CustomDictionary(rotated_and_scaled, AtomDictionary().parameters)


@pytest.mark.parametrize("dictionary", [AtomDictionary(), twin()], ids=["built-in", "custom"])
def test_laws(dictionary, dtype):
    check_dictionary(dictionary, dtype)


def test_coordinates_follow_the_papers_formula(dtype, rng):
    psi, tau, sigma = 0.4, np.array([0.1, -0.2]), np.array([0.5, 0.25])
    points = rng.uniform(-1, 1, size=(2, 20))
    turn = np.array([[np.cos(psi), np.sin(psi)], [-np.sin(psi), np.cos(psi)]])
    expected = np.diag(1 / sigma) @ turn @ (points - tau[:, None])
    gamma = jnp.asarray([psi, *tau, *sigma], dtype)
    found = AtomDictionary().coordinates(gamma, *jnp.asarray(points, dtype))
    # Numbers of size 1 / σ = 4, two products and a sum.
    np.testing.assert_allclose(np.stack(found), expected, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("sigma", [0.0, -0.5])
def test_widths_that_are_not_positive_are_refused(sigma):
    gamma = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 1, sigma]], dtype=float)
    with pytest.raises(ValueError, match=rf"gamma\[1\] has sigma_y={sigma:.6g}; .*positive"):
        AtomDictionary().check(gamma)


def test_dictionaries_compare_by_value():
    assert AtomDictionary() == AtomDictionary()
    assert as_dictionary(None) == AtomDictionary()
    assert twin() == twin() != AtomDictionary()
    own = twin()
    assert as_dictionary(own) is own


@pytest.mark.usefixtures("as_users_run")
def test_a_bare_function_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"wrap a function of .* in CustomDictionary"):
        as_dictionary(rotated_and_scaled)


def test_custom_dictionary_takes_function_then_box():
    box = Box(["sigma"], [0.1], [1.0])
    own = CustomDictionary(lambda gamma, x, y: (x / gamma[0], y / gamma[0]), box)
    assert own.parameters == box
    own.check(np.ones((1, 1)))  # nothing to refuse


def test_names_are_accepted():
    assert as_dictionary("atoms") == AtomDictionary()
    with pytest.raises(ValueError, match=r"dictionary='atom' is not known. Did you mean 'atoms'"):
        as_dictionary("atom")


def test_frames_that_atoms_can_not_follow(rng):
    """A mother that is not radial sees a stretched frame; turned and scaled ones it can follow."""
    gamma, none = AtomDictionary().parameters.sample(rng, 4), np.zeros(2)
    stretch = np.diag([1.0, 2.0])
    assert AtomDictionary().in_frame(gamma, stretch, none, radial=False) is None
    assert AtomDictionary().in_frame(gamma, stretch, none, radial=True) is not None
    turn = 2 * np.array([[0.8, -0.6], [0.6, 0.8]])
    found = AtomDictionary().in_frame(gamma, turn, none, radial=False)
    np.testing.assert_allclose(found[:, 3:], gamma[:, 3:] / 2)
    turned = np.angle(np.exp(1j * (found[:, 0] - gamma[:, 0])))
    np.testing.assert_allclose(turned, -np.arctan2(0.6, 0.8))


def test_narrow_atoms_are_left_out_where_pixels_are_large():
    box, part = AtomDictionary().parameters, AtomDictionary().resolved(0.2)
    assert part.lower[3:] == pytest.approx((0.15, 0.15))
    assert (part.lower[:3], part.upper) == (box.lower[:3], box.upper)
    assert twin().resolved(0.2) == box


def test_outlines_follow_from_an_affine_map(rng):
    """The closed form of the built-in atoms and what any affine map gives are the same ellipses."""
    gamma = AtomDictionary().parameters.sample(rng, 5)
    known = AtomDictionary().ellipses(gamma)
    found = AbstractDictionary.ellipses(AtomDictionary(), gamma)
    np.testing.assert_allclose(found[:, :2], known[:, :2], atol=1e-9)
    np.testing.assert_allclose(np.sort(found[:, 2:4]), np.sort(known[:, 2:4]))
    np.testing.assert_allclose(AtomDictionary().extent(gamma), gamma[:, 3:].min(axis=1))
    assert twin().ellipses(gamma) is None
    assert not twin().extent(gamma).any()
