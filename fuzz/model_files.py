"""Damaged model files: loading gives a model or a ModelFileError, soon and in little room.

Some of the models that could be loaded are used at the end, where most of the time is compilation;
using one may end in a ValueError.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from harness import fuzz, options_of  # noqa: E402
from helpers import small_jpats, small_model, small_views_classifier  # noqa: E402
from zips import hurt_zip  # noqa: E402

from patternfold.learning.fitted import fitted_manifolds  # noqa: E402
from patternfold.persistence import Examples, ModelFileError, read_model_file, save  # noqa: E402

MOST_USED = 20
"""Models that are used: each takes seconds to compile."""

LONGEST_USE = 120.0
"""Seconds."""

to_use: list[Any] = []


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
    """Load, and keep some models to be used."""
    try:
        model = read_model_file(path).model
    except ModelFileError:
        return "refused"
    if len(to_use) < MOST_USED and zlib.crc32(path.read_bytes()) % 50 == 0:
        to_use.append(model)
    return "loaded"


def use(model: Any) -> str:
    """Project an image; return what came of it."""
    view = fitted_manifolds(model)
    image = np.full((1, *view.image_shape), 0.5, np.float32)
    started = time.process_time()
    try:
        view.project(image, "quick")
        outcome = "used"
    except ValueError:
        outcome = "refused"
    except Exception as error:
        outcome = f"finding: {type(error).__name__}: {error}"
    if time.process_time() - started > LONGEST_USE:
        outcome = f"finding: took {time.process_time() - started:.0f} s"
    return outcome


def main() -> int:
    """Load all, then use some."""
    code = fuzz(make, check, options_of(__doc__))
    outcomes = [use(model) for model in to_use]
    found = [outcome for outcome in outcomes if outcome.startswith("finding")]
    print(f"on use: {outcomes.count('used')} used, {outcomes.count('refused')} refused, {found}")
    return 1 if found else code


if __name__ == "__main__":
    sys.exit(main())
