"""Model files: what is written comes back, and nothing else gets in."""

import io
import json
import os
import stat
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers import small_jpats, small_model, small_views_classifier

import patternfold as pf
from patternfold.learning.select.solvers import Dca, as_solver
from patternfold.persistence import (
    CODECS,
    FORMAT,
    Examples,
    ModelFileError,
    load,
    read_model_file,
    save,
)

pytestmark = pytest.mark.usefixtures("as_users_run")  # the checks under test are our own


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=array.dtype.kind == "O")
    return file.getvalue()


@pytest.fixture
def saved(tmp_path):
    model, images = small_model(bounds={"s": (0.7, 1.4)})
    examples = Examples(images[:2], model.parameters_[:2], ("a.png", "b.png"))
    path = tmp_path / "model.ptm"
    save(model, path, preparation={"size": [16, 16]}, examples=examples)
    return path


@pytest.mark.parametrize("mother", ["gaussian", "inverse-multiquadric"])
@pytest.mark.parametrize(
    "transformation", [*sorted(pf.transformations.TRANSFORMATIONS), "similarity+bend+stroke-width"]
)
def test_everything_comes_back(transformation, mother, tmp_path):
    model, _ = small_model(transformation, mother)
    model.set_params(n_atoms=np.int64(7))
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert loaded.pattern_ == model.pattern_
    assert loaded.transformation_ == model.transformation_
    np.testing.assert_array_equal(loaded.parameters_, model.parameters_)
    np.testing.assert_array_equal(loaded.error_path_, model.error_path_)
    assert loaded.image_shape_ == (16, 16)
    assert loaded.stop_reason_ == model.stop_reason_
    assert loaded.get_params()["n_atoms"] == 7


def test_bounds_survive_a_new_fit(saved):
    loaded = load(saved)
    assert loaded.bounds == {"s": (0.7, 1.4)}
    assert loaded.transformation_.parameters.upper[3] == 1.4


def test_what_was_kept_beside_the_model(saved):
    found = read_model_file(saved)
    model, images = small_model()
    assert found.preparation == {"size": [16, 16]}
    assert found.examples is not None
    assert found.examples.names == ("a.png", "b.png")
    np.testing.assert_array_equal(found.examples.images, images[:2])
    np.testing.assert_array_equal(found.examples.parameters, model.parameters_[:2])


def test_solver_options_come_back(tmp_path):
    model, _ = small_model(solver="dca", solver_options={"time_limit": 2.0})
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert (loaded.solver, loaded.solver_options) == ("dca", {"time_limit": 2.0})


def test_jpats_comes_back(tmp_path):
    model, _, _ = small_jpats(bounds={"s": (0.5, 1.5)}, alpha=2.0)
    model.cross_parameters_[3] = np.nan  # an image without weight
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert loaded.patterns_ == model.patterns_
    assert loaded.classes_.tolist() == ["bar", "dot"]
    assert (loaded.bounds, loaded.alpha) == ({"s": (0.5, 1.5)}, 2.0)
    assert loaded.outlier_threshold_ == np.inf
    assert loaded.outlier_label_ == "outlier"
    np.testing.assert_array_equal(loaded.cross_parameters_, model.cross_parameters_)
    np.testing.assert_array_equal(loaded.error_path_, model.error_path_)
    model.outlier_threshold_, model.classes_ = 0.5, np.array([3, 7])
    model.outlier_label_ = np.int64(-1)
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert loaded.outlier_threshold_ == 0.5
    assert loaded.outlier_label_ == -1
    assert loaded.classes_.tolist() == [3, 7]


def test_aligned_views_come_back(tmp_path):
    model, images, labels = small_views_classifier()
    save(model, tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert loaded.predict(images).tolist() == labels.tolist()
    scores = model.decision_function(images)
    assert np.abs(scores).min() > 0.1
    # Nothing is fitted again: the decisions are the same to the rounding of float64 sums.
    np.testing.assert_allclose(loaded.decision_function(images), scores, rtol=1e-7)
    save(loaded, tmp_path / "again.ptm")
    assert members_of(tmp_path / "again.ptm") == members_of(tmp_path / "model.ptm")
    model.classifier = object()
    with pytest.raises(TypeError, match="pickle it instead"):
        save(model, tmp_path / "model.ptm")


def test_views_without_a_word_on_features_are_pixels(tmp_path):
    model, images, _ = small_views_classifier("pixels")
    save(model, tmp_path / "model.ptm")
    members = members_of(tmp_path / "model.ptm")
    description = json.loads(members["model.json"])
    assert description.pop("features") == "pixels"
    write(tmp_path / "first.ptm", members | {"model.json": json.dumps(description)})
    loaded = load(tmp_path / "first.ptm")
    assert loaded.features == "pixels"
    np.testing.assert_allclose(
        loaded.decision_function(images), model.decision_function(images), rtol=1e-7
    )


def hostile_machine(members, penalty, weights):
    """A file that kept the solver of version 0.1 busy for minutes, with or without weights."""
    rng = np.random.default_rng(0)
    description = json.loads(members["model.json"]) | {"C": penalty, "gamma": 1e-3}
    width = np.load(io.BytesIO(members["arrays/support_vectors.npy"])).shape[1]
    arrays = {
        "support_vectors": npy(rng.normal(size=(300, width))),
        "support_labels": npy(np.repeat([0, 1], 150)),
        "dual_coef": npy(np.zeros((1, 300))),
        "intercept": npy(np.zeros(1)),
    }
    kept = {name: content for name, content in members.items() if "arrays/" in name}
    kept |= {f"arrays/{name}.npy": content for name, content in arrays.items()}
    if not weights:
        kept = {n: c for n, c in kept.items() if n[7:-4] not in ("dual_coef", "intercept")}
    return {"model.json": json.dumps(description), **kept}


def test_machines_are_not_fitted_on_loading(tmp_path, monkeypatch):
    save(small_views_classifier()[0], tmp_path / "model.ptm")
    members = members_of(tmp_path / "model.ptm")
    for penalty in (1e15, 10.0):
        write(tmp_path / "slow.ptm", hostile_machine(members, penalty, weights=False))
        started = time.perf_counter()
        if penalty != 10:
            refused(tmp_path / "slow.ptm", "'C' must be 10")
        else:
            load(tmp_path / "slow.ptm")  # as version 0.1 wrote it: bounded, and quick
        assert time.perf_counter() - started < 5
    write(tmp_path / "large.ptm", hostile_machine(members, 10.0, weights=False))
    monkeypatch.setattr("patternfold.persistence.first_machines.MOST_WORK", 1000)
    refused(tmp_path / "large.ptm", "train the classifier anew")
    monkeypatch.setattr("sklearn.svm.SVC.fit", None)
    write(tmp_path / "fast.ptm", hostile_machine(members, 1e15, weights=True))
    assert load(tmp_path / "fast.ptm").classifier_.C == 1e15
    wrong = hostile_machine(members, 10.0, weights=True)
    write(tmp_path / "bad.ptm", wrong | {"arrays/intercept.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.ptm", "intercept")
    description = json.loads(members["model.json"])
    for name in ("classifier", "manifold_learner"):
        description["options"] |= {name: "x"}
        write(tmp_path / "own.ptm", members | {"model.json": json.dumps(description)})
        refused(tmp_path / "own.ptm", "a classifier or a learner that no file holds")


@pytest.mark.parametrize("make", [small_jpats, small_views_classifier])
def test_edited_classifiers(make, tmp_path, rng):
    save(make()[0], tmp_path / "model.ptm")
    members = members_of(tmp_path / "model.ptm")

    def versions():
        for name, content in members.items():
            yield packed({n: c for n, c in members.items() if n != name})
            for _ in range(15):
                changed = bytearray(content)
                changed[int(rng.integers(min(len(content), 400)))] = int(rng.integers(256))
                yield packed(members | {name: bytes(changed)})

    def packed(content):
        file = io.BytesIO()
        write(file, content)
        return file.getvalue()

    path = tmp_path / "fuzzed.ptm"
    outcomes = set()
    for content in versions():
        path.write_bytes(content)
        try:
            outcomes.add(len(load(path).classes_))
        except ModelFileError:
            outcomes.add("refused")
    assert outcomes == {2, "refused"}


def test_first_version_is_still_read(saved, tmp_path):
    members = members_of(saved)
    description = json.loads(members["model.json"])
    for key in ("preparation", "example_names", "example_labels"):
        del description[key]
    for key in ("gain", "offset"):
        del description["options"][key]
    packed = io.BytesIO()
    names = ("coef", "gamma", "parameters", "error_path")
    np.savez(packed, **{n: np.load(io.BytesIO(members[f"arrays/{n}.npy"])) for n in names})
    old = {"model.json": json.dumps(description | {"format": 1}), "arrays.npz": packed.getvalue()}
    write(tmp_path / "old.ptm", old)
    assert load(tmp_path / "old.ptm").pattern_ == load(saved).pattern_


def test_older_descriptions_are_still_read(tmp_path):
    """Before components had names and options: the box of the dictionary, μ beside the name."""
    model, _ = small_model(mother=pf.InverseMultiquadric(-1.5))
    model.save(tmp_path / "model.ptm")
    members = members_of(tmp_path / "model.ptm")
    description = json.loads(members["model.json"])
    assert description["mother"] == {"name": "inverse-multiquadric", "options": {"mu": -1.5}}
    assert description["dictionary"]["name"] == "atoms"
    description["mother"] = {"name": "inverse-multiquadric", "mu": -1.5}
    description["dictionary"] = description["dictionary"]["box"]
    write(tmp_path / "old.ptm", members | {"model.json": json.dumps(description)})
    assert load(tmp_path / "old.ptm").pattern_ == model.pattern_


@pytest.mark.parametrize("part", ["mother", "dictionary", "transformation"])
def test_components_that_are_not_registered(part, saved, tmp_path):
    members = members_of(saved)
    description = json.loads(members["model.json"])
    description[part]["name"] = "unheard-of"
    description["options"].pop(part, None)
    write(tmp_path / "other.ptm", members | {"model.json": json.dumps(description)})
    refused(tmp_path / "other.ptm", "'unheard-of' is not registered here")
    description[part] |= {"name": json.loads(members["model.json"])[part]["name"]}
    description[part]["options"] = {"parameters": 1}
    write(tmp_path / "other.ptm", members | {"model.json": json.dumps(description)})
    refused(tmp_path / "other.ptm", "has no option 'parameters'")


def test_solver_objects_come_back(tmp_path):
    model, _ = small_model(solver=Dca(time_limit=2.0))
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert as_solver(loaded.solver, loaded.solver_options) == Dca(time_limit=2.0)


def test_newer_version_asks_for_an_upgrade(saved, tmp_path):
    members = members_of(saved)
    newer = json.loads(members["model.json"]) | {"format": FORMAT + 1, "patternfold": "99.0"}
    write(tmp_path / "new.ptm", members | {"model.json": json.dumps(newer)})
    with pytest.raises(ModelFileError, match=r"patternfold 99\.0; upgrade"):
        load(tmp_path / "new.ptm")


def test_files_are_replaced_only_when_all_is_well(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        load(saved).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_the_same_model_gives_the_same_file(tmp_path):
    for name in ("a.ptm", "b.ptm"):
        save(small_model()[0], tmp_path / name)
    assert (tmp_path / "a.ptm").read_bytes() == (tmp_path / "b.ptm").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.ptm") as archive:
        assert {info.date_time[0] for info in archive.infolist()} == {1980}  # no time of writing


def test_files_are_as_readable_as_others(saved):
    plain = saved.with_name("plain")
    plain.touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_folder_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        small_model()[0].save(tmp_path / "nowhere" / "model.ptm")


def test_other_objects_are_not_saved(tmp_path):
    with pytest.raises(TypeError, match="dict can't be saved"):
        save({}, tmp_path / "model.ptm")


# What must be refused


def refused(path, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)


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
