"""The kernel for GPUs, its steps run in plain JAX, against the same sums by XLA."""

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import Box, Huber, Pattern, StudentT
from patternfold.datasets import random_pattern
from patternfold.learning.distance import Distance
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.learning.project import fused
from patternfold.learning.project.refine import Pixels, make_rows, refine
from patternfold.learning.terms import Terms
from patternfold.losses import LOSSES
from patternfold.model.atoms import stack_atoms
from patternfold.model.grid import Grid
from patternfold.mothers import as_mother
from patternfold.numerics.least_squares import Model, minimise
from patternfold.transformations import as_transformation

GRID = Grid(13, 11)  # more pixels than one block of the kernel, and no whole number of blocks
SCALES = np.array([0.5, 2.0], np.float32)  # of both patterns: many outliers, and few


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fused.SWITCH, "interpret")


class Cauchy(StudentT):
    """A loss of a user, with another formula than ours."""

    is_elementary: ClassVar[bool] = True

    def pixels(self, z: Any) -> Any:
        value = jnp.log(1 + z)
        return value, jnp.exp(-value)


class Unknown(Huber):
    """A loss of a user that does not tell what it is made of."""

    is_elementary: ClassVar[bool] = False


class Numbers(Huber):
    """A loss of a user with a number that compiled code is handed."""

    k: float = eqx.field(static=False)


LOSSES_TRIED = [None, Huber(), StudentT(), Cauchy()]


def make(family: str, mother: str = "gaussian", loss: Any = None, **more: Any) -> Distance:
    """The distance to two patterns of three atoms."""
    rng = np.random.default_rng(0)
    patterns = [random_pattern(3, rng) for _ in range(2)]
    patterns = [Pattern(p.coef, p.gamma, as_mother(mother)) for p in patterns]
    x, y = GRID.x.astype(np.float32), GRID.y.astype(np.float32)
    atoms = stack_atoms(patterns, np.float32)
    terms = None if loss is None else Terms(loss, SCALES)
    return Distance(atoms, as_transformation(family), x, y, terms=terms, **more)


def images_and_roots(rng: np.random.Generator, weighted: bool) -> tuple[Any, Any]:
    """Four noisy images, and the roots of their pixels' weights, some of them 0."""
    shape = (4, GRID.n_pixels)
    roots = np.maximum(rng.uniform(-0.3, 1, shape), 0)
    images = jnp.asarray(rng.standard_normal(shape), jnp.float32)
    return images, jnp.asarray(roots, jnp.float32) if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES_TRIED)
@pytest.mark.parametrize(
    ("family", "mother"), [("affine", "gaussian"), ("similarity", "inverse-multiquadric")]
)
def test_same_as_xla(family: str, mother: str, loss: Any, weighted: bool, rng: np.random.Generator):
    distance = make(family, mother, loss)
    assert fused.is_covered(distance, jnp.float32)
    images, roots = images_and_roots(rng, weighted)
    image, which = jnp.array([3, 0, 1, 1, 2]), jnp.array([0, 1, 1, 0, 0])
    lam = jnp.asarray(distance.transformation.parameters.sample(rng, 5), jnp.float32)
    asked = jnp.array([True, True, False, True, True])
    model = fused.first_order(distance, images, roots, image, which, lam, asked)
    own = None if roots is None else roots[image]
    expected = jax.jit(Distance.first_order)(distance, images[image], own, lam, which)
    for part, other in zip(model[:3], expected[:3], strict=True):
        size = np.abs(other).max()
        assert size > 0.1
        # Sums over 143 pixels in another order, float32.
        np.testing.assert_allclose(part[asked], other[asked], rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("loss", LOSSES_TRIED[1:])
def test_a_loss_and_its_scales_tell(loss: Any, rng: np.random.Generator):
    """Weights change the sums, and each pattern has its own scale."""
    images, _ = images_and_roots(rng, False)
    rows = (jnp.zeros(2, int), jnp.array([0, 1]), jnp.tile(jnp.eye(4)[3:], (2, 1)))
    ask = (images, None, *rows, jnp.ones(2, bool))
    plain = fused.first_order(make("similarity"), *ask)
    robust = fused.first_order(make("similarity", loss=loss), *ask)
    diagonal = jax.vmap(jnp.diagonal)
    metric = diagonal(robust.metric) / diagonal(plain.metric)
    for share in (np.asarray(robust.cost / plain.cost), np.asarray(metric).max(axis=1)):
        assert share[0] < 0.95 * share[1] <= 0.95


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES_TRIED)
def test_descents_end_where_those_of_xla_do(
    loss: Any, weighted: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
):
    distance = make("similarity", loss=loss)
    lam = jnp.asarray(distance.transformation.parameters.sample(rng, 2), jnp.float32)
    images = jax.jit(Distance.values)(distance, lam, jnp.arange(2))
    noise, roots = images_and_roots(rng, weighted)
    images, starts = images + 0.05 * noise[:2], jnp.repeat(lam, 2, axis=0) + 0.02
    pixels = Pixels(images, None if roots is None else roots[:2], PLAIN.energies(images, None))
    wanted = jnp.array([[[True], [False]], [[True], [True]]])
    ends = []
    for switch in ("interpret", "off"):
        monkeypatch.setenv(fused.SWITCH, switch)
        assert fused.is_covered(distance, jnp.float32) == (switch == "interpret")
        rows = make_rows(starts.reshape(2, 2, 1, 4), wanted)
        descend = jax.jit(partial(refine, first_steps=6))
        ends.append(descend(distance, pixels, rows))
    reached = np.asarray(wanted).ravel()
    assert np.isinf(ends[0].cost[~reached]).all()
    np.testing.assert_allclose(ends[0].cost[reached], ends[1].cost[reached], rtol=1e-4)
    # Where the pattern fits; a stranger's descent is chaotic in float32.
    own, other = (np.asarray(end.lam)[[0, 3]] for end in ends)
    np.testing.assert_allclose(own, other, atol=1e-4)
    moved = np.abs(ends[0].lam - starts).max(axis=1)
    assert (moved > 1e-3).tolist() == reached.tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "loss", [None, *(kind() for kind in LOSSES.values() if kind.is_elementary), Cauchy()]
)
@pytest.mark.parametrize("mother", ["gaussian", "inverse-multiquadric"])
def test_becomes_code_for_gpus(
    mother: str, loss: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch
):
    """Triton's backend takes every operation of kernel, mother and loss; no GPU is asked."""
    monkeypatch.setenv(fused.SWITCH, "on")
    distance = make("similarity", mother, loss)
    text = for_gpus(distance, weighted)
    assert text.count("xla.gpu.triton") == 1


def test_what_gpus_can_not_do_is_told():
    """The test above could fail."""

    class Sorted(Huber):
        def pixels(self, z: Any) -> Any:
            return jnp.sort(z), jnp.ones_like(z)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fused.SWITCH, "on")
        with pytest.raises(NotImplementedError, match="sort"):
            for_gpus(make("similarity", loss=Sorted()), False)


def for_gpus(distance: Distance, weighted: bool) -> str:
    """What XLA is handed for a GPU, which need not be there."""
    images = jnp.zeros((4, GRID.n_pixels), jnp.float32)
    rows = (jnp.zeros(5, int), jnp.zeros(5, int), jnp.ones((5, 4), jnp.float32))

    weights = images if weighted else None
    traced = jax.jit(fused.first_order).trace(distance, images, weights, *rows, jnp.ones(5, bool))
    return traced.lower(lowering_platforms=("cuda",)).as_text()


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
    assert not fused.is_covered(distance, jnp.float64)
    assert not fused.is_covered(make("similarity+bend"), jnp.float32)
    assert not fused.is_covered(make("similarity", lighting=Lighting(True)), jnp.float32)
    for loss in (Unknown(), Numbers()):
        assert not fused.is_covered(make("similarity", loss=loss), jnp.float32)
    monkeypatch.setenv(fused.SWITCH, "off")
    assert not fused.is_covered(distance, jnp.float32)
