import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import AtomDictionary, Box, CustomDictionary
from patternfold.model.dictionaries import as_dictionary
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
