"""Classification from the command line."""

import csv
import json
import os
import shutil
import signal

import numpy as np
import pytest
from helpers import class_images, small_jpats
from PIL import Image

from patternfold import JPATS, load
from patternfold.cli import main
from patternfold.persistence import save
from patternfold.show.png import to_grey

pytestmark = pytest.mark.usefixtures("small_chunks")

QUICK = ["--atoms", "2", "--transformation", "similarity"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Eight pictures of a bar and of a dot, each in a folder of its own."""
    root = tmp_path_factory.mktemp("classes")
    images, labels = class_images(8)
    for i, (image, label) in enumerate(zip(np.maximum(images, 0), labels, strict=True)):
        (root / label).mkdir(exist_ok=True)
        Image.fromarray(to_grey(image)).save(root / label / f"{i:02}.png")
    return root


def run(capsys, *arguments):
    code = main(["classify", *map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out), captured.err


def fails(capsys, *arguments):
    assert main([*map(str, arguments)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("method", ["aligned-views", "jpats"])
def test_train_and_predict(method, folders, tmp_path, capsys):
    model, table = tmp_path / "model.ptm", tmp_path / "predictions.csv"
    options = [*QUICK, "--method", method, "--holdout", "0.25"]
    options += ["--variants", "2", "--mirror"] if method == "aligned-views" else []
    values, said = run(capsys, "train", folders, "-o", model, *options)
    assert values["classes"] == ["bar", "dot"]
    assert (values["images"], values["held_out"]) == (16, 4)  # learned again from all of them
    assert "bar, learning: atom " in said
    assert "learning again, from all 16 images" in said
    assert values["accuracy"] == 1
    assert np.trace(values["confusion"]) == 4
    assert "16 images of 16×16 pixels" in said
    loaded = load(model)
    assert loaded.classes_.tolist() == ["bar", "dot"]
    if method == "aligned-views":
        assert (loaded.n_variants, loaded.mirror) == (2, True)

    values, said = run(capsys, "predict", model, folders, "-o", table)
    assert values["accuracy"] == 1
    assert values["counts"] == {"bar": 8, "dot": 8}
    assert "100.0% agree with their sub-folders" in said
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["file"].startswith(row["class"]) for row in rows)
    assert ("distance_bar" in rows[0]) == (method == "jpats")
    chances = np.array([[float(row[f"probability_{c}"]) for c in ("bar", "dot")] for row in rows])
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)
    assert [("bar", "dot")[m] for m in chances.argmax(axis=1)] == [row["class"] for row in rows]
    assert chances.max() < 0.99  # four images do not make anything certain
    assert "calibrated on held-out images" in said
    assert "exists already" in fails(capsys, "classify", "predict", model, folders, "-o", table)

    page = tmp_path / "page.html"
    assert main(["explore", str(model), "-o", str(page), "--quiet"]) == 0
    assert '"label":"dot"' in page.read_text()
    assert main(["info", str(model)]) == 0
    assert "bar, dot" in capsys.readouterr().out
    report = tmp_path / "report.html"
    assert main(["report", str(model), "-o", str(report), "--images", str(folders)]) == 0
    assert "100.0% of 16" in report.read_text()
    capsys.readouterr()
    for command in (["export", model, "-o", "x.svg"], ["align", model, folders, "-o", "x"]):
        assert "is a classifier" in fails(capsys, *command)


def test_interrupted_second_learning_keeps_the_first_model(folders, tmp_path, capsys, monkeypatch):
    calls = []

    def fit(options, bounds, console, found, labels, some):
        calls.append(some.sum())
        model = small_jpats()[0]
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return model

    monkeypatch.setattr("patternfold.cli.commands.classify_train._fit", fit)
    path = tmp_path / "model.ptm"
    command = ["classify", "train", str(folders), "-o", str(path), *QUICK, "--holdout", "0.25"]
    assert main([*command, "--json"]) == 1
    values = json.loads(capsys.readouterr().out)
    assert calls == [12, 16]
    assert (values["images"], values["interrupted"]) == (12, True)
    assert load(path).temperature_ > 0


def test_wrong_folders(folders, tmp_path, capsys):
    output = ["-o", tmp_path / "x.ptm", *QUICK]
    message = fails(capsys, "classify", "train", folders / "bar", *output)
    assert "does not show two classes" in message
    (tmp_path / "lonely" / "dot").mkdir(parents=True)
    (tmp_path / "lonely" / "bar").mkdir()
    for place in ("dot/1.png", "bar/1.png", "bar/2.png"):
        Image.new("L", (16, 16), 9).save(tmp_path / "lonely" / place)
    message = fails(capsys, "classify", "train", tmp_path / "lonely", *output)
    assert "class 'dot' has one image" in message
    message = fails(capsys, "classify", "train", folders, *output, "--outliers")
    assert "--method jpats" in message
    message = fails(capsys, "classify", "train", folders, *output, "--method", "jpats", "--mirror")
    assert "--method aligned-views" in message
    message = fails(capsys, "classify", "train", tmp_path / "none", *output, "--variants", "5000")
    assert "n_variants=5000 must be" in message
    assert not (tmp_path / "x.ptm").exists()


def test_wrong_usage(folders, capsys):
    for arguments in (["classify"], ["classify", "train", folders], ["classify", "guess"]):
        with pytest.raises(SystemExit) as caught:
            main([*map(str, arguments)])
        assert caught.value.code == 2
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["classify", "train", str(folders), "-o", "x", "--holdout", "1"])
    assert "not between 0 and 0.9" in capsys.readouterr().err


def test_configuration_of_an_action(folders, tmp_path, capsys):
    config = tmp_path / "settings.toml"
    config.write_text("[classify.train]\nmethod = 'nearest'")
    with pytest.raises(SystemExit) as caught:
        main(["classify", "train", str(folders), "-o", "x", "--config", str(config)])
    assert caught.value.code == 2
    assert "must be one of aligned-views, jpats" in capsys.readouterr().err


def test_tables_are_written_whole_whatever_names_files_have(folders, tmp_path, capsys, monkeypatch):
    # What is found is not the question, and finding it takes seconds of compilation.
    monkeypatch.setattr(JPATS, "predict", lambda self, X, effort, mask: np.repeat("bar", len(X)))
    monkeypatch.setattr(JPATS, "distances", lambda self, X, effort, mask: np.zeros((len(X), 2)))
    save(small_jpats()[0], tmp_path / "model.ptm")
    source, table = tmp_path / "source", tmp_path / "out" / "table.csv"
    source.mkdir()
    table.parent.mkdir()
    shutil.copy(folders / "bar" / "00.png", source / os.fsdecode(b"caf\xe9.png"))
    run(capsys, "predict", tmp_path / "model.ptm", source, "-o", table)
    with open(table, newline="", encoding="utf-8") as file:
        assert [row["file"] for row in csv.DictReader(file)] == [r"caf\xe9.png"]

    def full(*_):
        raise OSError(28, "No space left on device")

    before = table.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    command = ["classify", "predict", tmp_path / "model.ptm", source, "-o", table, "--force"]
    assert "No space left" in fails(capsys, *command)
    assert table.read_bytes() == before
    assert list(table.parent.iterdir()) == [table]
