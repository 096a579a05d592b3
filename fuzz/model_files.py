"""Damaged model files: loading gives a model or a ModelFileError, soon and in little room.

Some of the models that could be loaded are used; using one may end in a ValueError.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from harness import main  # noqa: E402
from helpers import small_jpats, small_model, small_views_classifier  # noqa: E402
from zips import hurt_zip  # noqa: E402

from patternfold.learning.fitted import fitted_manifolds  # noqa: E402
from patternfold.persistence import Examples, ModelFileError, read_model_file, save  # noqa: E402

MOST_USED = 20
"""Models that are used: each takes seconds to compile."""

used = 0


def _seeds() -> list[bytes]:
    """Small files of every kind, and those of version 0.1."""
    files = [path.read_bytes() for path in sorted((ROOT / "tests/data").glob("*.pfold"))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "seed")
        for transformation in ("similarity", "affine", "scaling"):
            model, images = small_model(transformation, "inverse-multiquadric")
            examples = Examples(images[:2], model.parameters_[:2], ("a.png", "b.png"), ("", ""))
            save(model, path, preparation={"size": [16, 16]}, examples=examples)
            files.append(path.read_bytes())
        for model in (small_jpats()[0], small_views_classifier()[0]):
            save(model, path)
            files.append(path.read_bytes())
    return files


SEEDS = _seeds()


def make(rng: np.random.Generator) -> tuple[bytes, str]:
    """Damage one of the files."""
    return hurt_zip(SEEDS[int(rng.integers(len(SEEDS)))], "model.json", rng)[0], ".ptm"


def check(path: Path) -> str:
    """Load, and maybe use."""
    global used
    try:
        model = read_model_file(path).model
    except ModelFileError:
        return "refused"
    if used >= MOST_USED or zlib.crc32(path.read_bytes()) % 50:
        return "loaded"
    used += 1
    view = fitted_manifolds(model)
    try:
        view.project(np.zeros((1, *view.image_shape), np.float32), "quick")
    except ValueError:
        return "refused on use"
    return "used"


if __name__ == "__main__":
    main(make, check, __doc__)
