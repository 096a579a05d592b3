"""The fuzzers run, and find nothing in a few cases."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "fuzz"


@pytest.mark.parametrize("name", ["pictures", "step_files", "checkpoints", "model_files"])
def test_a_few_cases(name, monkeypatch):
    # Files of version 0.1: writing new ones would take longer than all the rest.
    monkeypatch.setenv("PATTERNFOLD_FUZZ_SEEDS", str(FOLDER.parent / "tests/data"))
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--cases", "150", "--seed", "7"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "cases: 150, seed 7" in ended.stdout
    assert "findings: 0" in ended.stdout


def test_a_folder_of_bad_files():
    command = [sys.executable, str(FOLDER / "hostile_folder.py"), "--good", "20"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "20 good pictures" in ended.stdout
