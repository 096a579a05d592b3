import jax.numpy as jnp
import numpy as np
import pytest

from patternfold._validation import as_floats, as_images, as_parameters, lookup


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(2, np.float32), np.float32),
        (np.zeros(2, np.float64), np.float64),
        (np.zeros(2, np.uint8), np.float32),  # exact in float32: pixels
        (np.zeros(2, np.float16), np.float32),
        (np.zeros(2, bool), np.float32),
        (np.zeros(2, np.int64), np.float64),
        ([1, 2], np.float64),
        ([1.0, 2.0], np.float64),
        (jnp.zeros(2, jnp.float32), np.float32),
    ],
)
def test_floats_keep_their_precision(value, expected):
    found = as_floats("coef", value)
    assert found.dtype == expected
    np.testing.assert_array_equal(found, np.asarray(value))


@pytest.mark.parametrize(
    ("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_values_that_are_not_finite_are_refused_with_their_place(bad, kind):
    value = np.zeros((3, 4))
    value[1, 2] = bad
    message = rf"images contains {kind} at index \(1, 2\); .* numpy.nan_to_num, or leave out"
    with pytest.raises(ValueError, match=message):
        as_floats("images", value)


@pytest.mark.parametrize("value", ["abc", [1j], [[1.0], [1.0, 2.0]], None, {}])
def test_what_is_no_array_of_numbers_is_refused(value):
    with pytest.raises(ValueError, match=r"coef must be an array of real numbers; got \w+|NaN"):
        as_floats("coef", value)


def test_one_row_of_parameters_may_come_flat():
    np.testing.assert_array_equal(as_parameters("lam", [1.0, 2.0], ("tx", "ty")), [[1.0, 2.0]])
    assert as_parameters("lam", np.zeros((0, 2)), ("tx", "ty")).shape == (0, 2)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2), ()])
def test_parameters_of_the_wrong_shape_are_refused(shape):
    message = r"lam has shape \(.*\); expected \(N, 2\), rows of \(tx, ty\)"
    with pytest.raises(ValueError, match=message):
        as_parameters("lam", np.zeros(shape), ("tx", "ty"))


def test_images_may_come_flat_or_not():
    images = np.arange(24.0).reshape(2, 3, 4)
    for value, shape in [(images, None), (images, (3, 4)), (images.reshape(2, 12), (3, 4))]:
        rows, found = as_images(value, shape)
        np.testing.assert_array_equal(rows, images.reshape(2, 12))
        assert found == (3, 4)


@pytest.mark.parametrize(("n_pixels", "shape"), [(16, (4, 4)), (12, (1, 12)), (1, (1, 1))])
def test_the_shape_of_flat_images_is_guessed(n_pixels, shape):
    assert as_images(np.zeros((2, n_pixels)))[1] == shape


def test_no_images_are_images_too():
    rows, shape = as_images(np.zeros((0, 3, 4)))
    assert rows.shape == (0, 12)
    assert shape == (3, 4)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("shape", "image_shape", "message"),
    [
        ((28, 28, 3, 1), None, r"shape \(28, 28, 3, 1\); expected .* pass images\[None\]"),
        ((5,), None, r"shape \(5,\); expected \(N, H, W\), or \(N, H\*W\) with image_shape"),
        ((2, 800), (28, 28), r"image_shape=\(28, 28\) has 784 pixels but images has 800 features"),
        ((2, 4, 4), (4, 5), r"image_shape=\(4, 5\) but images holds images of shape \(4, 4\)"),
        ((2, 16), (4,), r"image_shape=\(4,\) must be two positive integers"),
        ((2, 16), (-4, -4), r"image_shape=\(-4, -4\) must be two positive integers"),
        ((2, 16), (4.0, 4.0), r"image_shape=\(4.0, 4.0\) must be two positive integers"),
        ((2, 16), 4, r"image_shape=4 must be two positive integers"),
        ((2, 0), None, r"shape \(2, 0\): images without pixels"),
    ],
)
def test_images_of_the_wrong_shape_are_refused(shape, image_shape, message):
    with pytest.raises(ValueError, match=message):
        as_images(np.zeros(shape), image_shape)


def test_lookup_suggests_the_nearest_name():
    table = {"cutting-plane": 1, "search": 2}
    assert lookup("solver", "search", table) == 2
    with pytest.raises(ValueError, match=r"solver='serch' is not known\. Did you mean 'search'\?"):
        lookup("solver", "serch", table)
    with pytest.raises(ValueError, match=r"solver='xyz' is not known\. Known: 'cutting-plane', 's"):
        lookup("solver", "xyz", table)
