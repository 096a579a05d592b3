"""Projection: the global optimum, its local refinement, statuses, and resampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import patternfold as pf
from patternfold import datasets, manifold
from patternfold.learning.observations import PASSING_BYTES
from patternfold.model.transformations import TRANSFORMATIONS, as_transformation

pytestmark = pytest.mark.usefixtures("small_chunks")

SHAPE = (40, 40)


def corner_error(transformation, found, truth, pixel):
    """Mean displacement, in pixels, of the corners of the unit square."""
    to_image = jax.vmap(transformation.inverse_coordinates, in_axes=(0, None, None))
    with jax.enable_x64(True):
        x, y = jnp.array([-0.5, 0.5, -0.5, 0.5]), jnp.array([-0.5, -0.5, 0.5, 0.5])
        a, b = (np.stack(to_image(jnp.asarray(lam, np.float64), x, y)) for lam in (found, truth))
    return np.linalg.norm(a - b, axis=0).mean(axis=-1) / pixel


@pytest.mark.parametrize(
    ("name", "shape"), [(name, SHAPE) for name in sorted(TRANSFORMATIONS)] + [("affine", (30, 44))]
)
def test_recovers_parameters_of_every_family(name, shape, rng):
    family = as_transformation(name)
    pattern = datasets.random_pattern(16, rng)
    images, truth = datasets.random_images(pattern, 20, rng, name, shape=shape)
    found = pf.project(pattern, images, name)
    error = corner_error(family, found.parameters, truth, pf.Grid(*shape).pixel)
    # Where another pose renders as well, the distance says so.
    good = (error < 0.05) | (found.distances < 1e-3 * np.linalg.norm(images, axis=(1, 2)))
    assert good.all()
    assert np.isin(found.status, ["converged", "bound"]).all()
    np.testing.assert_allclose(
        found.distances,
        np.linalg.norm(
            images.reshape(20, -1) - manifold.render(pattern, found.parameters, name, shape), axis=1
        ),
        atol=1e-4,  # float32, cancellation near distance 0
    )


def test_float64_reaches_rounding(rng):
    pattern = datasets.random_pattern(8, rng)
    images, _ = datasets.random_images(pattern, 5, rng, dtype=np.float64)
    found = pf.project(pattern, images)
    assert found.parameters.dtype == np.float64
    # Quadratic convergence: the last step promises less than the tolerance leaves.
    assert (found.distances < 1e-7 * np.linalg.norm(images, axis=(1, 2))).all()


def test_noise_leaves_the_pose(rng):
    pattern = datasets.random_pattern(16, rng)
    clean, truth = datasets.random_images(pattern, 60, rng)
    images = clean + np.sqrt(0.1 * (clean**2).mean()) * rng.normal(size=clean.shape).astype("f")
    found = pf.project(pattern, images)
    error = corner_error(pf.RotationTranslationScaling(), found.parameters, truth, 0.05)
    assert (error < 0.5).mean() >= 0.99


def test_local_stage_agrees_with_scipy(rng):
    family = pf.RotationTranslationScaling()
    pattern = datasets.random_pattern(6, rng)
    images, truth = datasets.random_images(pattern, 4, rng, noise=1e-3, dtype=np.float64)
    starts = truth + 0.02 * rng.normal(size=truth.shape)
    found = pf.project(pattern, images, family, start=starts)
    for image, start, distance in zip(images, starts, found.distances, strict=True):

        def residual(lam, image=image):
            return (
                manifold.render(pattern, lam[None], family, SHAPE, check=False)[0] - image.ravel()
            )

        best = optimize.least_squares(
            residual, start, bounds=(family.parameters.lower, family.parameters.upper)
        )
        # Both stop at a relative decrease of about 1e-6 of the squared distance.
        assert distance <= np.sqrt(2 * best.cost) * (1 + 1e-5)


@pytest.mark.exhaustive
def test_no_multistart_search_finds_better(rng):
    pattern = datasets.random_pattern(10, rng)
    images, _ = datasets.random_images(pattern, 10, rng, noise=0.02)
    found = pf.project(pattern, images)
    family = pf.RotationTranslationScaling()
    best = np.full(len(images), np.inf)
    for _ in range(150):
        start = family.parameters.sample(rng, len(images))
        again = pf.project(pattern, images, family, start=start, max_iter=20)
        best = np.minimum(best, again.distances)
    assert (found.distances <= 1.001 * best).all()
    assert (best <= 1.2 * found.distances).any()  # the other search is a real one


def test_line_search_method(rng):
    pattern = datasets.random_pattern(8, rng)
    images, truth = datasets.random_images(pattern, 10, rng, "rotation-translation")
    found = pf.project(pattern, images, "rotation-translation", method="line-search", max_iter=200)
    error = corner_error(pf.RotationTranslation(), found.parameters, truth, 0.05)
    assert np.median(error) < 0.05


def test_several_patterns(rng):
    patterns = [datasets.random_pattern(5, rng) for _ in range(3)]
    images, _ = datasets.random_images(patterns[1], 7, rng, "similarity")
    found = pf.project(patterns, images, "similarity")
    assert found.parameters.shape == (7, 3, 4)
    assert found.distances.shape == found.status.shape == (7, 3)
    assert (found.distances.argmin(axis=1) == 1).all()
    alone = pf.project(patterns[2], images, "similarity")
    np.testing.assert_array_equal(found.distances[:, 2], alone.distances)


def twist(lam, x, y):
    """A user's own transformation: turn by an angle that grows with the radius."""
    angle = lam[0] * (x**2 + y**2)
    c, s = jnp.cos(angle), jnp.sin(angle)
    return c * x + s * y, c * y - s * x


def test_custom_transformation_without_translation(rng):
    family = pf.CustomTransformation(twist, pf.Box(["k"], [-2.0], [2.0]), identity=[0.0])
    pattern = datasets.random_pattern(8, rng)
    truth = rng.uniform(-1.5, 1.5, (10, 1)).astype(np.float32)
    images = manifold.render(pattern, truth, family, SHAPE)
    found = pf.project(pattern, images, family)
    np.testing.assert_allclose(found.parameters, truth, atol=1e-3)  # float32
    aligned = pf.align(images, found.parameters, family, interpolation="cubic")
    middle = slice(SHAPE[0] // 4, -SHAPE[0] // 4), slice(SHAPE[1] // 4, -SHAPE[1] // 4)
    expected = pattern.render(SHAPE)[middle]
    away = np.abs(np.stack([image[middle] for image in aligned]) - expected)
    assert away.max() < 0.05 * np.abs(expected).max()  # interpolated


def test_chunks_do_not_change_the_result(rng, monkeypatch):
    pattern = datasets.random_pattern(5, rng)
    images, _ = datasets.random_images(pattern, 9, rng, "similarity", shape=(24, 24))
    parts = pf.project(pattern, images, "similarity")  # 8 images, and then one
    monkeypatch.setitem(PASSING_BYTES, "cpu", 2**21)
    whole = pf.project(pattern, images, "similarity")
    np.testing.assert_allclose(parts.distances, whole.distances, atol=1e-4)  # float32


class TestEdgeCases:
    def test_empty_pattern(self, rng):
        images = rng.normal(size=(3, 8, 8))
        found = pf.project(pf.Pattern(), images, "similarity")
        np.testing.assert_array_equal(found.parameters, np.tile([0.0, 0, 0, 1], (3, 1)))
        np.testing.assert_allclose(found.distances, np.linalg.norm(images, axis=(1, 2)))
        assert (found.status == "empty").all()

    def test_blank_and_constant_images(self, rng):
        pattern = datasets.random_pattern(5, rng)
        images = np.stack([np.zeros(SHAPE), np.ones(SHAPE)]).astype(np.float32)
        found = pf.project(pattern, images)
        assert found.status[0] == "blank"
        assert np.isfinite(found.parameters).all()
        box = pf.RotationTranslationScaling().parameters
        assert box.contains(found.parameters).all()
        assert found.distances[1] <= np.linalg.norm(images[1] - pattern.render(SHAPE)) + 1e-3

    def test_round_pattern_is_degenerate(self):
        pattern = pf.Pattern([1.0], [[0.0, 0.0, 0.0, 0.3, 0.3]])
        image = manifold.render(pattern, [[1.0, 0.2, -0.1]], "rotation-translation", SHAPE)
        found = pf.project(pattern, image, "rotation-translation")
        assert found.status[0] == "degenerate"
        np.testing.assert_allclose(found.parameters[0, 1:], [0.2, -0.1], atol=1e-4)

    def test_parameter_at_the_boundary(self, rng):
        pattern = datasets.random_pattern(8, rng)
        images, _ = datasets.random_images(
            pattern, 5, rng, "similarity", bounds={"s": (1.3, 1.4), "theta": (-0.1, 0.1)}
        )
        family = pf.Similarity().with_bounds({"s": (0.8, 1.2), "theta": (-1.0, 1.0)})
        found = pf.project(pattern, images, family)
        np.testing.assert_allclose(found.parameters[:, 3], 1.2)
        assert (found.status == "bound").all()

    def test_no_images(self):
        found = pf.project(pf.Pattern(), np.zeros((0, 8, 8)), "translation")
        assert found.parameters.shape == (0, 2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "newton"}, "method='newton'"),
            ({"n_candidates": 0}, "n_candidates=0"),
            ({"max_iter": 0}, "max_iter=0"),
            ({"start": np.zeros((2, 4))}, "start has shape"),
            ({"transformation": "similarty"}, "similarity"),
            ({"image_shape": (5, 5)}, "image_shape"),
        ],
    )
    @pytest.mark.usefixtures("as_users_run")
    def test_bad_options(self, options, message):
        options = {"transformation": "similarity"} | options
        with pytest.raises(ValueError, match=message):
            pf.project(pf.Pattern(), np.zeros((3, 8, 8)), **options)


class TestAlign:
    def test_undoes_the_transformation(self, rng):
        pattern = datasets.random_pattern(8, rng)
        images, truth = datasets.random_images(pattern, 6, rng, "similarity")
        aligned = pf.align(images, truth, "similarity", interpolation="cubic")
        inner = (slice(None), slice(12, 28), slice(12, 28))
        expected = np.broadcast_to(pattern.render(SHAPE), aligned.shape)
        error = np.abs(aligned - expected)[inner].max() / np.abs(expected).max()
        assert error < 0.05  # interpolation between pixels, atoms from 1.6 pixels wide

    def test_warp_is_the_opposite(self, rng):
        image = rng.normal(size=(1, 20, 20))
        moved = pf.warp(image, [[0.2, -0.1]], "translation")  # two pixels and one
        np.testing.assert_allclose(moved[0, :-1, 2:], image[0, 1:, :-2], atol=1e-12)
        np.testing.assert_allclose(
            pf.align(moved, [[0.2, -0.1]], "translation")[0, 1:, :-2], image[0, 1:, :-2], atol=1e-12
        )

    def test_fill_outside(self):
        aligned = pf.align(np.ones((1, 10, 10)), [[0.5, 0.0]], "translation", fill=7.0)
        assert (aligned[0, :, -2:] == 7.0).all()
        # The border's pixels lie inside but for rounding of their places, times 7 − 1.
        np.testing.assert_allclose(aligned[0, :, :7], 1.0, rtol=0, atol=1e-14)

    @pytest.mark.usefixtures("as_users_run")
    def test_bad_input(self):
        with pytest.raises(ValueError, match="2 rows but there are 1 images"):
            pf.align(np.ones((1, 4, 4)), np.zeros((2, 2)), "translation")
        with pytest.raises(ValueError, match="interpolation='quintic'"):
            pf.align(np.ones((1, 4, 4)), np.zeros((1, 2)), "translation", interpolation="quintic")
