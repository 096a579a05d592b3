"""The fuzzers run, and find nothing in a few cases."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.repository

FOLDER = Path(__file__).parents[1] / "fuzz"
sys.path.append(str(FOLDER))


@pytest.mark.parametrize("name", ["pictures", "step_files", "checkpoints", "model_files"])
def test_a_few_cases(name, monkeypatch):
    # Files of version 0.1: writing new ones would take longer than all the rest.
    monkeypatch.setenv("PATTERNFOLD_FUZZ_SEEDS", str(FOLDER.parent / "tests/data"))
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--cases", "150", "--seed", "7"]
    command += ["--processes", "2"] if name == "checkpoints" else []
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "cases: 150, seed 7" in ended.stdout
    assert "findings: 0" in ended.stdout


def test_a_folder_of_bad_files():
    command = [sys.executable, str(FOLDER / "hostile_folder.py"), "--good", "20"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "20 good pictures" in ended.stdout


def test_half_files_are_seen(tmp_path):
    """What judges faults finds files that are cut off, changed or gone, and those left over."""
    from fault_tools import broken, digests, leftovers

    whole = FOLDER.parent / "tests/data/pats_0.1.pfold"
    contents = {"m.ptm": whole.read_bytes(), "p.html": b"<html>\n</html>\n", "t.csv": b"a,b\n1,2\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    before = digests([tmp_path])
    assert broken([tmp_path], before) == broken([tmp_path], {}) == []
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content[: len(content) // 2 + 2])
    assert len(broken([tmp_path], before)) == 3
    (tmp_path / "m.ptm").unlink()
    assert any("is gone" in text for text in broken([tmp_path], before))
    (tmp_path / ".m.ptm.0123abcd").touch()
    assert len(leftovers(tmp_path)) == 1


def test_cases_of_faults_are_tried_while_there_is_time(monkeypatch):
    """Minutes count from the first case; what can't be tried is left out, an error is a finding."""
    import faults

    def kind(stage, name, where, rng):
        if name == "export":
            raise OSError("no room")
        return None if where.endswith("1") else []

    monkeypatch.setitem(faults.KINDS, "kill", kind)
    stage = SimpleNamespace(names=["learn", "export"])
    options = SimpleNamespace(cases=2, kinds=["kill"], seed=0, jobs=1, minutes=None)
    done = dict(faults.tried(stage, options))
    assert done["kill", "learn", 0] == []
    assert ("kill", "learn", 1) not in done
    assert done["kill", "export", 1] == ["kill export case 1: OSError: no room"]
    moments = iter([0.0, 1.0, 1e9, 1e9, 1e9])  # when it begins, and before each of the four cases
    monkeypatch.setattr(faults.time, "perf_counter", lambda: next(moments))
    monkeypatch.setitem(faults.KINDS, "kill", lambda *which: [])
    options.minutes = 1.0
    assert len(faults.tried(stage, options)) == 1


def test_values_are_nested_once():
    """Within lists that are nested already others would be too deep for Python."""
    from damage import DEEPEST, _nested, _places

    assert max(map(len, _places(_nested(900)))) == DEEPEST


def spin():
    while True:
        pass


def test_what_readers_must_not_do_is_seen(tmp_path):
    from guard import Hang, Watch, alarmed

    watch = Watch()
    watch.scratch, watch.on = str(tmp_path / "own"), True
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "elsewhere").unlink()
    watch.on = False
    assert "elsewhere" in watch.seen[0]
    assert len(watch.seen) == 2
    with pytest.raises(Hang), alarmed(0.05):
        spin()
