"""How often code is compiled: a growing pattern reuses it, and so does the next fit."""

import logging
import re
from collections import Counter
from contextlib import contextmanager

import jax
import numpy as np
import pytest

import patternfold as pf
from patternfold import datasets

SHAPE = (14, 14)


@contextmanager
def compilations():
    """Count what is compiled, by name."""
    counts: Counter[str] = Counter()

    class Listener(logging.Handler):
        def emit(self, record):
            found = re.match(r"Compiling (?:jit\()?([\w<>]+)", record.getMessage())
            if found:
                counts[found[1]] += 1

    listener, logger = Listener(), logging.getLogger("jax._src.interpreters.pxla")
    logger.addHandler(listener)
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield counts
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = propagate


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    pattern = datasets.random_pattern(4, rng)
    return datasets.random_images(pattern, 8, rng, "similarity", shape=SHAPE, noise=0.02)[0]


STAGES = ("search", "_make_bank", "_splat", "_climb", "assemble", "tangent_model", "squares_of")


MOST_KERNELS = 23
"""All that a first fit compiles: what is computed outside of stages is left to NumPy."""


@pytest.mark.slow
def test_a_fit_compiles_each_stage_at_most_twice(images):
    jax.clear_caches()
    options = {"transformation": "similarity", "random_state": 0, "n_starts": 2, "n_exchanges": 1}
    with compilations() as first:
        pf.PATS(4, **options).fit(images)
    assert sum(first.values()) <= MOST_KERNELS, first
    known = {name: first[name] for name in STAGES}
    assert all(1 <= count <= 2 for count in known.values()), known
    # More atoms, other images of as many: all of it is there already.
    with compilations() as again:
        pf.PATS(8, **options).fit(images[::-1] * 0.9)
    assert not any(again[name] for name in STAGES), again


def test_the_count_can_fail():
    with compilations() as counts:
        for n in (3, 4):
            jax.jit(lambda x: x + 1)(np.ones(n, np.float32))
    assert sum(counts.values()) >= 2
