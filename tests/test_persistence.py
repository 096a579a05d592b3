"""Model files: what is written comes back, also of older versions."""

import io
import json
import os
import stat
import time
import zipfile

import numpy as np
import pytest
from helpers import small_jpats, small_model, small_views_classifier
from model_files import members_of, npy, refused, saved_model, write

import patternfold as pf
from patternfold.learning.select.solvers import Dca, as_solver
from patternfold.persistence import FORMAT, ModelFileError, load, read_model_file, save

pytestmark = pytest.mark.usefixtures("as_users_run")  # the checks under test are our own


@pytest.fixture
def saved(tmp_path):
    return saved_model(tmp_path)


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
    model.save(tmp_path / "model.ptm")
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


def test_views_without_a_word_on_distances_have_those_of_the_images(tmp_path):
    """Files of version 0.1: what their machine has learned from were distances in that unit."""
    model, images, _ = small_views_classifier()
    model.save(tmp_path / "model.ptm")
    members = members_of(tmp_path / "model.ptm")
    description = json.loads(members["model.json"])
    assert description.pop("distance_unit") == 0.5
    write(tmp_path / "first.ptm", members | {"model.json": json.dumps(description)})
    first, now = (
        load(tmp_path / name).views_.transform(images) for name in ("first.ptm", "model.ptm")
    )
    np.testing.assert_allclose(2 * first[:, -2:], now[:, -2:], rtol=1e-6)
    np.testing.assert_array_equal(first[:, :-2], now[:, :-2])


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
