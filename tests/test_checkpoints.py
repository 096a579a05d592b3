"""Checkpoints: a run that was broken off ends where it would have ended."""

import errno
import io
import os
import signal
import subprocess
import sys
import zlib

import numpy as np
import pytest
from helpers import STACK_OPTIONS, shifted_images

import patternfold as pf
from patternfold.learning import journal
from patternfold.learning.journal import _SIZES, CheckpointError, Journal

pytestmark = pytest.mark.usefixtures("small_blocks")
OPTIONS = STACK_OPTIONS | {"n_exchanges": 1}


@pytest.fixture(scope="module")
def images():
    return shifted_images(100, 0.01).astype(np.float32)


@pytest.fixture(scope="module")
def whole(images):
    """A run from a few images without a break."""
    return pf.PATS(2, **OPTIONS).fit(images[:16])


def same(one, other):
    np.testing.assert_array_equal(one.pattern_.coef, other.pattern_.coef)
    np.testing.assert_array_equal(one.pattern_.gamma, other.pattern_.gamma)
    np.testing.assert_array_equal(one.parameters_, other.parameters_)
    np.testing.assert_array_equal(one.error_path_, other.error_path_)
    assert one.stop_reason_ == other.stop_reason_


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("as_stack", [False, True], ids=["array", "stack"])
def test_every_break_ends_the_same(as_stack, images, whole, tmp_path, monkeypatch):
    X = pf.open_stack(images) if as_stack else images[:16]
    whole = pf.PATS(2, **OPTIONS).fit(X) if as_stack else whole
    path, put, steps = tmp_path / "x.ckpt", journal.Journal.put, [0]
    every = 9 if as_stack else 2

    def die_sometimes(self, name, record):
        put(self, name, record)
        steps[0] += 1
        if steps[0] % every == 0:
            with open(self.path, "ab") as file:
                file.write(b"half a record")
            raise Killed

    monkeypatch.setattr(journal.Journal, "put", die_sometimes)
    breaks = 0
    while True:
        model = pf.PATS(2, **OPTIONS)
        try:
            model.fit(X, checkpoint=path)
            break
        except Killed:
            breaks += 1
    assert breaks >= 2
    same(whole, model)


def test_nothing_is_computed_twice(images, tmp_path):
    told = []
    path = tmp_path / "x.ckpt"
    pf.PATS(2, **OPTIONS).fit(images[:16], checkpoint=path)
    size = path.stat().st_size
    model = pf.PATS(2, callback=told.append, **OPTIONS).fit(images[:16], checkpoint=path)
    assert path.stat().st_size == size
    assert model.error_path_[-1] == pytest.approx(told[-1].error, rel=1e-3)


def test_a_full_disk_loses_one_step(images, whole, tmp_path, monkeypatch):
    path, write, steps = tmp_path / "x.ckpt", journal.Journal._write, []

    def full(self, data):
        steps.append(len(data))
        if len(steps) == 4:
            self._file.write(data[:100])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, data)

    monkeypatch.setattr(journal.Journal, "_write", full)
    with pytest.raises(OSError, match=r"x\.ckpt holds the steps up to here\. Make room"):
        pf.PATS(2, **OPTIONS).fit(images[:16], checkpoint=path)
    monkeypatch.setattr(journal.Journal, "_write", write)
    same(whole, pf.PATS(2, **OPTIONS).fit(images[:16], checkpoint=path))


def test_who_stops_early_can_go_on(images, whole, tmp_path):
    path, lines = tmp_path / "x.ckpt", []

    def stop(line):
        lines.append(line)
        return len(lines) == 1

    stopped = pf.PATS(2, callback=stop, **OPTIONS).fit(images[:16], checkpoint=path)
    assert "asked to stop" in stopped.stop_reason_
    same(whole, pf.PATS(2, **OPTIONS).fit(images[:16], checkpoint=path))


def test_other_runs_are_refused(images, tmp_path):
    path = tmp_path / "x.ckpt"
    pf.PATS(1, **OPTIONS).fit(images[:16], checkpoint=path)
    with pytest.raises(journal.CheckpointError, match="n_atoms was '1' and is '2'"):
        pf.PATS(2, **OPTIONS).fit(images[:16], checkpoint=path)
    with pytest.raises(journal.CheckpointError, match="another run: X was"):
        pf.PATS(1, **OPTIONS).fit(images[15::-1], checkpoint=path)
    with pytest.raises(journal.CheckpointError, match="another run: X was"):
        pf.PATS(1, **OPTIONS).fit(pf.open_stack(images[:16]), checkpoint=path)
    with pytest.raises(journal.CheckpointError, match="another run: sample_weight was"):
        pf.PATS(1, **OPTIONS).fit(images[:16], None, np.arange(16), checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(journal.CheckpointError, match="is no checkpoint"):
        pf.PATS(1, **OPTIONS).fit(images[:16], checkpoint=path)


SCRIPT = """
import os, signal, sys
import numpy as np
import jax
import patternfold as pf
jax.config.update("jax_disable_most_optimizations", True)  # as the tests here
images = np.load(sys.argv[1])

def die(line):
    if line.stage == sys.argv[3] and line.n_atoms == 2:
        os.kill(os.getpid(), signal.SIGKILL)

options = {"transformation": "translation", "random_state": 0, "n_starts": 1, "n_exchanges": 1}
model = pf.PATS(2, callback=die, **options)
model.fit(images, checkpoint=sys.argv[2])
"""


@pytest.mark.exhaustive
def test_kill_minus_nine(images, tmp_path):
    images = images[:16]
    np.save(tmp_path / "x.npy", images)
    command = [sys.executable, "-c", SCRIPT, tmp_path / "x.npy", tmp_path / "x.ckpt", "settling"]
    ended = subprocess.run(command, env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    told = []
    model = pf.PATS(2, callback=told.append, **OPTIONS).fit(images, checkpoint=tmp_path / "x.ckpt")
    same(pf.PATS(2, **OPTIONS).fit(images), model)


def test_steps_that_were_changed_are_refused(tmp_path):
    """A record whose checksum is right but whose arrays are none that were written."""
    path = tmp_path / "checkpoint"
    first = Journal(path, {})
    first.put("atom", {"coef": np.ones(2)})
    for change in ({"coef": np.array([None], object)}, {"other": np.ones(1)}):
        content = io.BytesIO()
        np.savez(content, name=np.array("atom"), **change)
        append(first, content.getvalue())
    data = bytearray(content.getvalue())
    data[data.index(b"PK\1\2") + 6] = 128  # the version that it needs, by its directory
    append(first, bytes(data))
    first.close()
    again = Journal(path, {})
    assert again.take("atom")["coef"].tolist() == [1.0, 1.0]
    with pytest.raises(CheckpointError, match=r"type that is not allowed.*; name another"):
        again.take("atom")
    with pytest.raises(CheckpointError, match="or was changed"), again.refusing():
        again.take("atom")["coef"]
    with pytest.raises(CheckpointError, match=r"zip file version 12\.8"):
        again.take("atom")
    again.close()


def append(journal, data):
    journal._file.write(_SIZES.pack(len(data), zlib.crc32(data)) + data)
