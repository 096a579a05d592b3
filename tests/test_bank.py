"""The bank of templates against a brute-force scoring of its lattice in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import patternfold as pf
from patternfold import datasets, manifold
from patternfold.learning.effort import Effort
from patternfold.learning.observations import Observations
from patternfold.learning.project.bank import choose_candidates, make_bank, pool
from patternfold.learning.project.lattice import coarse_pixels, make_lattice
from patternfold.learning.project.locate import locate
from patternfold.model.atoms import evaluate, stack_atoms
from patternfold.model.transformations import as_transformation

GRID = pf.Grid(24, 20)
EFFORT = Effort(coarse_side=10, spacing=0.3)
COUNT = 5


def twist(lam, x, y):
    """Turn by an angle that grows with the radius: a family without shifts or inverse."""
    angle = lam[0] * (x**2 + y**2)
    c, s = jnp.cos(angle), jnp.sin(angle)
    return c * x + s * y, c * y - s * x


FAMILIES = {
    "translation": as_transformation("translation"),
    "similarity": as_transformation("similarity"),
    "scaling": as_transformation("scaling"),
    "twist": pf.CustomTransformation(twist, pf.Box(["k"], [-2.0], [2.0]), identity=[0.0]),
}


def blurred_pattern(pattern, width, x, y):
    """The pattern convolved with exp(−r²/w²) / (π w²), by Gauss-Hermite quadrature."""
    t, weights = np.polynomial.hermite.hermgauss(24)
    total = np.zeros(np.shape(x))
    for (a, wa), (b, wb) in itertools.product(zip(t, weights, strict=True), repeat=2):
        total += wa * wb / np.pi * pattern(x - width * a, y - width * b)
    return total


def brute_force(pattern, family, images, effort, count):
    """Costs of all nodes and shifts on blurred images, and the best nodes, image by image."""
    pixels = coarse_pixels(GRID, effort.coarse_side)
    lattice = make_lattice(family, pixels.step, effort.spacing)
    blurred = np.einsum(
        "ih,bhw,jw->bij", pixels.down, images.reshape(-1, *GRID.shape), pixels.across
    ).reshape(len(images), -1)
    x = np.tile(pixels.columns, len(pixels.rows))
    y = np.repeat(pixels.rows, len(pixels.columns))
    wide = pf.Pattern(*widened(pattern, pixels.blur))
    lam = np.tile(lattice.nodes, (len(lattice.shifts), 1, 1))
    if lattice.shift_index is not None:
        lam[:, :, list(lattice.shift_index)] += lattice.shifts[:, None]
    places = jax.vmap(family.coordinates, (0, None, None))(
        *(jnp.asarray(a) for a in (lam.reshape(-1, lam.shape[2]), x, y))
    )
    templates = wide(*(np.asarray(place) for place in places))
    costs = ((blurred[:, None] - templates[None]) ** 2).sum(axis=2)
    costs = costs.reshape(len(images), *lam.shape[:2])
    return lattice, costs, [best_nodes(lattice, c.min(axis=0), count) for c in costs]


def widened(pattern, width):
    """Gaussian atoms blurred: σ² + w² in place of σ², the integral kept."""
    gamma = pattern.gamma.copy()
    gamma[:, 3:] = np.sqrt(gamma[:, 3:] ** 2 + width**2)
    return pattern.coef * (pattern.gamma[:, 3:] / gamma[:, 3:]).prod(axis=1), gamma


def best_nodes(lattice, cost, count):
    """Nodes by cost, but those that are no local minimum along the axes after those that are."""
    values, is_lowest = cost.reshape(lattice.counts), np.ones(lattice.counts, bool)
    for place in np.ndindex(*lattice.counts):
        # The engine takes neighbours axis after axis, so that diagonal ones count, too.
        sides = [
            {(i + d) % n if periodic else min(max(i + d, 0), n - 1) for d in (-1, 0, 1)}
            for i, n, periodic in zip(place, lattice.counts, lattice.periodic, strict=True)
        ]
        is_lowest[place] = all(values[p] >= values[place] for p in itertools.product(*sides))
    spread = cost.max() - cost.min()
    return np.argsort(np.where(is_lowest.ravel(), cost, cost + spread), kind="stable")[:count]


@pytest.fixture
def patterns(rng):
    return [datasets.random_pattern(4, rng, spread=0.5) for _ in range(2)]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_candidates_are_those_of_brute_force(name, patterns, rng):
    family = FAMILIES[name]
    images = rng.normal(size=(4, GRID.n_pixels))
    # Some images have a pose, so that not all templates are alike.
    images[:2] += manifold.render(patterns[0], family.parameters.sample(rng, 2), family, GRID)
    bank = make_bank(stack_atoms(patterns, np.float64), family, GRID, EFFORT)
    pooled, roots = pool(bank, jnp.asarray(images), None)
    assert roots is None
    found = np.asarray(choose_candidates(bank, pooled, None, COUNT))
    for m, pattern in enumerate(patterns):
        lattice, costs, nodes = brute_force(pattern, family, images, EFFORT, COUNT)
        assert bank.shape == (2, len(lattice.shifts), len(lattice.nodes))
        for i, own in enumerate(nodes):
            expected = lattice.nodes[own].copy()
            if lattice.shift_index is not None:
                shifts = lattice.shifts[costs[i][:, own].argmin(axis=0)]
                expected[:, list(lattice.shift_index)] += shifts
            np.testing.assert_allclose(found[i, m, : len(own)], expected, atol=1e-9)
            assert family.parameters.contains(expected).all()
    assert (costs.max(axis=(1, 2)) > 1.002 * costs.min(axis=(1, 2))).all()


@pytest.mark.usefixtures("x64")
def test_pixel_weights_enter_the_scores(patterns, rng):
    """With weights 0 or 1, constant on large parts, the score is that of the pixels that count."""
    family = FAMILIES["scaling"]
    images = manifold.render(patterns[0], family.parameters.sample(rng, 3), family, GRID)
    roots = np.ones_like(images)
    bank = make_bank(stack_atoms(patterns[:1], np.float64), family, GRID, EFFORT)
    plain = choose_candidates(bank, pool(bank, jnp.asarray(images), None)[0], None, COUNT)
    weighted = pool(bank, jnp.asarray(images), jnp.asarray(roots))
    np.testing.assert_allclose(weighted[1], 1, rtol=1e-12)
    np.testing.assert_allclose(choose_candidates(bank, *weighted, COUNT)[:, :, 0], plain[:, :, 0])


@pytest.mark.usefixtures("x64")
def test_blurred_atoms_are_the_blurred_pattern(patterns, rng):
    x, y = rng.uniform(-1, 1, (2, 50))
    width = 0.15
    atoms = stack_atoms(patterns, np.float64).blurred(jnp.asarray(width))
    for m, pattern in enumerate(patterns):
        values = np.asarray(evaluate(atoms.of(m), jnp.asarray(x), jnp.asarray(y)))
        expected = blurred_pattern(pattern, width, x, y)
        np.testing.assert_allclose(values, expected, atol=1e-6 * np.abs(expected).max())
        assert np.abs(expected - pattern(x, y)).max() > 0.01 * np.abs(expected).max()


def test_blurred_images_show_the_blurred_pattern(patterns):
    """Blurring the rendered pattern pixel by pixel gives the coarse rendering of blurred atoms."""
    grid = pf.Grid(48, 40)
    pixels = coarse_pixels(grid, 12)
    small = patterns[0].replace(patterns[0].coef, patterns[0].gamma * [1, 0.5, 0.5, 0.5, 0.5])
    image = small.render(grid.shape)
    blurred = pixels.down @ image @ pixels.across.T
    x, y = np.tile(pixels.columns, len(pixels.rows)), np.repeat(pixels.rows, len(pixels.columns))
    expected = pf.Pattern(*widened(small, pixels.blur))(x, y).reshape(blurred.shape)
    # A sum over pixels of 1/20 for an integral, and a window that ends.
    np.testing.assert_allclose(blurred, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.usefixtures("x64")
def test_several_patterns_in_one_product_equal_one_at_a_time(patterns, rng):
    family = FAMILIES["similarity"]
    rows = datasets.random_images(patterns[0], 4, rng, family, shape=GRID.shape, noise=0.01)[0]
    observations = Observations.put(rows.reshape(4, -1).astype(np.float64), GRID)
    effort = Effort(coarse_side=10, spacing=0.3, max_iter=8, newton_after=8)
    both = locate(observations, patterns, family, effort)
    for m, pattern in enumerate(patterns):
        alone = locate(observations, [pattern], family, effort)
        np.testing.assert_allclose(both.square[:, m], alone.square[:, 0], rtol=1e-9)
        np.testing.assert_allclose(both.lam[:, m], alone.lam[:, 0], atol=1e-6)
        np.testing.assert_array_equal(both.status[:, m], alone.status[:, 0])


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_lattice_covers_the_box_evenly(name):
    family = FAMILIES[name]
    coarse, fine = (make_lattice(family, 0.2, spacing) for spacing in (0.4, 0.1))
    assert len(fine.nodes) > len(coarse.nodes) or name == "translation"
    assert family.parameters.contains(fine.nodes).all()
    assert (fine.shift_index is None) == (family.translation is None)
    assert np.prod(fine.counts) == len(fine.nodes)
    if fine.shift_index is not None:
        half = family.parameters.width[list(fine.shift_index)] / 2
        assert (np.abs(fine.shifts) <= half + 1e-9).all()
        assert (np.abs(fine.shifts).max(axis=0) > half - 0.2).all()
