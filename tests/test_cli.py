"""The command line, from real files to real files, and with wrong ones."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_runs import QUICK, fails, misused, run, write_fives, write_pictures
from helpers import small_model
from PIL import Image

from patternfold import PATS, load
from patternfold.cli import main
from patternfold.cli.console import Failure
from patternfold.cli.picture_names import picture_names
from patternfold.persistence import read_model_file, save

pytestmark = pytest.mark.usefixtures("least_effort_throughout")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_fives(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def learned(pictures, tmp_path_factory):
    """A model learned by the command line, once for all tests."""
    path = tmp_path_factory.mktemp("model") / "model.ptm"
    assert main(["learn", str(pictures), "-o", str(path), *QUICK, "--quiet"]) == 0
    return path


def test_learned_model(learned, pictures):
    found = read_model_file(learned)
    assert found.model.pattern_.n_atoms == 2
    assert found.model.error_path_[-1] < 0.1
    assert found.model.image_shape_ == (16, 16)
    assert found.examples is not None
    assert found.examples.names == tuple(f"{i:02}.png" for i in range(8))
    assert found.preparation == {
        "size": [16, 16],
        "background": "dark",
        "subtract_background": False,
        "normalise": "unit",
        "white": None,
        "fit_each": False,
        "scale": 1.0,
        "version": 2,
    }
    assert list(learned.parent.iterdir()) == [learned]


def test_learning_says_what_it_does(pictures, tmp_path, capsys):
    path = tmp_path / "model.ptm"
    values, said = run(capsys, "learn", pictures, "-o", path, *QUICK, "--examples", "3")
    assert values["atoms"] == 2
    assert values["images"] == 8
    assert values["error"] == pytest.approx(load(path).error_path_[-1])
    assert "8 images of 16×16 pixels" in said
    assert "each image scaled to unit norm" in said
    assert "atom 2/2" in said  # plain lines: this is no terminal
    assert "\r" not in said
    assert len(read_model_file(path).examples.names) == 3
    message = fails(capsys, "learn", pictures, "-o", path, *QUICK)
    assert "exists already; --force overwrites it" in message


def test_classes_are_taken_together(pictures, tmp_path, capsys, monkeypatch):
    def enough(*_):
        raise Failure("enough")

    for name, file in (("a", "00.png"), ("b", "01.png")):
        image = np.asarray(Image.open(pictures / file)) / 255
        turned = [np.rot90(image, k) for k in range(4)]
        write_pictures(tmp_path / "both" / name, turned)
    command = ["learn", tmp_path / "both", "-o", tmp_path / "model.ptm", *QUICK]
    assert "'sx' is not known" in fails(capsys, *command, "--bound", "sx=1:2")
    monkeypatch.setattr("patternfold.cli.commands.learn._fit", enough)
    assert "2 classes taken together: one pattern is learned for all" in fails(capsys, *command)


def test_align_to_a_folder(learned, pictures, tmp_path, capsys):
    values, _ = run(capsys, "align", learned, pictures, "-o", tmp_path / "aligned")
    assert values["spread_after_over_before"] < 0.8
    with open(tmp_path / "aligned" / "poses.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"{i:02}.png" for i in range(8)]
    lam = np.array([[float(row[n]) for n in ("theta", "tx", "ty", "s")] for row in rows])
    assert np.ptp(lam[:, 0]) > 1
    with Image.open(tmp_path / "aligned" / "03.png") as image:
        assert image.size == (16, 16)
    assert "exists already" in fails(capsys, "align", learned, pictures, "-o", tmp_path / "aligned")
    run(capsys, "align", learned, pictures, "-o", tmp_path / "aligned", "--force")


def test_align_to_arrays(learned, pictures, tmp_path, capsys):
    source = tmp_path / "classes"
    for name in ("a", "b"):
        write_pictures(source / name, [np.asarray(Image.open(pictures / "00.png")) / 255] * 2)
    run(capsys, "align", learned, source, "-o", tmp_path / "aligned.npz")
    with np.load(tmp_path / "aligned.npz") as file:
        assert file["aligned"].shape == (4, 16, 16)
        assert file["labels"].tolist() == ["a", "a", "b", "b"]
        assert file["parameter_names"].tolist() == ["theta", "tx", "ty", "s"]
        np.testing.assert_array_equal(file["aligned"][0], file["aligned"][3])
    assert "ending in .tif, .zarr or .npz" in fails(
        capsys, "align", learned, source, "-o", tmp_path / "x.txt"
    )


def test_pages_of_stacks_get_names_of_their_own(learned, pictures, tmp_path, capsys):
    pages = [Image.open(pictures / f"0{i}.png") for i in range(3)]
    pages[0].save(tmp_path / "stack.tif", save_all=True, append_images=pages[1:])
    run(capsys, "align", learned, tmp_path / "stack.tif", "-o", tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"stack_0.tif", "stack_1.tif", "stack_2.tif", "mean.png"} < names


def test_no_picture_is_lost_by_its_name(learned, pictures, tmp_path, capsys):
    source = tmp_path / "source"
    (source / "b.png").mkdir(parents=True)
    with Image.open(pictures / "00.png") as image:
        names = ["a.png", "a.bmp", "mean.png", "b.bmp", "b.png/x.png", "c[1].png"]
        for name in names:
            image.convert("L").save(source / name)
        image.save(source / ("n" * 250 + ".tif"), save_all=True, append_images=[image])
    values, _ = run(capsys, "align", learned, source, "-o", tmp_path / "out")
    written = [p for p in (tmp_path / "out").rglob("*.*") if p.is_file() and p.suffix != ".csv"]
    assert values["images"] == len(names) + 2
    assert len(written) == values["images"] + 1  # and their mean
    with open(tmp_path / "out" / "poses.csv", newline="") as file:
        table = {row["source"]: row["file"] for row in csv.DictReader(file)}
    assert len({name.casefold() for name in table.values()}) == values["images"]
    assert table["b.png/x.png"] == "b.png/x.png"
    assert table["c[1].png"] == "c[1].png"
    assert table["mean.png"] == "mean_png.png"
    said = fails(capsys, "align", learned, source, "-o", source, "--force")
    assert "holds the pictures to align" in said


def test_names_of_pictures():
    assert picture_names(["cat/stack.tif[3]", "cat/dog.png"]) == ["cat/stack_3.png", "cat/dog.png"]
    alike = ["a.png", "a.bmp", "a.gif", "A.jpg", "a_bmp.tif", "a.tif[1]", "a_1.tif", "a/a.png"]
    expected = ["a.png", "a_bmp.png", "a_gif.png", "A_jpg.png", "a_bmp_tif.png"]
    expected += ["a_1.png", "a_1_tif.png", "a/a.png"]
    assert picture_names(alike) == expected
    assert picture_names(["x.png", "x.png", "x.png"]) == ["x.png", "x_png.png", "x_2.png"]
    assert picture_names(["mean.gif"], ["mean.png"]) == ["mean_gif.png"]
    assert picture_names(["a.png", "a.png/b.png"]) == ["a_png.png", "a.png/b.png"]
    assert len(picture_names(["é" * 126 + ".png[12]"])[0].encode()) <= 255


def full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("output", ["x.npz", "folder", "x.csv", "x.png"])
def test_a_full_disk_destroys_nothing(output, learned, pictures, tmp_path, capsys, monkeypatch):
    path = tmp_path / output
    command = ["align", learned, pictures] if "." not in output or "npz" in output else None
    command = command or ["export", learned]
    if output == "folder":
        path.mkdir()
        (path / "00.png").write_text("old")
        # The disk is full when the last file is written.
        monkeypatch.setattr("patternfold.cli.commands.align._table", full)
    else:
        path.write_text("old")
        monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in fails(capsys, *command, "-o", path, "--force")
    assert (path / "00.png" if output == "folder" else path).read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [output]


def test_explore(learned, pictures, tmp_path, capsys):
    values, _ = run(capsys, "explore", learned, "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert values["bytes"] == len(text.encode())
    assert "<h1>model.ptm</h1>" in text
    assert '"name":"07.png"' in text
    options = ["--images", pictures, "--title", "Fives"]
    run(capsys, "explore", learned, "-o", tmp_path / "other.html", *options)
    assert "<h1>Fives</h1>" in (tmp_path / "other.html").read_text()


def test_report(learned, pictures, tmp_path, capsys):
    run(capsys, "report", learned, "-o", tmp_path / "report.html", "--images", pictures)
    assert "Images that fit worst" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("ending", ["svg", "png", "csv"])
def test_export(ending, learned, tmp_path, capsys):
    path = tmp_path / f"pattern.{ending}"
    values, _ = run(capsys, "export", learned, "-o", path, "--size", "64")
    assert values["atoms"] == 2
    assert path.stat().st_size > 100
    assert "not known" in fails(capsys, "export", learned, "-o", tmp_path / "pattern.bmp")


def test_info(learned, capsys):
    values, _ = run(capsys, "info", learned)
    assert values["atoms"] == 2
    assert values["image_size"] == "16×16"
    assert values["training_images"] == 8
    values, _ = run(capsys, "info")
    assert values["devices"]
    assert main(["info", str(learned)]) == 0
    assert "transformation   Similarity" in capsys.readouterr().out


def test_files_without_preparation_are_taken_as_they_are(pictures, tmp_path, capsys):
    model, _ = small_model()
    save(model, tmp_path / "bare.ptm")
    options = ["-o", tmp_path / "page.html", "--images", pictures]
    _, said = run(capsys, "explore", tmp_path / "bare.ptm", *options)
    assert "does not say how its images were prepared" in said
    _, said = run(capsys, "info", tmp_path / "bare.ptm")


def test_options_and_configuration_reach_the_estimator(pictures, tmp_path, capsys, monkeypatch):
    def published(cls, **options):  # in place of the slow one
        return cls(**options, n_exchanges=0)

    monkeypatch.setattr(PATS, "paper", classmethod(published))
    path, config = tmp_path / "model.ptm", tmp_path / "settings.toml"
    config.write_text(
        f"""
        [learn]
        output = "{path}"
        atoms = 5
        transformation = "similarity"
        bound = ["s=0.6:1.6"]
        subtract_background = true
        no_offset = true
        json = true
        """
    )
    options = ["--config", str(config), "--atoms", "2", "--paper", "--seed", "3"]
    assert main(["learn", str(pictures), *options, "--normalise", "range"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["atoms"] == 2  # the command line wins
    found = read_model_file(path)
    assert found.model.bounds == {"s": (0.6, 1.6)}
    assert (found.model.random_state, found.model.n_exchanges) == (3, 0)
    assert not found.model.gain  # as published
    assert found.preparation is not None
    assert found.preparation["subtract_background"] is True
    assert found.preparation["normalise"] == "range"


# What must be refused


def test_what_was_meant(learned, pictures, tmp_path, capsys):
    start = ["learn", pictures, "-o", tmp_path / "x.ptm"]
    assert "Did you mean 'learn'?" in misused(capsys, "lern", pictures)
    assert "Did you mean 'similarity'?" in misused(capsys, *start, "--transformation", "simlarity")
    assert "--atms is not an option. Did you mean '--atoms'?" in misused(capsys, *start, "--atms=3")
    assert "Did you mean 's'?" in fails(capsys, *start, *QUICK, "--bound", "sx=1:2")
    wrong = learned.with_name("modl.ptm")
    assert f"Did you mean '{learned}'?" in fails(capsys, "info", wrong)
    missing = pictures.with_name("five")
    assert f"Did you mean '{pictures}'?" in fails(capsys, "learn", missing, *start[2:])
    config = tmp_path / "settings.toml"
    config.write_text("[learn]\natms = 3")
    assert "Did you mean 'atoms'?" in misused(capsys, *start, "--config", config)


def test_mixed_sizes_text_and_alpha(learned, pictures, tmp_path, capsys):
    folder = tmp_path / "mixed"
    folder.mkdir()
    with Image.open(pictures / "00.png") as image:
        image.resize((20, 24)).save(folder / "large.png")
        image.convert("RGBA").save(folder / "alpha.png")
        Image.fromarray(np.asarray(image).astype(np.uint16) * 257).save(folder / "deep.tif")
    (folder / "text.png").write_text("This is no picture.")
    start = ["learn", folder, "-o", tmp_path / "x.ptm", *QUICK]
    assert "text.png can't be read" in fails(capsys, *start)
    options = ["-o", tmp_path / "aligned", "--skip-unreadable"]
    values, said = run(capsys, "align", learned, folder, *options)  # the model knows the size
    assert values["images"] == 3
    assert "1 unreadable file(s) left out: text.png" in said
    assert "1 colour picture(s) turned grey" in said
    assert "on 16×16 pixels" in said


def test_unwritable_outputs(learned, pictures, tmp_path, capsys):
    assert "does not exist" in fails(capsys, "explore", learned, "-o", tmp_path / "no" / "p.html")
    assert "is a folder" in fails(capsys, "explore", learned, "-o", tmp_path, "--force")
    (tmp_path / "file").write_text("")
    message = fails(capsys, "learn", pictures, "-o", tmp_path / "file" / "x.ptm", *QUICK)
    assert "does not exist" in message


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_folders_without_permission(learned, tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert "no permission" in fails(capsys, "explore", learned, "-o", tmp_path / "page.html")


def test_wrong_model_files(learned, tmp_path, capsys):
    page = ["-o", tmp_path / "page.html"]
    assert "does not exist" in fails(capsys, "explore", tmp_path / "none.ptm", *page)
    assert "is a folder" in fails(capsys, "explore", tmp_path, *page)
    (tmp_path / "cut.ptm").write_bytes(learned.read_bytes()[:-100])
    assert "not a patternfold model" in fails(capsys, "explore", tmp_path / "cut.ptm", *page)
    assert list(tmp_path.iterdir()) == [tmp_path / "cut.ptm"]


# Interruptions


def test_interrupted_run_keeps_what_it_has(pictures, tmp_path):
    """Ctrl-C after some atoms: the model so far is written; compiled code is kept for later."""
    path, cache = tmp_path / "model.ptm", tmp_path / "cache"
    command = [sys.executable, "-m", "patternfold", "learn", pictures, "-o", path]
    command += ["--transformation", "similarity", "--atoms", "500"]
    environment = os.environ | {"PATTERNFOLD_CACHE": str(cache)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)  # that of the tests would be taken instead
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if "atom 3/" in line:
                process.send_signal(signal.SIGINT)
                break
        pressed = time.perf_counter()
        assert "stopping" in process.stderr.readline()
        assert time.perf_counter() - pressed < 1
        while not path.exists() and time.perf_counter() - pressed < 60:
            time.sleep(0.01)
        assert time.perf_counter() - pressed < 2  # measured: 0.1 to 0.9 s on a busy machine
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "interrupted: " in out
    assert "Traceback" not in err
    model = load(path)
    assert 1 <= model.pattern_.n_atoms < 500
    assert model.stop_reason_ == "interrupted"
    assert any(cache.iterdir())
