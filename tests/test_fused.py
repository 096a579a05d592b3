"""The kernel for GPUs, its steps run in plain JAX, against the same sums by XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import Box, Pattern
from patternfold.datasets import random_pattern
from patternfold.learning.distance import Distance
from patternfold.learning.lighting import Lighting
from patternfold.learning.project import fused
from patternfold.model.atoms import stack_atoms
from patternfold.model.grid import Grid
from patternfold.mothers import as_mother
from patternfold.numerics.least_squares import Model, minimise
from patternfold.transformations import as_transformation

GRID = Grid(13, 11)  # more pixels than one block of the kernel, and no whole number of blocks


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fused.SWITCH, "interpret")


def make(family: str, mother: str = "gaussian", **more) -> Distance:
    """The distance to two patterns of three atoms."""
    rng = np.random.default_rng(0)
    patterns = [random_pattern(3, rng) for _ in range(2)]
    patterns = [Pattern(p.coef, p.gamma, as_mother(mother)) for p in patterns]
    x, y = GRID.x.astype(np.float32), GRID.y.astype(np.float32)
    atoms = stack_atoms(patterns, np.float32)
    return Distance(atoms, as_transformation(family), x, y, **more)


@pytest.mark.parametrize(
    ("family", "mother"), [("affine", "gaussian"), ("similarity", "inverse-multiquadric")]
)
def test_same_as_xla(family: str, mother: str, rng: np.random.Generator):
    distance = make(family, mother)
    assert fused.is_covered(distance, None, jnp.float32)
    images = jnp.asarray(rng.standard_normal((4, GRID.n_pixels)), jnp.float32)
    image, which = jnp.array([3, 0, 1, 1, 2]), jnp.array([0, 1, 1, 0, 0])
    lam = jnp.asarray(distance.transformation.parameters.sample(rng, 5), jnp.float32)
    asked = jnp.array([True, True, False, True, True])
    model = fused.first_order(distance, images, image, which, lam, asked)
    expected = jax.jit(Distance.first_order)(distance, images[image], None, lam, which)
    for own, other in zip(model[:3], expected[:3], strict=True):
        size = np.abs(other).max()
        assert size > 0.1
        # Sums over 143 pixels in another order, float32.
        np.testing.assert_allclose(own[asked], other[asked], rtol=1e-5, atol=1e-5 * size)


def test_rows_that_are_not_wanted_stay(rng: np.random.Generator):
    box = Box(["a"], [-4.0], [4.0])
    wanted, starts = jnp.array([True, False, True]), jnp.array([[3.0], [3.0], [-2.0]])

    def bowl(point: jax.Array, asked: jax.Array) -> Model:
        model = Model((point[:, 0] - 1) ** 2, 1 - point, jnp.ones((3, 1, 1)))
        return jax.tree.map(
            lambda a: jnp.where(asked.reshape(-1, *[1] * (a.ndim - 1)), a, jnp.nan), model
        )

    end = minimise(bowl, starts, box, 50, like=Model.blank(starts), wanted=wanted)
    np.testing.assert_allclose(end.point[:, 0], [1, 3, 1], atol=1e-3)
    assert np.isinf(end.model.cost[1])
    assert end.done.all()


def test_what_is_not_covered(monkeypatch: pytest.MonkeyPatch):
    distance = make("similarity")
    assert not fused.is_covered(distance, np.ones(3), jnp.float32)
    assert not fused.is_covered(distance, None, jnp.float64)
    assert not fused.is_covered(make("similarity+bend"), None, jnp.float32)
    assert not fused.is_covered(make("similarity", lighting=Lighting(True)), None, jnp.float32)
    monkeypatch.setenv(fused.SWITCH, "off")
    assert not fused.is_covered(distance, None, jnp.float32)
