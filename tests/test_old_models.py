"""Model files written by version 0.1.0 are read, and models give the answers they gave then."""

import json
from pathlib import Path

import numpy as np
import pytest

import patternfold as pf
from patternfold.persistence.classifiers import pack_jpats, unpack_jpats
from patternfold.persistence.models import Payload

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def then():
    """Images, and what version 0.1.0 said about them."""
    with np.load(DATA / "expected_0.1.npz") as arrays:
        return dict(arrays) | {"X": arrays["X"].astype(np.float32)}


def test_pats(then):
    model = pf.load(DATA / "pats_0.1.pfold")
    np.testing.assert_array_equal(model.pattern_.coef, then["pattern_coef"])
    np.testing.assert_array_equal(model.pattern_.gamma, then["pattern_gamma"])
    np.testing.assert_array_equal(model.parameters_, then["parameters"])
    np.testing.assert_array_equal(model.error_path_, then["error_path"])
    # The search has changed since: as near, or nearer.
    distances = model.distances(then["X"])
    assert (distances <= then["pats_distances"] * (1 + 1e-3) + 1e-4).all()
    assert distances[:6].max() < 0.5 * np.linalg.norm(then["X"][:6], axis=(1, 2)).min()


def test_jpats(then):
    model = pf.load(DATA / "jpats_0.1.pfold")
    np.testing.assert_array_equal(model.predict(then["X"]), then["jpats"])
    # Another search, which may end a little earlier.
    assert (model.distances(then["X"], "normal") <= 1.005 * then["distances"]).all()
    assert set(then["jpats"]) == {"bar", "dot"}


def test_jpats_with_the_default_of_then(then):
    """``n_joint`` of None: as many as the classes allow."""
    packed, arrays = pack_jpats(pf.load(DATA / "jpats_0.1.pfold"))
    description = json.loads(json.dumps(packed))  # as a file gives it
    description["options"]["n_joint"] = None
    model = unpack_jpats(Payload(description, arrays))
    assert model.n_joint == pf.JPATS().n_joint
    np.testing.assert_array_equal(model.predict(then["X"]), then["jpats"])


def test_aligned_views(then):
    model = pf.load(DATA / "aligned_views_0.1.pfold")
    np.testing.assert_array_equal(model.predict(then["X"]), then["views"])
    assert set(then["views"]) == {"bar", "dot"}
