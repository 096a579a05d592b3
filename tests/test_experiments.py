"""Steps of experiments: they survive interruptions, and are shared among processes."""

import csv
import json
import os
from concurrent.futures import Future, wait
from functools import partial

import numpy as np
import pytest
from experiment_steps import Settings, a_context, calls, count_up, steps_of
from matplotlib.figure import Figure
from small_steps import squares

from patternfold._archives.archive import write_archive
from patternfold.experiments import Claim, Experiment, Outcome, registry
from patternfold.experiments.base import Done
from patternfold.experiments.context import Context
from patternfold.experiments.durations import OTHER, SECONDS, expected_seconds
from patternfold.experiments.steps import fingerprint, read_step, save_step
from patternfold.experiments.together import run_together
from patternfold.experiments.workers import Pool, _thread_settings


def test_steps_are_read_back(tmp_path):
    values = {"x": np.arange(6.0).reshape(2, 3), "n": 3, "text": "α", "list": [1, 2.5, None]}
    save_step(tmp_path / "steps" / "a.npz", Done(values, 1.5), "print")
    found = read_step(tmp_path / "steps" / "a.npz", "print")
    assert found is not None
    assert found.seconds == 1.5
    np.testing.assert_array_equal(found.values.pop("x"), values.pop("x"))
    assert found.values == values
    assert read_step(tmp_path / "steps" / "a.npz", "another") is None
    (tmp_path / "steps" / "a.npz").write_bytes(b"damaged")
    assert read_step(tmp_path / "steps" / "a.npz", "print") is None


def test_damaged_steps_are_done_again(tmp_path, rng):
    path = tmp_path / "a.npz"
    values = {"x": np.arange(6.0), "n": 3}
    save_step(path, Done(values, 1.5), "print")
    content = path.read_bytes()
    for _ in range(400):
        changed = bytearray(content)
        changed[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        found = read_step(path, "print")
        if found is not None:  # what was changed is no part of the result
            assert found.values["x"].tolist() == values["x"].tolist()
            assert (found.values["n"], found.seconds, len(found.values)) == (3, 1.5, 2)
    for head in ("[1]", '{"fingerprint": "print"}', "[" * 100_000, '"x"'):
        write_archive(path, {"step.json": head.encode()})
        assert read_step(path, "print") is None
    head = {"fingerprint": "print", "seconds": 1.0, "values": [], "arrays": []}
    write_archive(path, {"step.json": json.dumps(head).encode()})
    assert read_step(path, "print") is None


def test_fingerprints_tell_work_apart():
    images = np.zeros((2, 3), np.float32)
    works = [
        partial(squares, images),
        partial(squares, images.astype(np.float64)),
        partial(squares, images + 1),
        partial(squares, images, offset=1.0),
        partial(count_up, "a", 3),
        partial(count_up, "a", Settings()),
    ]
    assert len({fingerprint(work) for work in works}) == len(works)
    assert fingerprint(works[0]) == fingerprint(partial(squares, np.zeros((2, 3), np.float32)))
    with pytest.raises(TypeError, match="is a Figure"):
        fingerprint(partial(squares, Figure()))


def test_finished_steps_are_not_done_again(tmp_path):
    first = a_context(tmp_path).parallel(steps_of(3))
    assert calls == ["a", "b", "c"]
    again = a_context(tmp_path).parallel(steps_of(3, "abcd"))
    assert calls == ["d"]
    assert again["a"]["values"].tolist() == first["a"]["values"].tolist() == [0, 1, 2]
    a_context(tmp_path).parallel(steps_of(4))
    assert calls == ["a", "b", "c"]  # other arguments: other work


def test_steps_before_an_interruption_are_kept(tmp_path):
    def stop(text):
        if text.strip().startswith("b:"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        a_context(tmp_path, say=stop).parallel(steps_of(3))
    assert calls == ["a", "b"]
    a_context(tmp_path).parallel(steps_of(3))
    assert calls == ["c"]


def test_steps_of_another_experiment_are_shared(tmp_path):
    a_context(tmp_path).step("a", partial(count_up, "a", 3))
    other = Context("illumination", Settings(), tmp_path)
    other.step("a", partial(count_up, "a", 3), of="complexity")
    assert calls == ["a"]
    with pytest.raises(ValueError, match=r"key='\.\./a'"):
        other.step("../a", partial(count_up, "a", 3))


def squares_of_both(context):
    """First steps, and one that follows from one of them alone."""

    def then(found):
        if "1" not in found:
            return {}
        return {"next": partial(squares, found["1"]["squares"].tolist())}

    steps = {str(n): partial(squares, [n, n + 1]) for n in range(3)}
    found = context.parallel(steps, of="complexity", then=then)
    rows = [{"key": key, "sum": int(v["squares"].sum())} for key, v in found.items()]
    return Outcome(rows, {}, [Claim("It is done elsewhere.", str(found["0"]["process"]), True)])


def test_experiments_share_processes_and_steps(tmp_path, monkeypatch):
    experiment = Experiment(Settings(), Settings(), squares_of_both)
    monkeypatch.setattr("patternfold.experiments.results.load_experiment", lambda name: experiment)
    names = ["complexity", "illumination"]
    told = []
    done = dict(run_together(names, tmp_path, 2, say=told.append))
    assert set(done) == set(names)
    processes = {record.claims[0].measured for record in done.values()}
    assert len(processes) == 1  # the same step of both is done once
    assert processes != {str(os.getpid())}
    for name in names:
        rows = csv.DictReader((tmp_path / name / "metrics.csv").read_text().splitlines())
        assert {row["key"]: row["sum"] for row in rows} == {
            "0": "1",
            "1": "5",
            "2": "13",
            "next": "17",
        }
    assert any("illumination: steps to do: 3, 2 at a time" in text for text in told)


def test_what_fails_in_a_process_ends_the_run(tmp_path, monkeypatch):
    steps = {"a": partial(squares, [1]), "b": partial(squares, [1], -1.0)}
    experiment = Experiment(Settings(), Settings(), lambda context: context.parallel(steps))
    monkeypatch.setattr("patternfold.experiments.results.load_experiment", lambda name: experiment)
    with pytest.raises(ValueError, match="offset is negative"):
        list(run_together(["complexity", "illumination"], tmp_path, 2))


def test_the_longest_work_of_all_begins_first(monkeypatch):
    begun = []

    class Processes:
        def __init__(self, *arguments):
            pass

        def submit(self, timed, function):
            begun.append(function)
            return Future()

    monkeypatch.setattr("patternfold.experiments.workers.ProcessPoolExecutor", Processes)
    short, middle, longest = (partial(count_up, key, 1) for key in "abc")
    pool = Pool(2, ["a", "b"])
    first = pool.submit("short", short, 1)
    pool.arrived("a")
    pool.submit("middle", middle, 5)
    pool.submit("long", longest, 9)
    assert pool.submit("short", short, 1) is first
    assert begun == []
    pool.arrived("b")
    assert begun == [longest, middle]  # one for each process


def test_nothing_waits_for_a_pool_that_was_stopped():
    with Pool(2, ["never"]) as pool:
        early = pool.submit("early", partial(squares, [1]))
        pool.stop()
        late = pool.submit("late", partial(squares, [2]))
        assert wait([early, late], timeout=5).not_done == set()
        assert "ended" in str(early.exception())


def test_expected_seconds_are_those_of_the_longest_beginning():
    known = SECONDS["digits-classification"]
    assert expected_seconds("digits-classification", "JPATS-printed-0") == known["JPATS-printed"]
    assert expected_seconds("digits-classification", "JPATS-3") == known["JPATS"]
    assert expected_seconds("digits-classification", "pixels-0") == OTHER
    assert expected_seconds("complexity", "atoms-ours-4") < 0
    assert set(SECONDS) <= set(registry.ENTRIES)


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.setattr("patternfold.experiments.workers.cores", lambda: 16)
    assert _thread_settings(16)["NPROC"] == _thread_settings(9)["OMP_NUM_THREADS"] == "1"
    assert "XLA_FLAGS" in _thread_settings(16)
    assert _thread_settings(4)["NPROC"] == "4"
    assert "XLA_FLAGS" not in _thread_settings(4)
