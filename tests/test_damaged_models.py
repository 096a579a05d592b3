"""Model files that are damaged, or made to do harm, are refused."""

import io
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from model_files import members_of, npy, refused, saved_model, write

from patternfold.persistence import CODECS, ModelFileError, load

pytestmark = pytest.mark.usefixtures("as_users_run")  # the checks under test are our own


@pytest.fixture
def saved(tmp_path):
    return saved_model(tmp_path)


# What must be refused
@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x05\x06" + bytes(18), b"text" * 100])
def test_other_files(content, tmp_path):
    (tmp_path / "model.ptm").write_bytes(content)
    refused(tmp_path / "model.ptm")


def test_code_is_never_executed(saved, tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "executed",))

    trap = npy(np.array([Trap()], dtype=object))
    write(tmp_path / "trap.ptm", members_of(saved) | {"arrays/coef.npy": trap})
    refused(tmp_path / "trap.ptm", "type that is not allowed")
    assert not (tmp_path / "executed").exists()


def test_bombs_are_not_unpacked(saved, tmp_path):
    path = tmp_path / "bomb.ptm"
    huge = npy(np.zeros(10_000_000))
    write(path, members_of(saved) | {"arrays/coef.npy": huge}, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    refused(path, "would unpack to 80000128 bytes")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_sizes_that_lie(saved, tmp_path):
    """A header that announces more numbers than there are is found before room is made."""
    array = npy(np.zeros(3)).replace(b"(3,), }         ", b"(3000000000,), }")
    write(tmp_path / "lie.ptm", members_of(saved) | {"arrays/coef.npy": array})
    tracemalloc.start()
    refused(tmp_path / "lie.ptm", "shape")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_long_directories_are_not_read(tmp_path):
    write(tmp_path / "many.ptm", {f"arrays/a{i}.npy": b"" for i in range(5000)})
    refused(tmp_path / "many.ptm", "more than 4096 members")
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 2**31, 0, 0)
    (tmp_path / "long.ptm").write_bytes(end)
    refused(tmp_path / "long.ptm")


@pytest.mark.parametrize(
    "name", ["../model.json", "/etc/x.npy", "arrays\\x.npy", "x.py", "a:b.npy"]
)
def test_odd_names(name, saved, tmp_path):
    write(tmp_path / "odd.ptm", members_of(saved) | {name: b""})
    refused(tmp_path / "odd.ptm", "unexpected name")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_come_twice(saved, tmp_path):
    path = tmp_path / "twice.ptm"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members_of(saved).items():
            archive.writestr(name, content)
        archive.writestr("model.json", "{}")
    refused(path, "same name")


def test_unexpected_packing(saved, tmp_path):
    write(tmp_path / "packed.ptm", members_of(saved), compression=zipfile.ZIP_LZMA)
    refused(tmp_path / "packed.ptm", "unexpected way")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("coef", np.array([1.0, np.nan, 1.0])),
        ("coef", np.array([[1.0]])),
        ("coef", np.array(["1", "2", "3"])),
        ("gamma", np.zeros((3, 5))),
        ("gamma", np.ones((2, 5))),
        ("parameters", np.ones((6, 3))),
        ("error_path", np.array(1.0)),
        ("example_images", np.ones((2, 8, 8), np.float32)),
        ("example_parameters", np.ones((3, 4))),
    ],
)
def test_arrays_that_do_not_fit(name, array, saved, tmp_path):
    write(tmp_path / "bad.ptm", members_of(saved) | {f"arrays/{name}.npy": npy(array)})
    refused(tmp_path / "bad.ptm")


def test_missing_members(saved, tmp_path):
    members = members_of(saved)
    for name in members:
        write(tmp_path / "bad.ptm", {n: c for n, c in members.items() if n != name})
        refused(tmp_path / "bad.ptm")


# Fuzzing: whatever happens to a file, loading gives a model or says what is wrong


def model_or_error(path):
    try:
        model = load(path)
    except ModelFileError:
        return False
    assert type(model) in {codec.kind for codec in CODECS.values()}
    assert np.isfinite(model.pattern_.coef).all()
    return True


def fuzz(tmp_path, versions):
    path = tmp_path / "fuzzed.ptm"
    outcomes = []
    tracemalloc.start()
    for content in versions:
        path.write_bytes(content)
        outcomes.append(model_or_error(path))
    assert tracemalloc.get_traced_memory()[1] < 2**24  # the file has 10 kB
    tracemalloc.stop()
    return outcomes


def test_truncated(saved, tmp_path):
    content = saved.read_bytes()
    cuts = range(0, len(content), 7)
    assert not any(fuzz(tmp_path, (content[:cut] for cut in cuts)))
    assert not any(fuzz(tmp_path, (content[cut:] for cut in range(1, len(content), 97))))


def test_flipped_bits(saved, tmp_path, rng):
    content = saved.read_bytes()

    def flipped(n):
        changed = bytearray(content)
        for place in rng.integers(len(content), size=n):
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)

    outcomes = fuzz(tmp_path, (flipped(1 + i % 4) for i in range(1500)))
    # Sums of the contents are checked, so only changes beside them go unnoticed.
    assert sum(outcomes) < 0.1 * len(outcomes)


def test_flipped_bytes_with_correct_sums(saved, tmp_path, rng):
    """Changes inside the members, which the archive's sums would otherwise reveal."""
    members = members_of(saved)

    def versions():
        for name, content in members.items():
            for _ in range(100):
                changed = bytearray(content)
                changed[int(rng.integers(min(len(content), 400)))] = int(rng.integers(256))
                file = io.BytesIO()
                write(file, members | {name: bytes(changed)})
                yield file.getvalue()

    outcomes = fuzz(tmp_path, versions())
    assert any(outcomes)
    assert not all(outcomes)


VALUES = [None, True, -1, 0, 2**70, 1e308, "x", "../x", [], [1], [[]], {}, {"a": 1}, [1e9, 1e9]]


VALUES += ["gaussian", "affine", ["psi"], [None] * 5, "x" * 5000, [10**9, 10**9]]


def paths(value, prefix=()):
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*prefix, key))
    if prefix:
        yield prefix


def test_edited_json(saved, tmp_path):
    members = members_of(saved)
    description = json.loads(members["model.json"])

    def versions():
        for path in paths(description):
            for value in VALUES:
                edited = json.loads(members["model.json"])
                holder = edited
                for key in path[:-1]:
                    holder = holder[key]
                holder[path[-1]] = value
                yield packed(json.dumps(edited))

    def packed(text):
        file = io.BytesIO()
        write(file, members | {"model.json": text})
        return file.getvalue()

    outcomes = fuzz(tmp_path, versions())
    assert len(outcomes) > 500
    assert sum(outcomes) < 0.25 * len(outcomes)
    odd = ["", "[]", "null", "{", '{"format": NaN}', "[" * 100_000, '{"format": 1e999}', "9" * 9999]
    odd += ["\ud800".encode("utf-16", "surrogatepass"), '{"a":' * 50_000]
    # Deep enough to end Python's stack when it is shown, not when it is parsed.
    nested = "[" * 900 + "]" * 900
    odd += [json.dumps(description | {"image_shape": 0}).replace(": 0", f": {nested}")]
    assert not any(fuzz(tmp_path, (packed(text) for text in odd)))
