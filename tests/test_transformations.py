import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import (
    Affine,
    Box,
    CustomTransformation,
    RotationTranslation,
    RotationTranslationScaling,
    Scaling,
    Similarity,
    Translation,
)
from patternfold.model.transformations import TRANSFORMATIONS, as_transformation
from patternfold.testing import check_transformation

GROUPS = [name for name, kind in TRANSFORMATIONS.items() if getattr(kind, "is_group", False)]


def turn(theta):
    return np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])


# The image point of the pattern point (x', y'), written independently for one λ of each family.
FORWARD = {
    "translation": ([0.1, -0.2], np.eye(2), [0.1, -0.2]),
    "scaling": ([1.5, 0.7], np.diag([1.5, 0.7]), [0.0, 0.0]),
    "rotation-translation": ([0.4, 0.1, -0.2], turn(0.4), [0.1, -0.2]),
    "similarity": ([0.4, 0.1, -0.2, 1.5], 1.5 * turn(0.4), [0.1, -0.2]),
    "rotation-translation-scaling": (
        [0.4, 0.1, -0.2, 1.5, 0.7],
        turn(0.4) @ np.diag([1.5, 0.7]),
        [0.1, -0.2],
    ),
    "affine": (
        [0.4, 0.1, -0.2, 1.5, 0.7, 0.3],
        turn(0.4) @ np.array([[1, 0.3], [0, 1]]) @ np.diag([1.5, 0.7]),
        [0.1, -0.2],
    ),
    "shear": ([0.3], np.array([[1, 0.3], [0, 1]]), [0.0, 0.0]),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_laws(name, dtype):
    check_transformation(as_transformation(name), dtype)


def test_laws_on_other_bounds():
    check_transformation(Scaling().with_bounds({"sx": (0.05, 20.0), "sy": (0.9, 1.1)}))


@pytest.mark.parametrize("name", FORWARD)
def test_coordinates_follow_the_formula(name, dtype, rng):
    lam, linear, shift = FORWARD[name]
    x, y = rng.uniform(-1, 1, size=(2, 20))
    arguments = (jnp.asarray(a, dtype) for a in (lam, x, y))
    found = as_transformation(name).coordinates(*arguments)
    expected = np.linalg.solve(linear, np.stack([x, y]) - np.array(shift)[:, None])
    # Two products and a sum of numbers of size 1.
    np.testing.assert_allclose(np.stack(found), expected, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", FORWARD)
def test_parameters_are_read_back_from_the_matrix(name, dtype):
    transformation = as_transformation(name)
    lam = jnp.asarray(FORWARD[name][0], dtype)
    found = transformation.from_linear(transformation.linear(lam), transformation.shift(lam))
    np.testing.assert_allclose(found, lam, rtol=20 * np.finfo(dtype).eps)  # arctan2, square roots


@pytest.mark.parametrize("name", GROUPS)
def test_a_member_and_its_inverse_compose_to_the_identity(name, dtype):
    group = as_transformation(name)
    lam = jnp.asarray(FORWARD[name][0], dtype)
    for found in (group.compose(lam, group.inverse(lam)), group.compose(group.inverse(lam), lam)):
        np.testing.assert_allclose(found, group.identity, atol=20 * np.finfo(dtype).eps)


def test_rotation_is_clockwise_on_the_screen():
    # A pattern point on the right, turned by 90°, is seen below the centre: y points down.
    quarter = jnp.asarray([np.pi / 2, 0.0, 0.0], jnp.float32)
    x, y = RotationTranslation().inverse_coordinates(quarter, jnp.ones(1), jnp.zeros(1))
    np.testing.assert_allclose([x[0], y[0]], [0.0, 1.0], atol=1e-6)  # float32 cos(π/2)


def test_affine_without_shear_is_the_papers_family(rng):
    lam = RotationTranslationScaling().parameters.sample(rng, 1)[0].astype(np.float32)
    x, y = jnp.asarray(rng.uniform(-1, 1, size=(2, 20)), jnp.float32)
    paper = RotationTranslationScaling().coordinates(jnp.asarray(lam), x, y)
    affine = Affine().coordinates(jnp.asarray(np.append(lam, np.float32(0))), x, y)
    np.testing.assert_allclose(np.stack(affine), np.stack(paper), atol=1e-5)  # float32, size 4


def test_the_papers_family_is_no_group_and_says_what_to_use():
    lam = jnp.asarray(RotationTranslationScaling().identity, jnp.float32)
    with pytest.raises(TypeError, match=r"not a group, so it has no compose: use 'affine'"):
        RotationTranslationScaling().compose(lam, lam)
    with pytest.raises(TypeError, match=r"not a group, so it has no inverse.*inverse_coordinates"):
        RotationTranslationScaling().inverse(lam)


def test_with_bounds_changes_the_box_only():
    narrow = Similarity().with_bounds({"s": (0.9, 1.1)})
    assert isinstance(narrow, Similarity)
    assert narrow.parameters.upper[3] == 1.1
    assert Similarity().parameters.upper[3] == 2.0
    assert narrow.with_bounds({}) is narrow
    with pytest.raises(ValueError, match="parameter='scale' is not known"):
        Similarity().with_bounds({"scale": (0.9, 1.1)})


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations_compare_by_value_and_can_be_pickled(name):
    transformation = as_transformation(name)
    assert transformation == as_transformation(name)
    assert hash(transformation) == hash(as_transformation(name))
    assert pickle.loads(pickle.dumps(transformation)) == transformation
    assert (Translation() == Scaling()) is False


def test_names_and_objects_are_accepted():
    assert as_transformation("similarity") == Similarity()
    own = Similarity().with_bounds({"s": (0.9, 1.1)})
    assert as_transformation(own) is own


def test_unknown_names_get_the_near_match():
    message = "transformation='similarty' is not known. Did you mean 'similarity'.*Known: 'affine'"
    with pytest.raises(ValueError, match=message):
        as_transformation("similarty")


@pytest.mark.usefixtures("as_users_run")
def test_a_bare_function_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"wrap a function of .* in CustomTransformation"):
        as_transformation(lambda lam, x, y: (x, y))


def shear(lam, x, y):
    return x - lam[0] * y, y


def test_a_custom_transformation_without_inverse_is_inverted_locally():
    own = CustomTransformation(shear, Box(["k"], [-1.0], [1.0]), identity=[0.0])
    x, y = own.inverse_coordinates(jnp.full(1, 0.5), jnp.ones(2), jnp.array([0.0, 2.0]))
    np.testing.assert_allclose(np.stack([x, y]), [[1, 2], [0, 2]], rtol=1e-6)
    assert pickle.loads(pickle.dumps(own)) == own


def test_bad_custom_transformations_are_refused():
    box = Box(["k"], [-1.0], [1.0])
    with pytest.raises(ValueError, match=r"identity=\(0.0, 0.0\) has 2 values; the box has 1"):
        CustomTransformation(shear, box, identity=[0.0, 0.0])
    with pytest.raises(ValueError, match="parameter='tx' is not known"):
        CustomTransformation(shear, box, identity=[0.0], translation=("tx", "ty"))
