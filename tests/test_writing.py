"""Files appear whole or not at all, and leftovers of killed writers go."""

import os
import subprocess
import sys

import pytest

from patternfold._writing import (
    LONGEST_NAME,
    replacing,
    replacing_folder,
    write_bytes,
    write_text,
)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def full_disk(write):
    """Run ``write``, which a full disk interrupts half way."""
    with pytest.raises(OSError, match="No space left"):
        write()


def test_a_full_disk_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")

    def write():
        with replacing(path) as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    full_disk(write)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["x.csv"]
    write_bytes(path, b"new")
    assert path.read_text() == "new"


def test_a_full_disk_leaves_the_old_folder_alone(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a").write_text("old")

    def write():
        with replacing_folder(folder) as place:
            (place / "a").write_text("new")
            raise OSError(28, "No space left on device")

    full_disk(write)
    assert names(tmp_path) == ["out"]
    assert (folder / "a").read_text() == "old"
    with replacing_folder(folder) as place:
        (place / "sub").mkdir()
        (place / "sub" / "b").write_text("new")
    assert names(folder) == ["a", "sub"]
    with replacing_folder(tmp_path / "fresh") as place:
        (place / "c").write_text("new")
    assert names(tmp_path) == ["fresh", "out"]


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    script = (
        "import os, sys; from patternfold._writing import replacing, replacing_folder\n"
        "with replacing(sys.argv[1]) as file, replacing_folder(sys.argv[2]): os._exit(9)"
    )
    path, folder = tmp_path / "model.ptm", tmp_path / "out"
    assert subprocess.run([sys.executable, "-c", script, path, folder]).returncode == 9
    assert len(names(tmp_path)) == 2
    with replacing(path):
        # Another writer is at work: what it has begun stays.
        write_bytes(path, b"first")
        with replacing_folder(folder), replacing_folder(folder):
            assert len(names(tmp_path)) == 4
    assert names(tmp_path) == ["model.ptm", "out"]


def test_other_hidden_files_stay(tmp_path):
    for name in (".x.notahexa", ".x.12345678.bak", ".y.12345678"):
        (tmp_path / name).touch()
    write_bytes(tmp_path / "x", b"")
    assert len(names(tmp_path)) == 4


def test_longest_names(tmp_path):
    path = tmp_path / ("é" * 126 + "abc")
    assert len(os.fsencode(path.name)) == LONGEST_NAME
    write_bytes(path, b"1")
    write_bytes(path, b"2")
    assert names(tmp_path) == [path.name]


def test_what_utf8_can_not_hold(tmp_path):
    write_text(tmp_path / "x", "caf\udce9")
    assert (tmp_path / "x").read_bytes() == b"caf\\udce9"


def test_links_and_devices(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_bytes("/dev/null", b"gone")
    assert not os.path.isfile("/dev/null")
