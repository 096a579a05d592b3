import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import Box


@pytest.fixture
def box() -> Box:
    return Box(["theta", "tx", "s"], [-np.pi, -0.5, 0.5], [np.pi, 0.5, 2.0], periodic=["theta"])


def test_describes_its_intervals(box):
    assert box.dim == 3
    assert box.index("s") == 2
    np.testing.assert_array_equal(box.width, [2 * np.pi, 1.0, 1.5])
    np.testing.assert_array_equal(box.centre, [0.0, 0.0, 1.25])


def test_wrap_brings_periodic_parameters_home_and_leaves_others(box, dtype):
    values = np.array([[4.0, 9.0, 9.0], [-4.0, -9.0, -9.0], [1.0, 0.0, 1.0]], dtype)
    wrapped = box.wrap(values)
    assert wrapped.dtype == dtype
    np.testing.assert_array_equal(wrapped[:, 1:], values[:, 1:])
    assert (np.abs(wrapped[:, 0]) <= np.pi).all()
    # The same angle: sums of numbers below 10 err by a few of their roundings.
    atol = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.cos(wrapped[:, 0]), np.cos(values[:, 0]), atol=atol)
    np.testing.assert_allclose(np.sin(wrapped[:, 0]), np.sin(values[:, 0]), atol=atol)


def test_clip_moves_to_the_nearest_bound_and_leaves_periodic_ones(box):
    clipped = box.clip(np.array([[9.0, 9.0, 9.0], [-9.0, -9.0, -9.0], [1.0, 0.1, 1.0]]))
    np.testing.assert_array_equal(clipped, [[9.0, 0.5, 2.0], [-9.0, -0.5, 0.5], [1.0, 0.1, 1.0]])


@pytest.mark.parametrize("library", [np, jnp], ids=["numpy", "jax"])
def test_periodic_parameters_are_compared_the_short_way_around(box, library):
    values = library.asarray([[[3.0, 0.4, 1.0], [0.5, -0.1, 1.25]]], dtype=np.float32)
    others = library.asarray([[[-3.0, -0.4, 1.0], [0.0, 0.0, 1.0]]], dtype=np.float32)
    short = 6 - 2 * np.pi
    difference = box.difference(values, others)
    # Sums of numbers below 10 in float32.
    expected = [[[short, 0.8, 0.0], [0.5, -0.1, 0.25]]]
    np.testing.assert_allclose(difference, expected, atol=2e-6)
    np.testing.assert_allclose(box.separation(values, others), [[0.8, 0.25 / 1.5]], atol=2e-6)


def test_put_inside_needs_no_second_call(box, rng):
    values = rng.normal(scale=5, size=(100, 3))
    inside = box.put_inside(values)
    assert not box.contains(values).all()
    assert box.contains(inside).all()
    np.testing.assert_allclose(box.put_inside(inside), inside, atol=1e-14)  # one wrap's rounding


def test_numpy_jax_and_lists_agree(box, dtype):
    values = np.array([4.0, 9.0, 0.0], dtype)
    in_jax = box.put_inside(jnp.asarray(values))
    assert isinstance(in_jax, jax.Array)
    assert in_jax.dtype == dtype
    # 2π rounds differently inside the two libraries' mod.
    np.testing.assert_allclose(in_jax, box.put_inside(values), rtol=10 * np.finfo(dtype).eps)
    np.testing.assert_allclose(box.put_inside([4.0, 9.0, 0.0]), in_jax, rtol=1e-6)  # float32


def test_contains_allows_for_rounding_only(box):
    assert box.contains([0.0, 0.5 + 1e-9, 2.0])
    assert not box.contains([0.0, 0.5 + 1e-3, 2.0])
    assert box.contains([100.0, 0.0, 1.0])  # an angle is always inside
    assert box.contains(np.zeros((0, 3))).shape == (0,)


def test_require_inside_names_parameter_value_and_remedy(box):
    rows = [[0.0, 0.0, 1.0], [0.0, 0.5 + 1e-9, 7.0]]
    with pytest.raises(ValueError, match=r"lam\[1\] has s=7, outside its bounds \[0.5, 2\]") as e:
        box.require_inside(np.array(rows), "lam")
    assert "bounds={'s': (lower, upper)}" in str(e.value)


def test_samples_fill_the_box(box, rng):
    samples = box.sample(rng, 1000)
    assert samples.shape == (1000, 3)
    assert box.contains(samples, tolerance=0.0).all()
    # Of 1000 uniform samples the extremes come within 2 % of each end, but for odds of 1e-8.
    assert (np.abs(samples.min(axis=0) - box.lower) < 0.02 * box.width).all()
    assert (np.abs(samples.max(axis=0) - box.upper) < 0.02 * box.width).all()


def test_constrain_is_a_bijection_into_the_box(box, dtype, rng):
    free = jnp.asarray(rng.normal(size=(50, 3)), dtype)
    inside = box.constrain(free)
    assert inside.dtype == dtype
    assert box.contains(np.asarray(inside), tolerance=0.0).all()
    # log(u) - log(1 - u) loses digits near the bounds, where u may be 1e-3: eps / 1e-3.
    np.testing.assert_allclose(box.unconstrain(inside), free, atol=1e4 * np.finfo(dtype).eps)


def test_constrain_moves_one_to_one_at_the_centre(box):
    slope = jax.jacfwd(box.constrain)(jnp.asarray(box.centre, jnp.float32))
    np.testing.assert_allclose(slope, np.eye(3), atol=1e-6)  # float32, a logistic function


def test_unconstrain_is_finite_on_the_bounds(box, dtype):
    bounds = jnp.asarray(np.stack([box.lower, box.upper]), dtype)
    free = box.unconstrain(bounds)
    assert np.isfinite(free).all()
    # Values on a bound are moved inside by one rounding; both ends of a period are one point.
    atol = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(box.constrain(free)[:, 1:], bounds[:, 1:], atol=atol)
    np.testing.assert_array_equal(box.constrain(free)[:, 0], bounds[0, 0])


def test_with_bounds_replaces_some_and_keeps_full_periods(box):
    narrow = box.with_bounds({"theta": (-1.0, 1.0), "s": (0.9, 1.1)})
    assert narrow.lower == (-1.0, -0.5, 0.9)
    assert narrow.periodic == (False, False, False)
    turned = box.with_bounds({"theta": (0.0, 2 * np.pi)})
    assert turned.periodic == (True, False, False)
    assert box.with_bounds({}) == box


def test_boxes_compare_by_value(box):
    same = Box(box.names, box.lower, box.upper, ["theta"])
    assert same == box
    assert hash(same) == hash(box)
    assert box != box.with_bounds({"s": (0.9, 1.1)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], [0.0, 1.0], [1.0]), "lengths 1, 2 and 1; give one lower and one upper bound"),
        ((["a", "a"], [0.0, 0.0], [1.0, 1.0]), r"names=\('a', 'a'\) must be distinct"),
        ((["a"], [1.0], [1.0]), r"bounds of 'a' are \(1.0, 1.0\); they must be finite"),
        ((["a"], [0.0], [np.inf]), r"bounds of 'a' are \(0.0, inf\); they must be finite"),
        ((["a"], [np.nan], [0.0]), r"bounds of 'a' are \(nan, 0.0\); they must be finite"),
        ((["theta"], [0.0], [1.0], ["teta"]), "periodic='teta' is not known.*mean 'theta'"),
    ],
)
def test_bad_boxes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Box(*arguments)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"thta": (0.0, 1.0)}, "parameter='thta' is not known. Did you mean 'theta'"),
        ({"s": (1.0,)}, r"bounds\['s'\]=\(1.0,\) must be a pair"),
        ({"s": 1.0}, r"bounds\['s'\]=1.0 must be a pair"),
        ({"s": (2.0, 1.0)}, r"bounds of 's' are \(2.0, 1.0\); .* lower < upper"),
    ],
)
def test_bad_bounds_are_refused(box, bounds, message):
    with pytest.raises(ValueError, match=message):
        box.with_bounds(bounds)
