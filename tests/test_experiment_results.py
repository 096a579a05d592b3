"""Results of experiments: pages, the ledger, sets of images and the command."""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from experiment_steps import Settings, calls, count_up, make_outcome

from patternfold import __version__, datasets
from patternfold.cli import main
from patternfold.experiments import Experiment, registry, standins
from patternfold.experiments.ledger import write_ledger
from patternfold.experiments.page import write_page
from patternfold.experiments.results import run_experiment


@pytest.fixture
def tiny(monkeypatch):
    """An experiment that does nothing of weight, in place of one of the registry's."""
    calls.clear()
    # Other processes could not be counted.
    monkeypatch.setattr("patternfold.experiments.workers.cores", lambda: 1)
    experiment = Experiment(Settings(5), Settings(3), make_outcome)
    monkeypatch.setattr("patternfold.experiments.results.load_experiment", lambda name: experiment)


def test_a_run_leaves_its_results(tmp_path, tiny):
    record = run_experiment("complexity", tmp_path, seed=4)
    folder = tmp_path / "complexity"
    assert record.folder == folder
    rows = list(csv.DictReader((folder / "metrics.csv").read_text().splitlines()))
    assert [row["value"] for row in rows] == ["0.0", "1.0", "2.0", "3.0", "4.0"]
    config = json.loads((folder / "config.json").read_text())
    assert config["configuration"] == {"n": 5}
    assert config["seed"] == 4
    assert set(config["seconds_of_steps"]) == {"a", "b", "c"}
    assert config["versions"]["patternfold"]
    claims = json.loads((folder / "claims.json").read_text())
    assert [claim["holds"] for claim in claims] == [True, False]
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_force_begins_anew(tmp_path, tiny):
    run_experiment("complexity", tmp_path, quick=True)
    run_experiment("complexity", tmp_path, quick=True)
    assert len(calls) == 3
    run_experiment("complexity", tmp_path, quick=True, force=True)
    assert len(calls) == 6


def test_the_page_shows_all_results(tmp_path, tiny):
    run_experiment("complexity", tmp_path, quick=True)
    run_experiment("illumination", tmp_path, quick=True)
    text = write_page(tmp_path).read_text()
    assert "2 of 4 statements of the paper hold" in text
    assert text.index('id="illumination"') < text.index('id="complexity"')
    assert text.count("data:image/png") == 2
    assert "http" not in text.replace("http-equiv", "")


def test_the_ledger_is_written_from_full_runs(tmp_path, tiny):
    docs, results = tmp_path / "docs", tmp_path / "results"
    docs.mkdir()
    run_experiment("complexity", results, quick=True)
    with pytest.raises(FileNotFoundError, match="reproduce all"):
        write_ledger(results, docs)
    run_experiment("complexity", results)
    (docs / "tried").mkdir()
    (docs / "tried/complexity.md").write_text("This and that.")
    values, _ = write_ledger(results, docs)
    text, page = ((docs / name).read_text() for name in ("claims.md", "claims/complexity.md"))
    assert (values["statements"], values["hold"]) == (2, 1)
    assert "1 of 2 statements hold" in text
    assert "| [Section V](claims/complexity.md) | It \\| falls. | **no** | – |" in text
    assert "| It \\| falls. | it does not. It grows. | **no** | – |" in page
    assert "{include} ../tried/complexity.md" in page
    assert "Not run: digits-approximation" in text
    assert "claims/complexity\n" in text  # the table of contents
    assert (docs / "images/experiments/complexity-curve.png").exists()


def test_the_ledger_says_from_which_version_it_is(tmp_path, tiny, monkeypatch):
    monkeypatch.setenv("PATTERNFOLD_COMMIT", "abc1234")
    run_experiment("complexity", tmp_path)
    values, _ = write_ledger(tmp_path, tmp_path)
    assert values["versions"] == [f"{__version__}, commit abc1234"]
    assert f"From version {__version__}, commit abc1234." in (tmp_path / "claims.md").read_text()
    page = (tmp_path / "claims/complexity.md").read_text()
    assert "there is no `tried/complexity.md`" in page  # a statement fails


def test_stand_ins_are_named_wherever_results_are(tmp_path, tiny, monkeypatch):
    experiment = Experiment(
        Settings(5), Settings(3), lambda context: replace(make_outcome(context), stand_in="dots")
    )
    monkeypatch.setattr("patternfold.experiments.results.load_experiment", lambda name: experiment)
    assert run_experiment("complexity", tmp_path).stand_in == "dots"
    write_ledger(tmp_path, tmp_path)
    assert "complexity.md), stand-in |" in (tmp_path / "claims.md").read_text()
    assert "**Stand-in**: dots" in (tmp_path / "claims/complexity.md").read_text()
    assert "Stand-in: dots." in write_page(tmp_path).read_text()


def test_what_is_missing_has_a_stand_in(tmp_path):
    pictures, text = standins.load_expressions(tmp_path)
    assert pictures.shape == (200, 28, 20)
    assert "in place of the Frey faces" in text
    pictures, text = standins.load_lights(tmp_path, 0)
    assert pictures.shape == (64, 48, 42)
    assert len(np.unique(pictures.reshape(64, -1), axis=0)) == 64
    assert "Yale" in text
    np.savez(tmp_path / "frey_faces.npz", x=pictures)
    found, text = standins.load_expressions(tmp_path)
    assert (len(found), text) == (64, "")


def test_missing_sets_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("PATTERNFOLD_DATA", raising=False)
    for load, file in (
        (datasets.load_frey_faces, "frey_faces.npz"),
        (datasets.load_yale_faces, "yaleb_3subjects_48x42.npz"),
        (datasets.load_plankton, "plankton_ndsb12_64.npz"),
    ):
        with pytest.raises(datasets.MissingData, match=f"no folder .*{file}.*made from .*--data"):
            load()
        with pytest.raises(datasets.MissingData, match=f"{file} is not there"):
            load(tmp_path)
    np.savez(tmp_path / "frey_faces.npz", y=np.zeros(3))
    with pytest.raises(ValueError, match="has no array 'x'"):
        datasets.load_frey_faces(tmp_path)


def test_sets_are_read(tmp_path):
    faces = np.arange(2 * 28 * 20, dtype=np.uint8).reshape(2, 28, 20)
    np.savez(tmp_path / "frey_faces.npz", x=faces)
    np.testing.assert_array_equal(datasets.load_frey_faces(tmp_path), faces)
    light = np.arange(2, dtype=np.int16)
    np.savez(
        tmp_path / "yaleb_3subjects_48x42.npz",
        x=faces,
        subject=light,
        azimuth=light,
        elevation=-light,
        bad=light == 0,
    )
    pictures, subjects, lights = datasets.load_yale_faces(tmp_path)
    assert (len(pictures), subjects.tolist(), lights.tolist()) == (1, [1], [[1, -1]])
    np.savez(tmp_path / "plankton_ndsb12_64.npz", x=faces, y=light, class_names=["a", "b"])
    assert datasets.load_plankton(tmp_path)[2] == ["a", "b"]


# The command line


def run(capsys, *arguments, code=0):
    found = main(["reproduce", *map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert found == code, captured.err
    return json.loads(captured.out), captured.err


def test_experiments_are_listed(capsys):
    values, _ = run(capsys, "list")
    assert [entry["name"] for entry in values["experiments"]] == list(registry.ENTRIES)
    assert len(registry.ENTRIES) == 11


def test_unknown_experiments_are_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", "digit-approximation"])
    assert caught.value.code == 2
    assert "'digits-approximation'" in capsys.readouterr().err


def test_an_experiment_runs_and_goes_on(tmp_path, capsys, tiny):
    values, said = run(capsys, "complexity", "--quick", "-o", tmp_path)
    assert values["experiments"][0]["hold"] == 1
    assert (tmp_path / "report.html").exists()
    assert "steps to do: 3, 1 at a time" in said
    assert "a: 0.0 s, steps left: 2" in said
    _, said = run(capsys, "complexity", "--quick", "-o", tmp_path)
    assert "a: from an earlier run" in said
    assert len(calls) == 3


def test_damaged_results_of_another_experiment_are_left_out_aloud(tmp_path, capsys, tiny):
    for name in ("complexity", "illumination"):
        run(capsys, name, "--quick", "-o", tmp_path)
    config = tmp_path / "illumination/config.json"
    content = config.read_text()
    for damaged in (content[: len(content) // 2], "", "[]", "{}", "\xff", "[" * 100_000):
        config.write_bytes(damaged.encode("latin-1"))
        values, said = run(capsys, "complexity", "--quick", "-o", tmp_path)
        assert [done["name"] for done in values["experiments"]] == ["complexity"]
        assert f"warning: {config} is damaged" in said
        assert "patternfold reproduce illumination" in said
    config.write_text(content)
    (tmp_path / "illumination/curve.png").unlink()
    assert "curve.png is damaged (it is missing)" in run(capsys, "complexity", "-o", tmp_path)[1]
    _, said = run(capsys, "illumination", "--quick", "-o", tmp_path)
    assert "warning" not in said


def test_quick_looks_have_a_place_of_their_own(tmp_path, capsys, tiny, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(capsys, "complexity", "--quick")
    assert (tmp_path / "results/quick/report.html").exists()
    run(capsys, "complexity")
    assert (tmp_path / "results/complexity/metrics.csv").exists()


def test_an_interruption_says_how_to_go_on(tmp_path, capsys, tiny, monkeypatch):
    def interrupted(key, n):
        raise KeyboardInterrupt

    steps = {"a": partial(count_up, "a", 3), "b": partial(interrupted, "b", 3)}
    experiment = Experiment(Settings(), Settings(), lambda context: context.parallel(steps))
    monkeypatch.setattr("patternfold.experiments.results.load_experiment", lambda name: experiment)
    values, _ = run(capsys, "complexity", "--quick", "-o", tmp_path, code=1)
    assert "the same command goes on" in values["error"]
    assert (tmp_path / "complexity/steps/a.npz").exists()
    assert not (tmp_path / "complexity/steps/b.npz").exists()


def test_missing_data_is_a_failure_or_skipped_aloud(tmp_path, capsys, tiny, monkeypatch):
    def needs_data(context):
        if context.name == "faces-approximation":
            datasets.load_frey_faces(context.data)
        return make_outcome(context)

    experiment = Experiment(Settings(), Settings(), needs_data)
    monkeypatch.setattr("patternfold.experiments.results.load_experiment", lambda name: experiment)
    options = ("--quick", "-o", tmp_path / "results", "--data", tmp_path)
    values, _ = run(capsys, "faces-approximation", *options, code=1)
    assert "frey_faces.npz is not there" in values["error"]
    values, said = run(capsys, "all", *options, code=1)
    assert list(values["skipped"]) == ["faces-approximation"]
    assert len(values["experiments"]) == 10
    assert "warning: faces-approximation is skipped" in said


def test_the_ledger_needs_results_and_a_place(tmp_path, capsys):
    values, _ = run(capsys, "ledger", "-o", tmp_path, "--docs", tmp_path, code=1)
    assert "reproduce all" in values["error"]
    values, _ = run(capsys, "ledger", "-o", tmp_path, "--docs", tmp_path / "no", code=1)
    assert "is not a folder" in values["error"]
