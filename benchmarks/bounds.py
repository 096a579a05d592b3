"""Scales that imitate light: why narrower bounds help when the box allows what never happened.

Faces of one person under varied light, none of them stretched, are learned with the scaling
family: once in its default box, once within 10 % of scale 1. The true scales are 1. Needs the file
``yaleb_3subjects_48x42.npz`` in the folder PATTERNFOLD_DATA, or ``--data``.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from patternfold import PATS, datasets

FILE = "yaleb_3subjects_48x42.npz"
BOXES = {
    "default box, 0.5 to 2": None,
    "narrow box, 0.9 to 1.1": {"sx": (0.9, 1.1), "sy": (0.9, 1.1)},
}


def load_faces(data: str | None, n: int = 30) -> np.ndarray:
    """Every second pixel of n faces of the first person, unit norm."""
    folder = datasets.data_folder(data)
    if folder is None or not (folder / FILE).exists():
        sys.exit(f"{FILE} is needed; name its folder with --data or PATTERNFOLD_DATA.")
    with np.load(folder / FILE, allow_pickle=False) as file:
        faces = file["x"][file["subject"] == file["subject"][0]].reshape(-1, 48, 42)
    chosen = np.random.default_rng(0).choice(len(faces), n, replace=False)
    images = faces[chosen][:, ::2, ::2].astype(np.float32)
    return images / np.linalg.norm(images, axis=(1, 2), keepdims=True)


def main() -> int:
    """Print the scales found in both boxes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder with the image sets")
    images = load_faces(parser.parse_args().data)
    print(f"{len(images)} faces of {images.shape[2]}×{images.shape[1]} pixels, true scales 1")
    for name, bounds in BOXES.items():
        model = PATS(10, transformation="scaling", bounds=bounds, random_state=0, n_exchanges=0)
        scales = model.fit(images).parameters_
        off = (np.abs(scales - 1).max(axis=1) > 0.2).mean()
        print(
            f"{name}: scales from {scales.min():.2f} to {scales.max():.2f}, more than 0.2 off in "
            f"{off:.0%} of the images, error {model.error_path_[-1]:.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
