"""Problems for the parts of learning: small images of a random pattern with known λ."""

import numpy as np

import patternfold as pf
from patternfold import datasets
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem
from patternfold.model.atoms import AtomFamily
from patternfold.model.transformations import as_transformation

SHAPE = (20, 20)
"""Below `LARGE_SIDE`: without the stage on part of the pixels there is less to compile."""


def make_problem(
    rng, n=6, transformation="similarity", n_atoms=4, noise=0.0, dtype=np.float64, **options
):
    """Return a problem, the pattern of its images and their λ; options are those of `put`."""
    pattern = datasets.random_pattern(n_atoms, rng)
    images, lam = datasets.random_images(
        pattern, n, rng, transformation, shape=SHAPE, noise=noise, dtype=dtype
    )
    observations = Observations.put(images.reshape(n, -1), pf.Grid(*SHAPE), **options)
    family = AtomFamily(pf.Gaussian(), pf.AtomDictionary())
    problem = Problem(observations, as_transformation(transformation), family)
    return problem, pattern, lam.astype(dtype)


def pixels_of(problem):
    """The images, one per row."""
    return problem.observations.map(lambda chunk: chunk.images)
