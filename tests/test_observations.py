"""Images in chunks: whatever the chunks, the same results; what weighs nothing says nothing."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learning_problems import SHAPE, make_problem, pixels_of

from patternfold import Grid
from patternfold.learning.effort import LEARNING
from patternfold.learning.mean_image import distances_to_mean
from patternfold.learning.observations import CHUNK_BYTES, Observations, chunk_size
from patternfold.learning.project.locate import locate
from patternfold.learning.select.points import gather

GRID = Grid(3, 4)
SIZES = [None, 3, 7]


@pytest.fixture
def images(rng):
    return rng.normal(size=(7, 12)).astype(np.float32)


def weighted_sum(chunk):
    return (chunk.weights[:, None] * chunk.images).sum(axis=0)


@pytest.mark.parametrize("size", SIZES)
def test_rows_come_back_in_order(images, size):
    observations = Observations.put(images, GRID, size=size)
    assert len(observations) == 7
    assert {len(chunk.images) for chunk in observations.chunks} == {size or 8}
    rows = np.arange(14.0, dtype=np.float32).reshape(7, 2)

    def stage(chunk, own, nothing):
        assert nothing is None
        return chunk.images + own[:, :1], {"sum": own.sum(axis=1)}

    moved, sums = observations.map(stage, rows, None)
    np.testing.assert_array_equal(moved, images + rows[:, :1])
    np.testing.assert_array_equal(sums["sum"], rows.sum(axis=1))
    for i in (0, 3, 6):
        np.testing.assert_array_equal(observations.image(i), images[i])


@pytest.mark.parametrize("size", SIZES)
def test_rows_that_fill_a_chunk_count_nothing(images, rng, size):
    weights = rng.uniform(0, 2, 7)
    observations = Observations.put(images, GRID, weights, size=size)
    # float32, a dozen numbers of order 1
    expected = weights @ images
    np.testing.assert_allclose(observations.total(weighted_sum), expected, atol=1e-5)
    np.testing.assert_allclose(observations.squares, (images**2).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(observations.energy, weights @ (images**2).sum(axis=1), rtol=1e-5)
    mean = images.mean(axis=0)
    np.testing.assert_allclose(
        distances_to_mean(observations), np.linalg.norm(images - mean, axis=1), rtol=1e-5
    )
    other = rng.uniform(0, 2, 7)
    again = observations.with_weights(other)
    np.testing.assert_allclose(again.total(weighted_sum), other @ images, atol=1e-5)
    np.testing.assert_array_equal(again.weights, other)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("new_size", [None, 2])
def test_some_images_and_others_after_them(images, rng, size, new_size):
    weights, pixel_weights = rng.uniform(0, 2, 7), rng.uniform(0, 1, images.shape)
    observations = Observations.put(images, GRID, weights, pixel_weights, size=size)
    index = np.array([5, 0, 6, 2])
    some = observations.take(index, size=new_size)
    np.testing.assert_array_equal(some.map(lambda c: c.images), images[index])
    np.testing.assert_array_equal(some.weights, weights[index])
    np.testing.assert_allclose(some.map(lambda c: c.roots) ** 2, pixel_weights[index], rtol=1e-5)
    np.testing.assert_allclose(some.total(weighted_sum), weights[index] @ images[index], atol=1e-5)
    other = observations.take(np.array([1]), np.array([-1.0]), size=new_size)
    both = some.join(other)
    assert len(both) == 5
    np.testing.assert_array_equal(both.map(lambda c: c.images), images[[5, 0, 6, 2, 1]])
    np.testing.assert_array_equal(both.weights, [*weights[index], -1.0])
    expected = weights[index] @ images[index] - images[1]
    np.testing.assert_allclose(both.total(weighted_sum), expected, atol=1e-5)
    none = observations.take(np.array([], int))
    assert len(none) == 0
    np.testing.assert_array_equal(none.total(weighted_sum), np.zeros(12))


@pytest.mark.parametrize("size", SIZES)
def test_some_pixels(images, rng, size):
    pixel_weights = rng.uniform(0, 1, images.shape)
    observations = Observations.put(images, GRID, None, pixel_weights, size=size)
    pixels = np.array([1, 4, 11])
    part = observations.at(pixels)
    np.testing.assert_array_equal(part.map(lambda c: c.images), images[:, pixels])
    expected = (pixel_weights * images**2)[:, pixels].sum(axis=1)
    np.testing.assert_allclose(part.squares, expected, rtol=1e-5)
    assert part.grid == GRID


def test_small_integers_become_floats_on_the_device(rng):
    images = rng.integers(0, 255, (5, 12)).astype(np.uint8)
    observations = Observations.put(images, GRID, size=3)
    assert observations.dtype == np.float32
    assert all(chunk.images.dtype == np.float32 for chunk in observations.chunks)
    np.testing.assert_array_equal(pixels_of(make(observations)), images)
    np.testing.assert_allclose(observations.squares, (images.astype(np.float64) ** 2).sum(axis=1))


def make(observations):
    """What `pixels_of` asks of a problem."""
    return type("Holder", (), {"observations": observations})


def test_no_images_at_all():
    observations = Observations.put(np.zeros((0, 12), np.float32), GRID)
    assert len(observations) == 0
    assert observations.map(lambda chunk: chunk.images).shape == (0, 12)
    assert observations.energy == 0


def test_not_a_number_counts_nothing_and_infinity_is_refused(images):
    assert Observations.put(images, GRID, size=3).finite
    images[4, 2] = np.nan
    observations = Observations.of("images", images, GRID)
    without = np.delete(images[4], 2)
    assert observations.squares[4] == pytest.approx((without**2).sum())
    images[4, 2] = np.inf
    with pytest.raises(ValueError, match=r"images contains infinity.*4"):
        Observations.of("images", images, GRID)


def test_chunks_have_the_size_that_suits_a_device():
    assert chunk_size(10**6, 2**10, "cpu") == CHUNK_BYTES["cpu"] // 2**10
    assert chunk_size(10**6, 2**20, "cpu") == 8
    assert chunk_size(10**6, 10**9, "cpu") == 1
    assert [chunk_size(n, 100, "cpu") for n in (0, 1, 5, 9, 33)] == [8, 8, 8, 16, 48]


@pytest.mark.usefixtures("x64")
def test_stages_do_not_depend_on_chunks(rng):
    """Global search, gathered residuals, normal equations and errors, in one chunk or three."""
    results = []
    for size in (None, 2):
        problem, truth, lam = make_problem(np.random.default_rng(2), noise=0.02, size=size)
        assert len(problem.observations.chunks) == (1 if size is None else 3)
        results.append(stages(problem, truth.take([0, 1, 2]), lam))
    compare(*results)


@pytest.mark.usefixtures("x64")
def test_pixels_without_weight_say_nothing(rng):
    pixel_weights = (rng.uniform(size=(6, SHAPE[0] * SHAPE[1])) < 0.7).astype(np.float64)
    problem, truth, lam = make_problem(rng, noise=0.02)
    results = []
    for spoilt in (0.0, 50.0):
        images = pixels_of(problem) + spoilt * (pixel_weights == 0)
        observations = Observations.put(images, problem.grid, None, pixel_weights)
        part = replace(problem, observations=observations)
        results.append(stages(part, truth.take([0, 1, 2]), lam))
    compare(*results)
    plain = stages(problem, truth.take([0, 1, 2]), lam)
    assert plain["error"] > 1.1 * results[0]["error"]  # the other pixels would have said much


def stages(problem, pattern, lam):
    """What each stage that sees pixels returns."""
    found = locate(problem.observations, [pattern], problem.transformation, LEARNING)
    distance = problem.distance(pattern)
    nodes = gather(problem.observations, lam, distance, problem.grid.pixel, 1.35)
    equations = problem.equations(pattern, lam, problem.sparse, True)
    moved = equations.step(0.1)
    return {
        "lam": found.lam,
        "square": found.square,
        "gathered": np.stack([nodes.weighted, nodes.weights]),
        "matrix": equations.normal.atoms,
        "slope": equations.normal.slope,
        "moved": moved.lam,
        "cost": moved.cost,
        "error": problem.error(pattern, lam),
    }


def compare(one, other):
    for name, value in one.items():
        # Sums in another order, in float64; λ after several steps.
        scale = np.abs(value).max()
        np.testing.assert_allclose(other[name], value, atol=1e-8 * scale, err_msg=name)
        assert scale > 1e-3


def test_two_devices_are_not_needed_to_name_them(images):
    observations = Observations.put(images, GRID, devices=jax.local_devices()[:1], size=3)
    assert all(
        chunk.images.devices() == set(jax.local_devices()[:1]) for chunk in observations.chunks
    )
    assert isinstance(observations.chunks[0].images, jnp.ndarray)
