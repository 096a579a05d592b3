"""Atom selection on real residuals, small enough for tests: eight digits of 16×16 pixels."""

from functools import cache

import jax
import numpy as np

from patternfold import Box, Gaussian, Grid, InverseMultiquadric, Pattern, datasets
from patternfold.dc import Function, frozen_error
from patternfold.dc.decompositions import VARIABLES
from patternfold.learning.observations import Observations
from patternfold.learning.project.locate import distance_to
from patternfold.learning.select.points import pull_back
from patternfold.model.manifold import render
from patternfold.model.transformations import as_transformation

BOX = Box(
    VARIABLES,
    [-np.pi, -1.0, -1.0, 0.1, 0.1, -0.5],
    [np.pi, 1.0, 1.0, 1.0, 1.0, 0.5],
    periodic=["psi"],
)
ATOM = np.array([0.3, 0.05, -0.1, 0.4, 0.2, 0.15])
"""A sensible atom, where variables are that are not free."""


@cache
def residuals(digit: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """v_i, of which a first atom is taken away, and λ_i."""
    pictures, labels = datasets.load_mnist()
    rng = np.random.default_rng(digit)
    small = pictures[labels == digit][:8, ::2, ::2]
    images, lam = datasets.transform_images(small, rng, canvas=(16, 16))
    first = Pattern([0.25], [[1.2, 0.0, 0.05, 0.5, 0.25]])
    rendered = render(first, lam, "rotation-translation-scaling", (16, 16))
    return images.reshape(8, -1).astype(np.float64) - rendered, lam


def points(signed: bool = False) -> tuple[np.ndarray, ...]:
    """x, y, w v and w of all pixels in the pattern's frame; signed: three images are impostors."""
    v, lam = residuals()
    weights = np.array([1.5, 1, 1, 2, 1, -0.4, -0.7, -0.2]) if signed else np.ones(8)
    family, grid = as_transformation("rotation-translation-scaling"), Grid(16, 16)
    with jax.enable_x64(True):
        observations = Observations.put(v, grid, weights)
        nothing = distance_to(Pattern().atoms(np.float64), family, observations)
        return pull_back(observations, lam.astype(np.float64), nothing)[:4]


def problem(box: Box = BOX, imq: bool = False, signed: bool = False) -> Function:
    """Ẽ of the next atom."""
    mother = InverseMultiquadric() if imq else Gaussian()
    return frozen_error(*points(signed)[:4], box, mother)


def direct_error(x: np.ndarray, imq: bool = False, signed: bool = False) -> np.ndarray:
    """Ẽ from its definition, Σ w_i‖v_i − c U_λi(φ_γ)‖², by the library's own rendering."""
    v, lam = residuals()
    weights = np.array([1.5, 1, 1, 2, 1, -0.4, -0.7, -0.2]) if signed else np.ones(8)
    mother = InverseMultiquadric() if imq else Gaussian()
    family = "rotation-translation-scaling"
    values = []
    for row in x:
        rendered = render(Pattern([row[5]], row[None, :5], mother), lam, family, (16, 16))
        values.append((weights * ((v - rendered) ** 2).sum(axis=1)).sum())
    return np.array(values)
