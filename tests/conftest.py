"""Settings shared by all tests: strict JAX promotion, fixed seeds, no display.

The package is imported where it is needed: with type checks that takes five seconds, and the
process that hands out tests to others needs none of it.
"""

import gc
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import jax
import jaxtyping
import matplotlib
import numpy as np
import pytest

# Compiling is most of the time of these tests, and all cores are busy with others: a kernel is not
# cut in parts, which would take a fifth more work. Programs that tests start inherit it.
flags = ["--xla_cpu_parallel_codegen_split_count=1"]
if jax.__version_info__ < (0, 11):
    # Half the time to compile; newer versions of XLA have no such choice.
    flags.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(flags))

matplotlib.use("Agg")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in jobs of a shell in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["PATTERNFOLD_CACHE"] = "off"  # the user's cache folder is not ours
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
# Compilation is most of the time; what one worker, or an earlier run, has compiled serves all.
COMPILED = Path(__file__).parents[1] / ".pytest_cache/jax"
COMPILED.mkdir(parents=True, exist_ok=True)
# Programs that tests start use it too.
folder = os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.02")
jax.config.update("jax_compilation_cache_dir", folder)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
# Code that is optimised less compiles in half the time, and most tests run little of it.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
jax.config.update("jax_disable_most_optimizations", True)

# Tracing makes many small objects, nearly all of which stay: Python looks for cycles less often,
# and never among what is imported. In test_projection.py that took 7 % of the time.
gc.set_threshold(50_000, 20, 100)


def pytest_collection_finish() -> None:
    """Keep what is imported by now out of the search for cycles."""
    gc.freeze()


MAPPINGS = Path("/proc/self/maps")
MOST_MAPPINGS = 35_000


@pytest.fixture(autouse=True, scope="module")
def few_mappings() -> Iterator[None]:
    """Forget compiled code before the process has as many memory mappings as Linux allows.

    Each piece of compiled code takes dozens of them, and at 65,530 compiling ends the process.
    """
    yield
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MOST_MAPPINGS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Stacks are read in small blocks, and few of their images are learned from first."""
    from helpers import small_stacks

    with small_stacks():
        yield


@pytest.fixture(autouse=True)
def rng() -> np.random.Generator:
    """Seed the global generators, which third-party code may use, and return a local one."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    return np.random.default_rng(0)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Iterator[np.dtype]:
    """Run the test in both precisions; 64-bit arrays are enabled for float64 only."""
    with jax.enable_x64(request.param is np.float64):
        yield np.dtype(request.param)


@pytest.fixture
def as_users_run() -> Iterator[None]:
    """Switch off the type checks, which would catch bad input before our own messages do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def compiled_well() -> Iterator[None]:
    """Optimise compiled code of a module in full: for tests that run it for long."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(scope="module")
def small_chunks() -> Iterator[None]:
    """Work on 8 images at a time: the same code serves, however many images a test has."""
    with pytest.MonkeyPatch.context() as patch:
        few_at_a_time(patch)
        yield


def few_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """Make chunks as small as they may be."""
    from patternfold.learning.observations import CHUNK_BYTES, PASSING_BYTES

    for sizes in (CHUNK_BYTES, PASSING_BYTES):
        patch.setitem(sizes, "cpu", 1)


@pytest.fixture
def least_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile and run little: project as while learning, whatever the effort asked for, in small
    chunks, and start from a pattern of two atoms.

    For tests of what estimators accept and return, not of how well they do: scikit-learn's checks
    come with many shapes, and all their time goes into compiling.
    """
    little_effort(monkeypatch)


@pytest.fixture(scope="module")
def least_effort_throughout() -> Iterator[None]:
    """The same for a whole module, and for what its tests share."""
    with pytest.MonkeyPatch.context() as patch:
        little_effort(patch)
        yield


def little_effort(patch: pytest.MonkeyPatch) -> None:
    """Make all efforts, chunks and references as small as they may be, and variants few."""
    from patternfold.estimators import view_variants
    from patternfold.learning import references
    from patternfold.learning.effort import EFFORTS, LEARNING

    for name in EFFORTS:
        patch.setitem(EFFORTS, name, LEARNING)
    patch.setattr(references, "REFERENCE_ATOMS", 2)
    patch.setattr(view_variants, "MOST_CHOSEN", 1)
    few_at_a_time(patch)


@pytest.fixture
def x64() -> Iterator[None]:
    """Run the test with 64-bit arrays."""
    with jax.enable_x64(True):
        yield
