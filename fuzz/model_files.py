"""Damaged model files: loading gives a model or a ModelFileError, soon and in little room.

What was loaded can be saved and loaded again. Some of the models are used at the end, where most of
the time is compilation; using one gives finite numbers or a ValueError.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from harness import MOST_MEMORY, Finding, Made, run  # noqa: E402
from zips import hurt_zip  # noqa: E402

from patternfold.files import ImageFileError, Preparation  # noqa: E402
from patternfold.learning.fitted import fitted_manifolds  # noqa: E402
from patternfold.persistence import ModelFileError, read_model_file, save  # noqa: E402

SEEDS_VARIABLE = "PATTERNFOLD_FUZZ_SEEDS"
"""Names the folder of the files to damage, for the processes that share the cases."""

MOST_USED = 6
"""Models that each process uses: each takes seconds to compile."""

LONGEST_USE = 120.0
"""Seconds."""

SAVED_AGAIN = 20
"""One in so many of the loaded models is saved and loaded again."""

to_use: list[Any] = []
seeds: list[bytes] = []


def make(rng: np.random.Generator) -> Made:
    """Damage one of the files."""
    content, mode = hurt_zip(seeds[int(rng.integers(len(seeds)))], "model.json", rng)
    return Made(content, ".ptm", mode)


def check(path: Path) -> str:
    """Load, and keep some models to be used."""
    try:
        file = read_model_file(path)
        Preparation.from_dict(file.preparation or {})
    except (ModelFileError, ImageFileError):
        return "refused"
    model = file.model
    chance = zlib.crc32(path.read_bytes())
    if chance % SAVED_AGAIN == 0:
        _save_again(model, path)
    if len(to_use) < MOST_USED and chance % 50 == 0:
        to_use.append(model)
    return "loaded"


def _save_again(model: Any, path: Path) -> None:
    save(model, path)
    again = read_model_file(path).model
    if type(again) is not type(model) or again.image_shape_ != model.image_shape_:
        raise Finding("another model after saving and loading")


def use(model: Any) -> str:
    """Project an image; return what came of it."""
    view = fitted_manifolds(model)
    image = np.full((1, *view.image_shape), 0.5, np.float32)
    started = time.process_time()
    try:
        found = view.project(image, "quick")
        if not all(np.isfinite(part).all() for part in (found.parameters, found.distances)):
            return "finding: numbers that are not finite"
        outcome = "used"
    except ValueError:
        outcome = "refused"
    except Exception as error:
        outcome = f"finding: {type(error).__name__}: {error}"
    if time.process_time() - started > LONGEST_USE:
        outcome = f"finding: took {time.process_time() - started:.0f} s"
    return outcome


def use_some() -> list[str]:
    """Use the models that were kept; return findings."""
    outcomes = [use(model) for model in to_use]
    print(f"on use: {outcomes.count('used')} used, {outcomes.count('refused')} refused")
    return [outcome for outcome in outcomes if outcome.startswith("finding")]


def main() -> int:
    """Make the seeds, unless another process has, and damage them."""
    with tempfile.TemporaryDirectory() as folder:
        if SEEDS_VARIABLE not in os.environ:
            script = Path(__file__).with_name("model_seeds.py")
            subprocess.run([sys.executable, str(script), folder], check=True)
            os.environ[SEEDS_VARIABLE] = folder
        for path in sorted(Path(os.environ[SEEDS_VARIABLE]).glob("*.pfold")):
            read_model_file(path)
            seeds.append(path.read_bytes())
        return run(make, check, __doc__, MOST_MEMORY, use_some)


if __name__ == "__main__":
    sys.exit(main())
