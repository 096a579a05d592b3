import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import (
    Box,
    CustomDictionary,
    CustomMother,
    Grid,
    InverseMultiquadric,
    Pattern,
)

COEF = [1.0, -0.5, 2.0]
GAMMA = [[0.0, 0.0, 0.0, 0.5, 0.25], [0.7, 0.2, -0.3, 0.3, 0.6], [-2.0, -0.4, 0.1, 0.4, 0.2]]


def reference(x, y, coef=COEF, gamma=GAMMA):
    """p of Gaussian atoms, in plain NumPy."""
    total = np.zeros(np.broadcast(x, y).shape)
    for c, (psi, tau_x, tau_y, sigma_x, sigma_y) in zip(coef, gamma, strict=True):
        dx, dy = x - tau_x, y - tau_y
        u = (np.cos(psi) * dx + np.sin(psi) * dy) / sigma_x
        v = (np.cos(psi) * dy - np.sin(psi) * dx) / sigma_y
        total = total + c * np.sqrt(2 / np.pi) * np.exp(-(u**2) - v**2)
    return total


@pytest.fixture
def pattern() -> Pattern:
    return Pattern(COEF, GAMMA)


@pytest.mark.parametrize("shape", [(), (1,), (3, 6)])
def test_values_at_points_of_any_shape(pattern, rng, shape):
    x, y = rng.uniform(-1, 1, size=(2, *shape))
    found = pattern(x, y)
    assert found.shape == shape
    np.testing.assert_allclose(found, reference(x, y), rtol=1e-12, atol=1e-13)  # float64, 3 exp


def test_points_broadcast(pattern):
    x, y = np.linspace(-1, 1, 6)[None], np.linspace(-1, 1, 3)[:, None]
    np.testing.assert_allclose(pattern(x, y), reference(x, y), rtol=1e-12, atol=1e-13)
    assert pattern(0.0, 0.0) == pytest.approx(reference(0.0, 0.0), rel=1e-12)


def test_it_is_defined_everywhere_and_vanishes_far_away(pattern):
    far = np.geomspace(1e1, 1e30, 18, dtype=np.float32)
    np.testing.assert_array_equal(pattern(far, -far), 0)
    np.testing.assert_array_equal(np.stack(pattern.gradient(far, -far)), 0)


def test_gradient_against_finite_differences(pattern, rng):
    x, y = rng.uniform(-1, 1, size=(2, 18))
    h = 1e-5  # central differences err by h² · |p'''| / 6, some 1e-8, and rounding by 1e-11
    expected = np.stack(
        [
            (reference(x + h, y) - reference(x - h, y)) / (2 * h),
            (reference(x, y + h) - reference(x, y - h)) / (2 * h),
        ]
    )
    np.testing.assert_allclose(np.stack(pattern.gradient(x, y)), expected, atol=1e-7)
    assert np.abs(expected).max() > 1


@pytest.mark.parametrize("shape", [(3, 6), (6, 3), (1, 1)])
def test_render_samples_the_pixel_centres(pattern, shape):
    grid = Grid(*shape)
    expected = reference(grid.columns[None], grid.rows[:, None])
    for given in (shape, grid):
        np.testing.assert_allclose(pattern.render(given), expected, rtol=1e-12, atol=1e-13)


def test_dtype_follows_the_input_and_the_global_flag_is_left(pattern):
    before = jax.config.jax_enable_x64
    x = np.linspace(-1, 1, 18)
    assert pattern(x, x).dtype == np.float64
    assert pattern(x.astype(np.float32), x.astype(np.float32)).dtype == np.float32
    assert pattern(x.astype(np.float32), x).dtype == np.float64
    assert pattern(jnp.zeros(18), jnp.zeros(18)).dtype == np.float32
    assert pattern.render((3, 6)).dtype == np.float64
    assert pattern.render((3, 6), np.float32).dtype == np.float32
    assert pattern.gradient(x, x)[0].dtype == np.float64
    assert jax.config.jax_enable_x64 is before
    single = pattern.render((6, 3), np.float32)
    np.testing.assert_allclose(single, pattern.render((6, 3)), atol=1e-6)  # a few float32 roundings


@pytest.mark.parametrize("empty", [Pattern(), Pattern([], []), Pattern([], np.zeros((0, 5)))])
def test_the_empty_pattern_is_zero(empty):
    assert len(empty) == empty.n_atoms == 0
    assert empty.gamma.shape == (0, 5)
    np.testing.assert_array_equal(empty.render((3, 6)), np.zeros((3, 6)))
    np.testing.assert_array_equal(empty.gradient(0.3, 0.1), [0, 0])
    assert empty == Pattern()
    assert repr(empty) == "Pattern of 0 atoms, mother=Gaussian()"
    assert empty.add_atom(COEF[0], GAMMA[0]) == Pattern(COEF[:1], GAMMA[:1])


def test_add_atom_and_take_return_new_patterns(pattern):
    grown = Pattern(COEF[:2], GAMMA[:2]).add_atom(COEF[2], GAMMA[2])
    assert grown == pattern
    assert len(grown) == 3
    for some in (slice(2), [0, 1], np.array([True, True, False])):
        assert pattern.take(some) == Pattern(COEF[:2], GAMMA[:2])
    assert pattern.replace([2.0], GAMMA[:1]) == Pattern([2.0], GAMMA[:1])
    own = Pattern(COEF, GAMMA, InverseMultiquadric(-1))
    assert own.take(slice(1)).mother == own.mother


def test_equality_and_hash(pattern):
    same = Pattern(np.array(COEF, np.float32), np.array(GAMMA))
    assert same == pattern
    assert hash(same) == hash(pattern)
    assert pattern != Pattern(COEF, GAMMA, "inverse-multiquadric")
    assert pattern != Pattern([1.0, -0.5, 2.1], GAMMA)
    assert pattern != pattern.take(slice(2))
    assert pattern != "pattern"
    zero, minus_zero = Pattern([0.0], GAMMA[:1]), Pattern([-0.0], GAMMA[:1])
    assert zero == minus_zero
    assert hash(zero) == hash(minus_zero)


def test_repr_names_the_parameters_and_stays_short(pattern):
    lines = repr(pattern).splitlines()
    assert lines[0] == "Pattern of 3 atoms, mother=Gaussian()"
    assert lines[1].split() == ["coef", "psi", "tau_x", "tau_y", "sigma_x", "sigma_y"]
    assert lines[3].split() == ["-0.5000", "0.7000", "0.2000", "-0.3000", "0.3000", "0.6000"]
    assert repr(pattern.take(slice(1))).startswith("Pattern of 1 atom,")
    many = Pattern(np.ones(30), np.tile(GAMMA, (10, 1)))
    assert len(repr(many).splitlines()) == 11
    assert repr(many).endswith("... and 22 more")


def test_patterns_cannot_be_changed(pattern):
    with pytest.raises(AttributeError):
        pattern.coef = np.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        pattern.coef[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        pattern.gamma[0, 0] = 5


def test_patterns_do_not_share_memory_with_the_input():
    coef, gamma = np.array(COEF), np.array(GAMMA)
    pattern = Pattern(coef, gamma)
    coef[0] = gamma[0, 0] = 9
    assert pattern == Pattern(COEF, GAMMA)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_are_equal_and_read_only(pattern, duplicate):
    other = duplicate(pattern)
    assert other == pattern
    np.testing.assert_array_equal(other.render((3, 6)), pattern.render((3, 6)))
    assert not other.coef.flags.writeable
    assert not other.gamma.flags.writeable


def test_own_mother_and_dictionary():
    mother = CustomMother(lambda x, y: jnp.exp(-(x**2) - y**2))
    dictionary = CustomDictionary(
        lambda gamma, x, y: (x / gamma[0], y / gamma[0]), Box(["sigma"], [0.1], [1.0])
    )
    pattern = Pattern([2.0], [[0.5]], mother, dictionary)
    x = np.linspace(-1, 1, 18)
    expected = 2 * np.exp(-8 * x**2)
    np.testing.assert_allclose(pattern(x, x), expected, rtol=1e-13)  # float64, one exp
    along_x, along_y = pattern.gradient(x, x)
    np.testing.assert_allclose(along_x, -8 * x * expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(along_y, along_x, rtol=1e-12)
    assert repr(pattern).splitlines()[1].split() == ["coef", "sigma"]


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], GAMMA[:1]), "coef has 2 values but gamma has 1 rows; each atom needs one"),
        (([[1.0]], GAMMA[:1]), r"coef has shape \(1, 1\); expected \(K,\), one value per atom"),
        (([1.0], [[0.0, 0.0, 0.0, 1.0]]), r"gamma has shape \(1, 4\); .* rows of \(psi, tau_x"),
        (([np.nan], GAMMA[:1]), r"coef contains NaN at index \(0,\); replace such values"),
        (([1.0], [[0, 0, np.inf, 1, 1]]), r"gamma contains infinity at index \(0, 2\)"),
        (([1.0], [[0, 0, 0, 1, 0]]), r"gamma\[0\] has sigma_y=0; .* must be positive"),
        (([1.0], [[0, 0, 0, -2, 1]]), r"gamma\[0\] has sigma_x=-2; .* must be positive"),
        (([1.0], GAMMA[:1], "gauss"), "mother='gauss' is not known. Did you mean 'gaussian'"),
        ((["a"], GAMMA[:1]), "coef must be an array of real numbers"),
    ],
)
def test_bad_patterns_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Pattern(*arguments)


@pytest.mark.usefixtures("as_users_run")
def test_bad_points_and_shapes_are_refused(pattern):
    with pytest.raises(ValueError, match=r"x has shape \(2,\) but y has shape \(3,\); give both"):
        pattern(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match=r"y contains NaN at index \(\)"):
        pattern(0.0, np.nan)
    with pytest.raises(ValueError, match=r"shape=28 must be a pair \(height, width\)"):
        pattern.render(28)
    with pytest.raises(ValueError, match=r"height=0 must be a positive integer"):
        pattern.render((0, 3))
