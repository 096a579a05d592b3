"""Write small model files of every kind to a folder: what the fuzzer of model files damages.

Making models compiles, which takes far more memory than loading them; hence a process of its own.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

import numpy as np  # noqa: E402
from helpers import small_jpats, small_model, small_views_classifier  # noqa: E402

from patternfold import Pattern, PatternMixture, datasets  # noqa: E402
from patternfold.losses import Huber, StudentT  # noqa: E402
from patternfold.model.prior import as_prior  # noqa: E402
from patternfold.persistence import Examples, save  # noqa: E402


def write_seeds(folder: Path) -> None:
    """Write all of them, and those of version 0.1."""
    for path in (ROOT / "tests/data").glob("*.pfold"):
        shutil.copy(path, folder / f"old-{path.name}")
    for k, transformation in enumerate(("similarity", "affine", "scaling", "translation+bend")):
        model, images = small_model(transformation, "inverse-multiquadric")
        examples = Examples(images[:2], model.parameters_[:2], ("a.png", "b.png"), ("", ""))
        save(model, folder / f"pats{k}.pfold", preparation={"size": [16, 16]}, examples=examples)
    save(_robust(), folder / "robust.pfold")
    save(small_jpats()[0], folder / "jpats.pfold")
    save(small_views_classifier()[0], folder / "views.pfold")
    save(_mixture(), folder / "mixture.pfold")


def _robust() -> Any:
    """A model with a loss, a prior and bounds."""
    model, _ = small_model("similarity", loss=StudentT(), bounds={"s": (0.5, 2.0)})
    model.loss_ = Huber(scale=0.5)
    model.prior_ = as_prior({"tx": (0.0, 0.1), "s": (1.0, 0.2)}, model.transformation_)
    model.prior_ = model.prior_.with_noise(1e-4)
    return model


def _mixture() -> PatternMixture:
    rng = np.random.default_rng(0)
    shapes = ([0.0, 0.0, 0.0, 0.5, 0.1], [0.0, 0.1, 0.0, 0.2, 0.2])
    images = [
        datasets.random_images(Pattern([1.0], [g]), 6, rng, "translation", shape=(8, 8))[0]
        for g in shapes
    ]
    options = {"n_parts": 2, "n_atoms": 1, "transformation": "translation", "random_state": 0}
    return PatternMixture(2, **options).fit(np.concatenate(images).astype(np.float32))


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
