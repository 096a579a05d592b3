"""Models that would fill the memory or never end are refused, with what to change."""

import io
import json
import time
import zipfile

import numpy as np
import pytest
from helpers import small_model

import patternfold as pf
from patternfold._validation import MOST_PIXELS
from patternfold.files import Preparation
from patternfold.learning.project.lattice import make_lattice
from patternfold.model.pattern import MOST_ATOMS
from patternfold.persistence import ModelFileError, load, save

pytestmark = pytest.mark.usefixtures("as_users_run")

ABSURD = {"s": (0.0, 2.0), "theta": (-1e6, 1e6), "tx": (-1e6, 1e6), "ty": (1e-9, 11.0)}
ABSURD_SCALES = [(-1.0, 2.0), (1e-6, 2.0), (1e-9, 2.0), (0.5, 1e6)]


ABSURD_LENGTHS = [("tx", ABSURD["tx"]), ("ty", ABSURD["ty"])]  # bare angles: test_units.py


@pytest.mark.parametrize(
    ("name", "pair"), [*ABSURD_LENGTHS, *(("s", p) for p in [ABSURD["s"], *ABSURD_SCALES])]
)
def test_bounds_are_limited(name, pair):
    message = rf"bounds of '{name}' are .*; they must stay between .*: narrow them, .*'{name}': \("
    with pytest.raises(ValueError, match=message):
        pf.Similarity().with_bounds({name: pair})
    box = pf.Similarity().parameters.with_bounds({name: pair})
    with pytest.raises(ValueError, match=message):
        pf.Similarity(box)
    images = np.random.default_rng(0).random((3, 8, 8))
    with pytest.raises(ValueError, match=message):
        pf.PATS(1, transformation="similarity", bounds={name: pair}).fit(images)


def test_every_family_limits_its_scales():
    for name in ("scaling", "similarity", "rotation-translation-scaling", "affine"):
        family = pf.transformations.TRANSFORMATIONS[name]()
        scale = next(n for n in family.parameters.names if n.startswith("s"))
        with pytest.raises(ValueError, match=rf"bounds of '{scale}' are \(0, 1\)"):
            family.with_bounds({scale: (0.0, 1.0)})
    with pytest.raises(ValueError, match="bounds of 'sigma_x'"):
        pf.AtomDictionary().with_bounds({"sigma_x": (0.0, 1.0)})


def test_limits_are_not_for_families_of_users():
    box = pf.Box(["degrees"], [-180.0], [180.0])
    family = pf.CustomTransformation(lambda lam, x, y: (x, y), box, [0.0])
    assert family.with_bounds({"degrees": (-1e5, 1e5)}).parameters.upper == (1e5,)


def edited(path, change, arrays=()):
    """Save a small model with its JSON and arrays changed by hand."""
    save(small_model()[0], path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["model.json"])
    change(description)
    members["model.json"] = json.dumps(description).encode()
    for name, array in dict(arrays).items():
        file = io.BytesIO()
        np.save(file, array)
        members[f"arrays/{name}.npy"] = file.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["s", "theta", "tx", "ty"])
def test_files_with_absurd_bounds(name, tmp_path):
    def change(description):
        box = description["transformation"]["box"]
        k = box["names"].index(name)
        box["lower"][k], box["upper"][k] = ABSURD[name]
        box["periodic"] = []

    with pytest.raises(ModelFileError, match=f"bounds of '{name}'"):
        load(edited(tmp_path / "x.ptm", change))


def test_files_with_too_many_atoms_or_pixels(tmp_path):
    many = {"coef": np.ones(MOST_ATOMS + 1), "gamma": np.full((MOST_ATOMS + 1, 5), 0.1)}
    with pytest.raises(ModelFileError, match=f"at most {MOST_ATOMS} atoms"):
        load(edited(tmp_path / "x.ptm", lambda description: None, many))
    with pytest.raises(ModelFileError, match=f"at most {MOST_PIXELS} are allowed"):
        load(edited(tmp_path / "x.ptm", lambda d: d.update(image_shape=[4096, 4096])))


def test_atoms_and_pixels_are_limited():
    with pytest.raises(ValueError, match=f"at most {MOST_ATOMS} atoms"):
        pf.Pattern(np.ones(MOST_ATOMS + 1), np.full((MOST_ATOMS + 1, 5), 0.1))
    images = np.zeros((2, 2, MOST_PIXELS // 2 + 1), np.float32)
    with pytest.raises(ValueError, match=r"image_shape=\(2, 2097153\) .*resize"):
        pf.PATS(2).fit(images)
    with pytest.raises(ValueError, match=f"n_atoms=100000 must be at most {MOST_ATOMS}"):
        pf.PATS(100_000).fit(images[:, :4, :4])
    with pytest.raises(ValueError, match="n_atoms=100000 of class 0 must be an integer from 1 to"):
        pf.JPATS(100_000).fit(images[:, :2, :4] + 1, [0, 1])
    with pytest.raises(ValueError, match="resize the images"):
        Preparation(size=(4096, 4096))


def test_lattices_are_limited_before_they_are_laid():
    family = pf.Similarity().with_bounds({"tx": (-10.0, 10.0), "ty": (-10.0, 10.0)})
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"bounds of 't[xy]' are \(-10, 10\).*at most 524288 are"):
        make_lattice(family, 1 / 6, 0.13)
    assert time.perf_counter() - started < 30

    def broken(lam, x, y):
        return x * lam[0] / lam[0], y

    own = pf.CustomTransformation(broken, pf.Box(["k"], [0.0], [1.0]), [1.0])
    with pytest.raises(ValueError, match=r"bounds of 'k' are \(0, 1\)"):
        make_lattice(own, 1 / 6, 0.1)
