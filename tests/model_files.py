"""Members of model files, for tests that change them."""

import io
import zipfile

import numpy as np
import pytest
from helpers import small_model

from patternfold.persistence import Examples, ModelFileError, load, save


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


def saved_model(folder):
    """Write a small model with all that may be kept beside it."""
    model, images = small_model(bounds={"s": (0.7, 1.4)})
    examples = Examples(images[:2], model.parameters_[:2], ("a.png", "b.png"))
    path = folder / "model.ptm"
    save(model, path, preparation={"size": [16, 16]}, examples=examples)
    return path


def refused(path, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)
