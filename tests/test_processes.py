"""What belongs to the whole process: threads of linear algebra, forks, pickles."""

import os
import pickle
import signal
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import patternfold as pf
from patternfold.numerics.threads import one_blas_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_overlapping_blocks_leave_blas_as_it_was():
    with threadpool_limits(limits=2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == {2}


PUT = """
from patternfold.learning.observations import Observations
def compute():
    Observations.put(numpy.ones((1, 4), numpy.float32), pf.Grid(2, 2))
"""
DRAW = """
bar = pf.Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.1]])
def compute():
    datasets.random_images(bar, 3, numpy.random.default_rng(0), "translation", shape=(64, 64))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("computation", [PUT, DRAW], ids=["put", "draw"])
def test_fork_after_a_computation_is_refused(computation):
    head = """
import os, warnings
warnings.simplefilter("ignore")
import numpy
import patternfold as pf
from patternfold import datasets
"""
    program = f"""
{head}
{computation}
compute()
if not os.fork():
    try:
        compute()
    except RuntimeError as error:
        print("spawn" in str(error), flush=True)
    os._exit(0)
os.wait()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # a child that waits forever, too
            raise
    assert said == "True\n", errors


def test_fork_before_the_first_computation_is_fine():
    program = """
import os
from patternfold.numerics.forks import require_own_threads
if not os.fork():
    require_own_threads()
    os._exit(0)
print(os.wait()[1])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "0\n", ended.stderr


def test_pickles_of_other_versions_are_refused():
    model = pf.PATS(3)
    assert pickle.loads(pickle.dumps(model)).n_atoms == 3
    state = model.__getstate__()
    for version in ("0.0.9", None):
        other = {k: v for k, v in state.items() if k != "_patternfold_version"}
        other |= {} if version is None else {"_patternfold_version": version}
        with pytest.raises(ValueError, match=r"pickled by patternfold 0.*save"):
            pf.PATS.__new__(pf.PATS).__setstate__(other)
