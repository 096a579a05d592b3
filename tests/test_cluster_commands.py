"""Commands on Dask clusters: a scheduler and workers that are processes of their own."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import zarr
from helpers import small_model, small_stacks

import patternfold as pf
from patternfold.cli import clusters, main
from patternfold.cli.commands import stream

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of sockets that Dask closes late
]

START_UP = 60
"""Seconds that processes may take to start on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def small():
    with small_stacks(block=16, least_effort=False):  # workers know nothing of less effort
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stack, and a model of its images."""
    folder = tmp_path_factory.mktemp("stack")
    model, images = small_model("translation", n_images=100)
    zarr.create_array(folder / "x.zarr", data=images.astype(np.float32), chunks=(16, 16, 16))
    model.save(folder / "x.ptm")
    return folder


@contextmanager
def processes(folder, workers=2):
    """A scheduler and workers; yields the scheduler's process and address."""
    dask, file = [sys.executable, "-m", "dask"], folder / "scheduler.json"
    file.unlink(missing_ok=True)
    where = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    here = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    started = [subprocess.Popen([*dask, "scheduler", *here], **where)]
    own = ["--scheduler-file", str(file), "--nworkers", str(workers), "--nthreads", "1"]
    started.append(subprocess.Popen([*dask, "worker", *own, "--no-dashboard"], **where))
    try:
        with distributed.Client(scheduler_file=str(file), timeout=START_UP) as client:
            client.wait_for_workers(workers, START_UP)
        yield started[0], json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(START_UP)


def poses(folder, name, *options):
    """Write poses by the command line."""
    command = ["stream", str(folder / "x.ptm"), str(folder / "x.zarr"), "--what", "parameters"]
    return main([*command, "-o", str(folder / name), "--effort", "quick", *options])


@pytest.mark.exhaustive
def test_the_same_with_and_without_a_cluster(folder, capsys):
    learn = ["learn", str(folder / "x.zarr"), "--atoms", "1", "--transformation", "translation"]
    learn += ["--no-gain", "-o"]
    assert main([*learn, str(folder / "here.ptm"), "--quiet"]) == 0
    assert poses(folder, "here.npy", "--quiet") == 0
    with processes(folder) as (_, address):
        assert main([*learn, str(folder / "there.ptm"), "--cluster", address]) == 0
        assert "Dask dashboard: http://" in capsys.readouterr().err
        assert poses(folder, "there.npy", "--cluster", address) == 0
    assert poses(folder, "local.npy", "--workers", "2") == 0
    assert "Dask dashboard: http://" in capsys.readouterr().err
    one, other = pf.load(folder / "here.ptm"), pf.load(folder / "there.ptm")
    np.testing.assert_allclose(one.pattern_.gamma, other.pattern_.gamma, atol=1e-4)
    np.testing.assert_allclose(one.parameters_, other.parameters_, atol=1e-4)
    here, there, local = (np.load(folder / f"{n}.npy") for n in ("here", "there", "local"))
    np.testing.assert_allclose(there, here, atol=1e-5)
    np.testing.assert_array_equal(there, local)
    assert here.std() > 0.05


@pytest.mark.exhaustive
def test_a_scheduler_that_is_killed(folder, monkeypatch, capsys):
    told = stream.Teller.__call__
    with processes(folder, 1) as (scheduler, address):

        def kill(self, *line):
            told(self, *line)
            scheduler.send_signal(signal.SIGKILL)
            scheduler.wait(START_UP)

        monkeypatch.setattr(stream.Teller, "__call__", kill)
        assert poses(folder, "broken.npy", "--cluster", address, "--quiet") == 1
    message = capsys.readouterr().err
    assert f"The Dask cluster at {address} is gone after" in message
    assert "resume" in message
    monkeypatch.setattr(stream.Teller, "__call__", told)
    kept = len(np.load(folder / "broken.npy"))
    assert 16 <= kept < 100, "what was done is in the file"
    assert poses(folder, "broken.npy", "--resume", "--quiet") == 0
    assert poses(folder, "whole.npy", "--quiet") == 0
    broken, whole = np.load(folder / "broken.npy"), np.load(folder / "whole.npy")
    np.testing.assert_allclose(broken, whole, atol=1e-5)


def test_no_scheduler_answers(folder, monkeypatch, capsys):
    monkeypatch.setattr(clusters, "WAIT", 1)
    assert poses(folder, "never.npy", "--cluster", "tcp://127.0.0.1:1", "--quiet") == 1
    assert "no scheduler answers there. Start one with" in capsys.readouterr().err
    assert not os.path.exists(folder / "never.npy")
