"""The command line where nothing is learned: help, options, configuration, wrong usage."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_runs import QUICK, fails, misused, write_fives
from helpers import small_model

from patternfold.cli import main, names
from patternfold.cli.cache import cache_folder
from patternfold.cli.console import Console
from patternfold.learning.select import solvers
from patternfold.persistence import save


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_fives(tmp_path_factory.mktemp("pictures"))


# What must work
def test_help_answers_at_once():
    def seconds(*arguments):
        started = time.perf_counter()
        command = [sys.executable, "-m", "patternfold", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "usage: patternfold" in done.stdout
        return time.perf_counter() - started

    assert min(seconds("--help") for _ in range(3)) < 0.5
    assert min(seconds("learn", "--help") for _ in range(3)) < 0.5


def test_names_are_those_of_the_library():
    import patternfold as pf

    known = {
        names.transformations: pf.transformations.TRANSFORMATIONS,
        names.mothers: pf.mothers.MOTHERS,
        names.dictionaries: pf.dictionaries.DICTIONARIES,
        names.solvers: solvers.SOLVERS,
    }
    for listed, registry in known.items():
        assert listed() == tuple(registry)
    # A new process, which has loaded nothing, reads the same names from the source.
    code = (
        "import sys; from patternfold.cli import names; "
        f"print(*({', '.join(f'names.{f.__name__}()' for f in known)})); "
        "assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == " ".join(str(tuple(registry)) for registry in known.values())


def test_names_that_are_too_long_are_refused_before_learning(pictures, tmp_path, capsys):
    path = tmp_path / ("x" * 300 + ".ptm")
    assert "too long" in fails(capsys, "learn", tmp_path / "nothing", "-o", path)


def test_names_that_are_too_long_with_newer_pythons(tmp_path, capsys, monkeypatch):
    """From Python 3.14 on paths that can't be are no error, but do not exist."""
    for name in ("exists", "is_dir"):
        newer = getattr(os.path, name.replace("_", ""))
        monkeypatch.setattr(Path, name, lambda path, newer=newer: newer(path))
    path = tmp_path / ("é" * 126 + ".ptm")  # 256 bytes
    for command in ("learn", "cluster"):
        assert "too long" in fails(capsys, command, tmp_path / "nothing", "-o", path)


def test_escape_sequences_of_a_file_are_shown_not_sent(tmp_path, capsys):
    model, _ = small_model()
    model.stop_reason_ = "\x1b]0;owned\x07\x9b2J\u202e\nfile  elsewhere"
    save(model, tmp_path / "model.ptm", preparation={"size": "\x1b[31m", "x": "caf\udce9"})
    assert main(["info", str(tmp_path / "model.ptm")]) == 0
    said = capsys.readouterr().out
    assert not any(c in said for c in "\x1b\x07\x9b\u202e\udce9")
    assert r"\x1b]0;owned\x07\x9b2J\u202e\nfile  elsewhere" in said
    Console().fail("caf\udce9 \x1b")
    assert capsys.readouterr().err == "patternfold: error: caf\\udce9 \\x1b\n"


def test_bounds_that_can_not_be_are_refused(pictures, tmp_path, capsys):
    options = ["-o", tmp_path / "x.ptm", *QUICK, "--bound", "s=0:2"]
    said = fails(capsys, "learn", pictures, *options)
    assert "bounds of 's' are (0, 2); they must stay between 0.001 and 1000" in said


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[learn", "can't be read"),
        ("[teach]\na = 1", "[teach] is not a table of a command"),
        ("[learn]\nlearning-rate = 1", "learning-rate is not an option"),
        ("[learn]\natoms = 'many'", "'many' can't be used"),
        ("[learn]\natoms = 0", "not at least 1"),
        ("[learn]\natoms = [1, 2]", "must be a single value"),
        ("[learn]\nmother = 'cauchy'", "must be one of gaussian"),
        ("[learn]\npaper = 1", "must be true or false"),
        ("[learn]\nbound = ['s']", "is no bound"),
    ],
)
def test_wrong_configuration(text, match, pictures, tmp_path, capsys):
    config = tmp_path / "settings.toml"
    config.write_text(text)
    said = misused(capsys, "learn", pictures, "-o", tmp_path / "x", "--config", config)
    assert match in said


def test_absent_configuration(pictures, tmp_path, capsys):
    said = misused(capsys, "learn", pictures, "-o", "x", "--config", tmp_path / "none.toml")
    assert "can't be read" in said


def test_demo_overwrites_nothing_unasked(tmp_path, capsys):
    (tmp_path / "five.png").write_text("old")
    assert "exists already; --force" in fails(capsys, "demo", "-o", tmp_path)


def test_wrong_usage(pictures, tmp_path, capsys):
    assert "COMMAND" in misused(capsys)
    assert "'teach' is not known" in misused(capsys, "teach")
    assert "-o/--output" in misused(capsys, "learn", pictures)
    start = ["learn", pictures, "-o", tmp_path / "x.ptm"]
    assert "affine" in misused(capsys, *start, "--transformation", "afine")
    assert "is no size" in misused(capsys, *start, "--size", "big")
    assert "is no bound" in misused(capsys, *start, "--bound", "theta=1:0")
    assert "--atoms" in misused(capsys, *start, "--atoms", "0")
    assert "--examples" in misused(capsys, *start, "--examples", "-1")
    assert not (tmp_path / "x.ptm").exists()


def test_empty_folders_and_single_images(pictures, tmp_path, capsys):
    output = ["-o", tmp_path / "x.ptm"]
    assert "holds no images" in fails(capsys, "learn", tmp_path, *output)
    assert "does not exist" in fails(capsys, "learn", tmp_path / "nowhere", *output)
    assert "holds one image" in fails(capsys, "learn", pictures / "00.png", *output)


def test_failures_for_programs(tmp_path, capsys):
    assert main(["info", str(tmp_path / "none.ptm"), "--json"]) == 1
    assert "does not exist" in json.loads(capsys.readouterr().out)["error"]


def test_interrupted_before_the_first_atom(pictures, tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("patternfold.files.read_images", stop)
    message = fails(capsys, "learn", pictures, "-o", tmp_path / "x.ptm", *QUICK)
    assert "nothing was written" in message
    assert list(tmp_path.iterdir()) == []


def test_cache_folder(monkeypatch, tmp_path):
    assert cache_folder() is None  # switched off for the tests
    monkeypatch.setenv("PATTERNFOLD_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("PATTERNFOLD_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "patternfold"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "patternfold"
