"""Learn what the tutorial shows: handwritten fives at any angle, and their pattern.

``python docs/tutorial/learn.py`` writes ``model.json`` beside this file. The documentation draws
from it in the browser, so that building the pages learns nothing.
"""

import json
from pathlib import Path

import numpy as np

from patternfold import PATS
from patternfold.cli.demo import digit_images
from patternfold.show.pages.payload import pack

N_IMAGES, N_ATOMS, N_SHOWN = 24, 16, 12


def main() -> None:
    """Learn, and write atoms, errors and some images with their λ."""
    images = digit_images(5, N_IMAGES, seed=0, family="similarity")
    model = PATS(N_ATOMS, transformation="similarity", reference=0, random_state=0).fit(images)
    data = {
        "shape": list(images.shape[1:]),
        "coef": model.pattern_.coef.round(6).tolist(),
        "gamma": model.pattern_.gamma.round(6).tolist(),
        "error_path": [round(float(error), 5) for error in model.error_path_],
        "n_images": N_IMAGES,
        "mean": pack(images.mean(axis=0)),
        "aligned_mean": pack(model.align(images).mean(axis=0)),
        "images": [pack(image) for image in images[:N_SHOWN]],
        "lam": np.round(model.parameters_[:N_SHOWN].astype(float), 5).tolist(),
    }
    path = Path(__file__).parent / "model.json"
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB, errors {data['error_path']}")


if __name__ == "__main__":
    main()
