"""Rendering of patterns, against the formulas of the paper; what is accepted and refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from manifold_patterns import PAPER, SHAPE, N, numpy_render, random_lam, random_pattern, turn

from patternfold import (
    Box,
    CustomTransformation,
    Gaussian,
    Grid,
    InverseMultiquadric,
    Pattern,
    RotationTranslationScaling,
)
from patternfold.model import atoms
from patternfold.model.manifold import field, render, tangent_distance, tangents
from patternfold.numerics import chunks


@pytest.fixture
def pattern(rng) -> Pattern:
    return random_pattern(rng, 5)


# Rendering
@pytest.mark.parametrize("shape", [SHAPE, (7, 6), (1, 1)])
def test_render_follows_the_papers_formulas(pattern, rng, dtype, shape):
    lam = random_lam(rng)
    found = render(pattern, lam.astype(dtype), PAPER, shape)
    assert (found.shape, found.dtype) == ((N, shape[0] * shape[1]), dtype)
    expected = numpy_render(pattern, lam.astype(dtype).astype(np.float64), shape)
    # z = u² + v² errs by eps·z and z·exp(-z) < 1; the pixels lie at most 1 / (s σ) = 7 from
    # the atoms' centres, in units of their width, so u itself errs by some 10 roundings.
    np.testing.assert_allclose(found, expected, atol=200 * np.finfo(dtype).eps)
    assert np.abs(expected).max() > 0.01


def test_the_identity_renders_the_pattern_itself(pattern):
    found = render(pattern, RotationTranslationScaling().identity, PAPER, SHAPE)
    np.testing.assert_allclose(found.reshape(SHAPE), pattern.render(SHAPE), atol=1e-14)  # float64


def test_grids_shapes_names_and_objects_are_accepted(pattern, rng):
    lam = random_lam(rng)
    expected = render(pattern, lam, PAPER, SHAPE)
    for transformation in (PAPER, RotationTranslationScaling()):
        for shape in (SHAPE, Grid(*SHAPE)):
            np.testing.assert_array_equal(render(pattern, lam, transformation, shape), expected)


def test_angles_may_be_given_modulo_a_turn(pattern, rng):
    lam = random_lam(rng)
    turned = np.add(lam, [2 * np.pi, 0, 0, 0, 0])
    found = render(pattern, turned, PAPER, SHAPE)
    np.testing.assert_allclose(found, render(pattern, lam, PAPER, SHAPE), atol=1e-13)  # float64


def test_products_of_two_shifted_gaussians_have_their_closed_form():
    # ⟨φ(·−a), φ(·−b)⟩ = σ² exp(−|a−b|² / 2σ²) for φ of width σ; the sum over pixels times their
    # area converges faster than any power, and 1 − 0.15 is 4 widths off: exp(−2·16) is left out.
    sigma, a, b = 0.2, np.array([0.15, -0.1]), np.array([-0.05, 0.1])
    bump = Pattern([1.0], [[0.0, 0.0, 0.0, sigma, sigma]])
    one, two = render(bump, np.stack([a, b]), "translation", (48, 48))
    d = a - b
    closed = sigma**2 * np.exp(-(d @ d) / (2 * sigma**2))
    area = Grid(48, 48).pixel ** 2
    assert one @ two * area == pytest.approx(closed, rel=1e-10)
    # Tangents likewise: ⟨∂_a φ, ∂_b φ⟩ is the second derivative of the product in a and b.
    first, second = tangents(bump, np.stack([a, b]), "translation", (48, 48))
    expected = closed * (np.eye(2) / sigma**2 - np.outer(d, d) / sigma**4)
    np.testing.assert_allclose(first @ second.T * area, expected, atol=1e-10)
    np.testing.assert_allclose(first @ two * area, -closed * d / sigma**2, atol=1e-10)


# The field and the tangents
@pytest.mark.parametrize("mother", [Gaussian(), InverseMultiquadric(-1.5)], ids=str)
def test_field_is_the_value_and_gradient_at_the_warped_pixels(rng, dtype, mother):
    pattern, lam = random_pattern(rng, 5, mother), random_lam(rng).astype(dtype)
    found = np.stack(field(pattern, lam, PAPER, SHAPE))
    assert found.dtype == dtype
    grid = Grid(*SHAPE)
    for i, (theta, tx, ty, sx, sy) in enumerate(lam.astype(np.float64)):
        shifted = np.stack([grid.x - tx, grid.y - ty])
        x, y = np.diag([1 / sx, 1 / sy]) @ turn(-theta) @ shifted
        expected = np.stack([pattern(x, y), *pattern.gradient(x, y)])
        # Slopes are up to 1 / σ = 5 times the values of `render`, with its roundings.
        np.testing.assert_allclose(found[:, i], expected, atol=1000 * np.finfo(dtype).eps)
    np.testing.assert_allclose(
        found[0], render(pattern, lam, PAPER, SHAPE), atol=50 * np.finfo(dtype).eps
    )


def test_single_precision_is_accurate(rng):
    pattern, lam = random_pattern(rng, 16), random_lam(rng)
    for function in (render, tangents):
        double = function(pattern, lam, PAPER, SHAPE)
        single = function(pattern, lam.astype(np.float32), PAPER, SHAPE)
        # The bound the package promises for rendering, in the norm of each image.
        error = np.linalg.norm(single - double, axis=-1) / np.linalg.norm(double, axis=-1)
        assert error.max() < 1e-5


# Sizes, memory, compilation
def test_the_empty_pattern_renders_zeros_and_has_no_tangents(rng):
    lam, images = random_lam(rng), rng.normal(size=(N, *SHAPE))
    np.testing.assert_array_equal(render(Pattern(), lam, PAPER, SHAPE), np.zeros((N, 42)))
    np.testing.assert_array_equal(tangents(Pattern(), lam, PAPER, SHAPE), np.zeros((N, 5, 42)))
    distances, z = tangent_distance(Pattern(), images, lam, PAPER)
    np.testing.assert_allclose(distances, np.linalg.norm(images, axis=(1, 2)), rtol=1e-14)
    np.testing.assert_array_equal(z, np.zeros((N, 5)))


def test_no_images_give_empty_arrays(pattern):
    lam = np.zeros((0, 5))
    assert render(pattern, lam, PAPER, SHAPE).shape == (0, 42)
    assert tangents(pattern, lam, PAPER, SHAPE).shape == (0, 5, 42)
    distances, z = tangent_distance(pattern, np.zeros((0, *SHAPE)), lam, PAPER)
    assert (distances.shape, z.shape) == ((0,), (0, 5))
    assert render(pattern, lam.astype(np.float32), PAPER, SHAPE).dtype == np.float32


def test_images_smaller_than_the_number_of_parameters(pattern, rng, dtype):
    lam, images = random_lam(rng).astype(dtype), rng.normal(size=(N, 1, 1)).astype(dtype)
    distances, z = tangent_distance(pattern, images, lam, PAPER)
    # One pixel, five tangents: the image is reached exactly.
    np.testing.assert_allclose(distances, 0, atol=10 * np.finfo(dtype).eps * np.abs(images).max())
    assert np.isfinite(z).all()


def test_chunks_give_the_results_of_one_chunk(monkeypatch, pattern, rng):
    lam, images = random_lam(rng), rng.normal(size=(N, *SHAPE))

    def everything():
        return [
            render(pattern, lam, PAPER, SHAPE),
            *field(pattern, lam, PAPER, SHAPE),
            tangents(pattern, lam, PAPER, SHAPE),
            *tangent_distance(pattern, images, lam, PAPER),
        ]

    assert chunks.chunk_rows(30 * 42 * 8) > N
    whole = everything()
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)  # one image at a time
    assert chunks.chunk_rows(42 * 8) == 1
    for one, two in zip(everything(), whole, strict=True):
        # Another number of rows may be vectorised otherwise: the last bits of float64 are free.
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


def count_compilations(sizes):
    """Render patterns of these sizes; return how often the code was traced."""
    traces = []

    def shift(lam, x, y):
        traces.append(1)
        return x - lam[0], y - lam[1]

    box = Box(["tx", "ty"], [-1.0, -1.0], [1.0, 1.0])
    transformation = CustomTransformation(shift, box, [0.0, 0.0])
    pattern = Pattern()
    for _ in range(max(sizes)):
        pattern = pattern.add_atom(1.0, [0.0, 0.0, 0.0, 0.5, 0.5])
        if pattern.n_atoms in sizes:
            render(pattern, np.zeros((2, 2)), transformation, (3, 5))
    return len(traces)


def test_growing_a_pattern_compiles_at_most_four_times():
    assert 1 <= count_compilations(range(1, 33)) <= 4


def test_the_compilation_count_can_fail(monkeypatch):
    monkeypatch.setattr(atoms, "padded_size", lambda n_atoms: 4 * n_atoms)  # a size for each
    assert count_compilations(range(1, 6)) == 5


def test_numbers_of_images_share_compiled_code(pattern, rng):
    traces = []

    def shift(lam, x, y):
        traces.append(1)
        return x - lam[0], y

    transformation = CustomTransformation(shift, Box(["tx"], [-1.0], [1.0]), [0.0])
    for n_images in (33, 40, 48):
        render(pattern, rng.uniform(-1, 1, size=(n_images, 1)), transformation, (2, 3))
    assert len(traces) == 1


# Precision and bad input
def test_dtype_follows_the_input_and_the_global_flag_is_left(pattern, rng):
    before = jax.config.jax_enable_x64
    lam, images = random_lam(rng), rng.normal(size=(N, *SHAPE))
    single = lam.astype(np.float32)
    assert render(pattern, lam, PAPER, SHAPE).dtype == np.float64
    assert render(pattern, lam.tolist(), PAPER, SHAPE).dtype == np.float64
    assert render(pattern, single, PAPER, SHAPE).dtype == np.float32
    assert render(pattern, jnp.asarray(single), PAPER, SHAPE).dtype == np.float32
    # The images decide: pixels of 8 bits are exact in float32.
    assert tangent_distance(pattern, images, single, PAPER)[0].dtype == np.float64
    pixels = (images > 0).astype(np.uint8)
    assert tangent_distance(pattern, pixels, lam, PAPER)[0].dtype == np.float32
    assert jax.config.jax_enable_x64 is before


def test_lam_outside_the_box_is_refused_unless_asked_for(pattern):
    lam = np.tile([0, 0, 0, 1, 1.0], (N, 1))
    lam[1, 4] = 5
    message = r"lam\[1\] has sy=5, outside its bounds \[0.5, 2\]; .* bounds=\{'sy': \(lower, upper"
    for call in (
        lambda **kw: render(pattern, lam, PAPER, SHAPE, **kw),
        lambda **kw: field(pattern, lam, PAPER, SHAPE, **kw),
        lambda **kw: tangents(pattern, lam, PAPER, SHAPE, **kw),
        lambda **kw: tangent_distance(pattern, np.zeros((N, *SHAPE)), lam, PAPER, **kw),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        assert np.isfinite(call(check=False)[0]).all()
    wider = RotationTranslationScaling().with_bounds({"sy": (0.5, 5.0)})
    assert render(pattern, lam, wider, SHAPE).shape == (N, 42)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("lam", "transformation", "shape", "message"),
    [
        (np.zeros((2, 3)), "translation", (3, 3), r"lam has shape \(2, 3\); expected \(N, 2\), ro"),
        ([[0.0, np.nan]], "translation", (3, 3), r"lam contains NaN at index \(0, 1\)"),
        ([[0.0, 0.0]], "translate", (3, 3), "transformation='translate'.*mean 'translation'"),
        ([[0.0, 0.0]], "translation", (3, 0), "width=0 must be a positive integer"),
        ([[0.0, 0.0]], "translation", 9, r"shape=9 must be a pair \(height, width\)"),
        ([[0.0, -9.0]], "translation", (3, 3), r"lam\[0\] has ty=-9, outside its bounds"),
    ],
)
def test_bad_input_to_render_is_refused(pattern, lam, transformation, shape, message):
    with pytest.raises(ValueError, match=message):
        render(pattern, lam, transformation, shape)


@pytest.mark.parametrize(
    ("images", "image_shape", "message"),
    [
        (np.zeros((3, 4, 4)), None, "lam has 2 rows but there are 3 images; give one row"),
        (np.full((2, 4, 4), np.inf), None, r"images contains infinity at index \(0, 0, 0\)"),
        (np.zeros((2, 15)), (4, 4), r"image_shape=\(4, 4\) has 16 pixels but images has 15"),
        (np.zeros(16), None, r"images has shape \(16,\); expected \(N, H, W\)"),
    ],
)
def test_bad_images_are_refused(pattern, images, image_shape, message):
    with pytest.raises(ValueError, match=message):
        tangent_distance(pattern, images, np.zeros((2, 2)), "translation", image_shape)
