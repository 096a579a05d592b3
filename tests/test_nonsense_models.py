"""Model files whose parts are well formed but make no sense are refused when they are loaded."""

import io
import json
import zipfile

import numpy as np
import pytest
from helpers import small_jpats, small_model, small_views_classifier

from patternfold._archives.archive import SMALL
from patternfold.losses import Huber
from patternfold.model.prior import as_prior
from patternfold.persistence import ModelFileError, load, save


def robust_model():
    model, _ = small_model(loss="huber")
    model.loss_ = Huber(scale=0.5)
    model.prior_ = as_prior({"tx": (0.0, 0.1), "s": (1.0, 0.2)}, model.transformation_)
    model.prior_ = model.prior_.with_noise(1e-4)
    return model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Members of a model with a loss and a prior, and of a classifier."""
    found = {}
    models = (robust_model(), small_jpats()[0], small_views_classifier()[0])
    for name, model in zip(("robust", "jpats", "views"), models, strict=True):
        path = tmp_path_factory.mktemp("models") / name
        save(model, path)
        load(path)
        with zipfile.ZipFile(path) as archive:
            found[name] = {member: archive.read(member) for member in archive.namelist()}
    return found


def refused(path, members, match, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match=match):
        load(path)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("array", "place", "value", "match"),
    [
        ("gamma", (0, 3), 0.0, "widths of an atom must be positive"),
        ("gamma", (0, 4), -0.2, "widths of an atom must be positive"),
        ("gamma", (0, 3), 1e-300, r"sigma_x=1e-300; it must be between"),
        ("gamma", (1, 4), 1e300, r"sigma_y=1e\+300; it must be between"),
        ("gamma", (1, 1), 1e12, r"tau_x=1e\+12; it must be between"),
        ("coef", 0, np.nan, "contains NaN"),
        ("coef", 0, 1e307, r"a coefficient is above 1e\+300"),
        ("parameters", (0, 1), 1e30, r"'parameters' holds values above 1e\+06"),
    ],
)
def test_numbers_of_the_pattern(array, place, value, match, files, tmp_path):
    members = dict(files["robust"])
    values = np.load(io.BytesIO(members[f"arrays/{array}.npy"]))
    values[place] = value
    members[f"arrays/{array}.npy"] = npy(values)
    refused(tmp_path / "x.ptm", members, match)


def _box(key, values):
    return lambda d: d["transformation"]["box"].__setitem__(key, values)


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("robust", lambda d: d.update(image_shape=[1, 10**9]), "height and width"),
        ("robust", lambda d: d.update(image_shape=[2**12, 2**12]), "are allowed"),
        ("robust", lambda d: d.update(image_shape=[0, 5]), "height and width"),
        ("robust", lambda d: d["dictionary"]["box"]["lower"].__setitem__(3, 3.0), "lower < upper"),
        ("robust", _box("upper", [-9.0] * 4), "lower < upper"),
        ("robust", lambda d: d["loss"]["options"].update(scale=0), "scale=0 must be"),
        ("robust", lambda d: d["loss"]["options"].update(k=-1.0), "k=-1.0 must be"),
        ("robust", lambda d: d["prior"][0].update(noise=-1.0), "'noise' must not be negative"),
        ("robust", lambda d: d["prior"][0]["parameters"].update(s=[1.0, 0.0]), "above 0"),
        ("robust", lambda d: d["prior"].append(d["prior"][0]), "2 priors for 1 patterns"),
        ("jpats", lambda d: d.update(outlier_threshold=-1.0), "'outlier_threshold' must be from 0"),
        ("jpats", lambda d: d.update(temperature=0.0), "'temperature' must be positive"),
        ("views", lambda d: d["options"].update(n_variants=-1), "n_variants=-1 must be"),
        ("views", lambda d: d["options"].update(mirror="yes"), "mirror"),
    ],
)
def test_values_of_the_description(name, change, match, files, tmp_path):
    members = dict(files[name])
    description = json.loads(members["model.json"])
    change(description)
    members["model.json"] = json.dumps(description).encode()
    refused(tmp_path / "x.ptm", members, match)


def test_keys_that_come_twice(files, tmp_path):
    members = dict(files["robust"])
    members["model.json"] = b'{"format": 3, ' + members["model.json"].lstrip()[1:]
    refused(tmp_path / "x.ptm", members, "has a key twice")


def test_files_that_unpack_to_many_times_their_length(files, tmp_path):
    """Few ones among zeros shrink well, though no member is a bomb by itself."""
    sparse = np.random.default_rng(0).random(SMALL + 2**16) < 0.02
    members = files["robust"] | {"arrays/x.npy": npy(sparse)}
    refused(tmp_path / "x.ptm", members, rf"more than {SMALL}", zipfile.ZIP_DEFLATED)
