import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
from patternfold.model.transformations import as_transformation
from patternfold.numerics import chunks

PAPER = "rotation-translation-scaling"
# Most tests share this size and number of images, and with them compiled code.
SHAPE, N = (6, 7), 4


@pytest.fixture
def pattern(rng) -> Pattern:
    return random_pattern(rng, 5)


def random_pattern(rng, n_atoms, mother="gaussian") -> Pattern:
    low, high = [-np.pi, -0.4, -0.4, 0.2, 0.2], [np.pi, 0.4, 0.4, 0.6, 0.6]
    return Pattern(rng.normal(size=n_atoms), rng.uniform(low, high, size=(n_atoms, 5)), mother)


def random_lam(rng, n_images=N):
    low, high = [-np.pi, -0.3, -0.3, 0.7, 0.7], [np.pi, 0.3, 0.3, 1.4, 1.4]
    return rng.uniform(low, high, size=(n_images, 5))


def turn(theta):
    return np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])


def numpy_render(pattern, lam, shape):
    """U_λ(p) of Gaussian atoms with the paper's formulas, one image and one atom at a time."""
    height, width = shape
    pixel = 2 / max(shape)
    rows, columns = np.mgrid[:height, :width]
    x = ((columns + 0.5) * pixel - width * pixel / 2).ravel()
    y = ((rows + 0.5) * pixel - height * pixel / 2).ravel()
    images = np.zeros((len(lam), height * width))
    for image, (theta, tx, ty, sx, sy) in zip(images, lam, strict=True):
        warped = np.diag([1 / sx, 1 / sy]) @ turn(-theta) @ np.stack([x - tx, y - ty])
        for c, (psi, tau_x, tau_y, sigma_x, sigma_y) in zip(
            pattern.coef, pattern.gamma, strict=True
        ):
            centred = warped - np.array([[tau_x], [tau_y]])
            u, v = np.diag([1 / sigma_x, 1 / sigma_y]) @ turn(-psi) @ centred
            image += c * np.sqrt(2 / np.pi) * np.exp(-(u**2) - v**2)
    return images


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


def test_tangents_against_finite_differences_of_the_formulas(pattern, rng):
    lam = random_lam(rng)
    found = tangents(pattern, lam, PAPER, SHAPE)
    assert found.shape == (N, 5, 42)
    h = 1e-5  # central differences err by h² times third derivatives, some 1e-10 · 100
    for k in range(5):
        step = h * np.eye(5)[k]
        plus, minus = (numpy_render(pattern, lam + s, SHAPE) for s in (step, -step))
        np.testing.assert_allclose(found[:, k], (plus - minus) / (2 * h), atol=1e-7)
        assert np.abs(found[:, k]).max() > 0.1


def test_tangents_have_their_closed_form_for_one_gaussian(dtype):
    # p = exp(−|x − t|² / s²) up to its constant: ∂/∂t = 2 (x − t) / s² p, ∂/∂s = 2 |x − t|² / s³ p.
    lam = np.array([[0.7, 0.1, -0.2, 0.8]], dtype)
    bump = Pattern([1.0], [[0.0, 0.0, 0.0, 1.0, 1.0]])
    found = tangents(bump, lam, "similarity", (8, 8))[0]
    _, tx, ty, s = lam[0].astype(np.float64)
    grid = Grid(8, 8)
    dx, dy = grid.x - tx, grid.y - ty
    p = np.sqrt(2 / np.pi) * np.exp(-(dx**2 + dy**2) / s**2)
    rotation = np.zeros_like(p)  # a round pattern does not move
    expected = [rotation, 2 * dx / s**2 * p, 2 * dy / s**2 * p, 2 * (dx**2 + dy**2) / s**3 * p]
    # A dozen operations on numbers of size 1.
    np.testing.assert_allclose(found, np.stack(expected), atol=50 * np.finfo(dtype).eps)


def test_single_precision_is_accurate(rng):
    pattern, lam = random_pattern(rng, 16), random_lam(rng)
    for function in (render, tangents):
        double = function(pattern, lam, PAPER, SHAPE)
        single = function(pattern, lam.astype(np.float32), PAPER, SHAPE)
        # The bound the package promises for rendering, in the norm of each image.
        error = np.linalg.norm(single - double, axis=-1) / np.linalg.norm(double, axis=-1)
        assert error.max() < 1e-5


# The tangent distance


@pytest.mark.parametrize("transformation", [PAPER, "affine"])
def test_tangent_distance_is_the_least_squares_residual(pattern, rng, dtype, transformation):
    lam = as_transformation(transformation).parameters.sample(rng, N).astype(dtype)
    images = rng.normal(size=(N, *SHAPE)).astype(dtype)
    distances, z = tangent_distance(pattern, images, lam, transformation)
    assert distances.dtype == z.dtype == dtype

    double = lam.astype(np.float64)
    w = images.reshape(N, -1) - render(pattern, double, transformation, SHAPE)
    t = tangents(pattern, double, transformation, SHAPE)
    # Backward stable least squares errs by roundings times the condition of T.
    assert np.linalg.cond(t).max() < 100
    rtol = {np.float32: 1e-4, np.float64: 1e-10}[dtype.type]
    for i in range(N):
        solution = np.linalg.lstsq(t[i].T, w[i], rcond=None)[0]
        np.testing.assert_allclose(z[i], solution, rtol=rtol, atol=rtol)
        residual = np.linalg.norm(w[i] - t[i].T @ solution)
        assert distances[i] == pytest.approx(residual, rel=rtol)
    assert np.abs(z).max() > 0.1


def test_tangent_distance_takes_flat_images(pattern, rng):
    lam, images = random_lam(rng), rng.normal(size=(N, *SHAPE))
    expected = tangent_distance(pattern, images, lam, PAPER)
    found = tangent_distance(pattern, images.reshape(N, -1), lam, PAPER, image_shape=SHAPE)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_images_on_the_manifold_are_at_distance_zero_and_z_points_to_them(pattern, rng):
    lam = random_lam(rng)
    images = render(pattern, lam, PAPER, SHAPE).reshape(N, *SHAPE)
    distances, z = tangent_distance(pattern, images, lam, PAPER)
    np.testing.assert_allclose(distances, 0, atol=1e-13)  # float64
    np.testing.assert_allclose(z, 0, atol=1e-13)
    step = 1e-3 * rng.normal(size=lam.shape)
    _, z = tangent_distance(pattern, images, lam - step, PAPER)
    np.testing.assert_allclose(z, step, atol=1e-4)  # first order: step² times the curvature


@pytest.mark.parametrize("lam", [[0.0, 0.0, 0.0], [2.5, 0.3, -0.2]], ids=["identity", "moved"])
@pytest.mark.parametrize(
    "gamma",
    [[[0.0, 0.0, 0.0, 0.4, 0.4]], [[1.1, 0.0, 0.0, 0.4, 0.4], [0.0, 0.0, 0.0, 0.15, 0.15]]],
    ids=["one atom", "two atoms"],
)
def test_a_round_pattern_under_rotation_is_well_conditioned(rng, dtype, lam, gamma):
    round_pattern = Pattern(np.array([1.0, -0.5])[: len(gamma)], gamma)
    images = rng.normal(size=(1, 12, 12)).astype(dtype)
    lam = np.array([lam], dtype)
    distance, z = tangent_distance(round_pattern, images, lam, "rotation-translation")
    # Rotation moves nothing, so it is left out: the answer is that of shifts alone, up to the
    # rounding of a least-squares problem of condition 1.
    expected, shift = tangent_distance(round_pattern, images, lam[:, 1:], "translation")
    tolerance = 100 * np.finfo(dtype).eps
    assert np.isfinite(z).all()
    assert abs(z[0, 0]) < tolerance
    np.testing.assert_allclose(z[:, 1:], shift, atol=tolerance)
    np.testing.assert_allclose(distance, expected, rtol=tolerance)
    assert np.abs(shift).max() > 0.01


def test_dependent_parameters_share_the_step(rng):
    # Two parameters that do the same: the solution of least norm gives each half of the step.
    double = CustomTransformation(
        lambda lam, x, y: (x - lam[0] - lam[1], y),
        Box(["a", "b"], [-1.0, -1.0], [1.0, 1.0]),
        [0.0, 0.0],
    )
    single = CustomTransformation(
        lambda lam, x, y: (x - lam[0], y), Box(["a"], [-1.0], [1.0]), [0.0]
    )
    bump = Pattern([1.0], [[0.0, 0.0, 0.0, 0.4, 0.4]])
    images = rng.normal(size=(1, 8, 8))
    distance, z = tangent_distance(bump, images, np.zeros((1, 2)), double)
    expected, step = tangent_distance(bump, images, np.zeros((1, 1)), single)
    np.testing.assert_allclose(distance, expected, rtol=1e-12)  # float64
    np.testing.assert_allclose(z, np.tile(step / 2, 2), rtol=1e-10)


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
