"""A Dask cluster gives the same whatever its workers are, and goes on without lost ones."""

import os
import shutil
import signal

import dask.array
import numpy as np
import pytest
import zarr
from helpers import STACK_OPTIONS, shifted_images

import patternfold as pf
from patternfold.files import StackError
from patternfold.learning import settling
from patternfold.learning.stream.cluster import ClusterError, OnDask, active_place

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("small_blocks"),
    pytest.mark.filterwarnings("ignore"),  # of sockets that Dask closes late
]


@pytest.fixture(scope="module")
def images():
    return shifted_images(250, 0.1)


@pytest.fixture(scope="module")
def path(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("stack") / "x.zarr"
    zarr.create_array(path, data=images.astype(np.float32), chunks=(32, 16, 16))
    return path


def cluster(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, processes=True
    )


def fitted(X):
    return pf.PATS(2, **STACK_OPTIONS).fit(X)


def fitted_while_a_worker_is_killed(path, client):
    """Kill one of the workers in the middle of a pass over all images."""
    killed = []

    def kill(line):
        if line.stage.startswith("pass 2") and not killed:
            killed.append(client.run(os.getpid, nanny=False))
            os.kill(next(iter(killed[0].values())), signal.SIGKILL)

    model = pf.PATS(2, callback=kill, **STACK_OPTIONS).fit(path)
    assert killed
    return model


@pytest.mark.exhaustive
def test_any_number_of_workers_gives_the_same(path, images, monkeypatch):
    monkeypatch.setattr(settling, "TOLD_EVERY", 0.0)
    found = []
    for workers in (1, 2, 4):
        with cluster(workers) as running, distributed.Client(running) as client:
            found.append(fitted(path))
            if workers == 2:
                array = dask.array.from_array(images.astype(np.float32), chunks=(40, 16, 16))
                from_dask, from_file = (found[-1].transform(X) for X in (array, path))
                found.append(fitted_while_a_worker_is_killed(path, client))
    here = fitted(path)
    for model in found:
        np.testing.assert_array_equal(model.pattern_.coef, found[0].pattern_.coef)
        np.testing.assert_array_equal(model.pattern_.gamma, found[0].pattern_.gamma)
        np.testing.assert_array_equal(model.parameters_, found[0].parameters_)
    assert here.error_path_[-1] == pytest.approx(found[0].error_path_[-1], rel=1e-4)
    np.testing.assert_array_equal(from_dask, from_file)


class KillsItsWorker:
    """A task that ends the process that does it, the first time."""

    def __init__(self, flag):
        self.flag = str(flag)

    def __call__(self, images):
        if not os.path.exists(self.flag):
            open(self.flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return images.sum(axis=(1, 2), dtype=np.float64)


def test_a_block_whose_worker_is_lost_is_done_by_another(path, images, tmp_path):
    stack, task = pf.open_stack(path), KillsItsWorker(tmp_path / "killed")
    with cluster(2) as running, distributed.Client(running) as client:
        assert isinstance(active_place(), OnDask)
        found = np.concatenate(list(OnDask(client).run(task, stack, stack.spans())))
        array = dask.array.from_array(images.astype(np.float32), chunks=(40, 16, 16))
        lazy = np.concatenate(list(active_place().run(task, pf.open_stack(array), stack.spans())))
        # What is wrong with a file is told as in this process.
        damaged = shutil.copytree(path, tmp_path / "damaged.zarr")
        (damaged / "c" / "2" / "0" / "0").write_bytes(b"cut off")
        blocks = OnDask(client).run(np.mean, pf.open_stack(damaged), stack.spans())
        with pytest.raises(StackError, match=r"damaged\.zarr: images 64 to 95 can't be read"):
            list(blocks)
    assert (tmp_path / "killed").exists()
    assert not isinstance(active_place(), OnDask)
    expected = images.astype(np.float32).sum(axis=(1, 2), dtype=np.float64)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(lazy, expected)


def test_a_scheduler_that_is_gone(path):
    running = cluster(1)
    client = distributed.Client(running)
    stack, place = pf.open_stack(path), OnDask(client)
    blocks = place.run(np.mean, stack, stack.spans())
    next(blocks)
    client.close()
    running.close()
    with pytest.raises(ClusterError, match="is gone after 1 of 8 blocks"):
        list(blocks)
