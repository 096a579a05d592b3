"""Other methods beside ours, on the same digits in the same process.

python benchmarks/peers.py                         200 images per class, moderate and full rotation
python benchmarks/peers.py --train 10 --repeats 1
python benchmarks/peers.py --seconds 300           no method is begun after five minutes

Misclassified test images in %, mean over the repetitions, with the seconds for learning and
predicting. Methods whose package is not installed are named and left out:

    pip install pytranskit kymatio torch

pytranskit is under the GPL: it is run here if you have it, and nothing depends on it. For
DTI-Clustering there is no package to install, so that it is not run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from _timing import machine, print_markdown, print_table, versions
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from patternfold import JPATS, AlignedViewsClassifier
from patternfold.datasets import Split, search_box, split_digits

Predict = Callable[[Split, str], np.ndarray]
"""From a split and the name of its protocol to the classes of its test images."""

EPOCHS, BATCH = 40, 64
"""Of the convolutional network."""


def flat(images: np.ndarray) -> np.ndarray:
    """Rows of pixels."""
    return images.reshape(len(images), -1)


def nearest_neighbour(split: Split, _: str) -> np.ndarray:
    """1-nearest neighbour on pixels."""
    return KNeighborsClassifier(1).fit(flat(split.X), split.y).predict(flat(split.X_test))


def aligned_views(split: Split, rotation: str) -> np.ndarray:
    """Ours: every image in the frame of each class, and a support vector machine."""
    model = AlignedViewsClassifier(12, bounds=search_box(rotation), random_state=0)
    return model.fit(split.X, split.y).predict(split.X_test)


def jpats(split: Split, rotation: str) -> np.ndarray:
    """Ours: the nearest of jointly learned manifolds."""
    model = JPATS(12, bounds=search_box(rotation), random_state=0)
    return model.fit(split.X, split.y).predict(split.X_test)


def radon_cdt(split: Split, _: str) -> np.ndarray:
    """pytranskit: nearest subspace of the Radon cumulative distribution transform."""
    from pytranskit.classification.rcdt_ns import RCDT_NS

    classes, numbers = np.unique(split.y, return_inverse=True)
    model = RCDT_NS(len(classes), np.linspace(0, 176, 45), rm_edge=True)
    model.fit(split.X.astype(np.float64), numbers)
    return classes[model.predict(split.X_test.astype(np.float64))]


def scattering(split: Split, _: str) -> np.ndarray:
    """kymatio: wavelet scattering of two orders, J = 3, and a linear discriminant."""
    import scipy.special

    # kymatio 0.3 imports this name for volumes; SciPy 1.17 has it no more.
    if not hasattr(scipy.special, "sph_harm"):
        scipy.special.sph_harm = None  # type: ignore[attr-defined]
    from kymatio.numpy import Scattering2D

    transform = Scattering2D(J=3, shape=split.X.shape[1:])
    features = [flat(transform(np.asarray(X, np.float32))) for X in (split.X, split.X_test)]
    judge = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return judge.fit(features[0], split.y).predict(features[1])


def network(split: Split, rotation: str) -> np.ndarray:
    """torch: a small convolutional network, images moved at random anew in each epoch."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    classes, numbers = np.unique(split.y, return_inverse=True)
    layers: list[nn.Module] = []
    for before, after in ((1, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.LazyLinear(len(classes)))
    X = torch.tensor(split.X[:, None] * 40, dtype=torch.float32)
    y = torch.tensor(numbers)
    net(X[:2])
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        net.train()
        for some in torch.randperm(len(X)).split(BATCH):
            if len(some) < 2:
                continue
            loss = nn.functional.cross_entropy(net(moved(X[some], rotation)), y[some])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        plan.step()
    net.eval()
    with torch.no_grad():
        found = net(torch.tensor(split.X_test[:, None] * 40, dtype=torch.float32))
    return classes[found.argmax(dim=1).numpy()]


def moved(X: Any, rotation: str) -> Any:
    """Images under random affine maps as wide as the protocol's."""
    import torch

    n = len(X)
    most = torch.pi if rotation == "full" else torch.pi / 4
    angle = (2 * torch.rand(n) - 1) * most
    scale = 0.75 + 0.5 * torch.rand(n, 2)
    shift = (2 * torch.rand(n, 2) - 1) * 0.2
    c, s = torch.cos(angle), torch.sin(angle)
    rows = torch.stack([c / scale[:, 0], s / scale[:, 0], -s / scale[:, 1], c / scale[:, 1]], 1)
    maps = torch.cat([rows.reshape(n, 2, 2), shift[:, :, None]], dim=2)
    grid = torch.nn.functional.affine_grid(maps, list(X.shape), align_corners=False)
    return torch.nn.functional.grid_sample(X, grid, align_corners=False)


METHODS: dict[str, tuple[str | None, Predict]] = {
    "nearest neighbour on pixels": (None, nearest_neighbour),
    "Radon-CDT nearest subspace (pytranskit)": ("pytranskit", radon_cdt),
    "wavelet scattering and LDA (kymatio)": ("kymatio", scattering),
    "small convolutional network, augmented (torch)": ("torch", network),
    "JPATS": (None, jpats),
    "aligned views": (None, aligned_views),
}


def measure(predict: Predict, splits: list[Split], rotation: str) -> tuple[float, float]:
    """Mean error in %, and mean seconds."""
    started = time.perf_counter()
    errors = [100 * np.mean(predict(split, rotation) != split.y_test) for split in splits]
    return float(np.mean(errors)), (time.perf_counter() - started) / len(splits)


def main() -> None:
    """Run every method that is installed, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=200, help="training images per class")
    parser.add_argument("--test", type=int, default=200, help="test images per class")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing after these")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the methods' names")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    options = parser.parse_args()
    print(machine())
    rotations = ("moderate", "full")
    splits = {
        rotation: [
            split_digits(rotation, options.train, seed, n_test=options.test)
            for seed in range(options.repeats)
        ]
        for rotation in rotations
    }
    begun, rows = time.perf_counter(), []
    for name, (module, predict) in METHODS.items():
        if options.only and not any(part in name for part in options.only):
            continue
        cells = [name]
        for rotation in rotations:
            if module is not None and find_spec(module) is None:
                cells += ["not installed", ""]
            elif time.perf_counter() - begun > options.seconds:
                cells += ["not begun", ""]
            else:
                error, seconds = measure(predict, splits[rotation], rotation)
                cells += [f"{error:.1f}", f"{seconds:.0f} s"]
        rows.append(cells)
        print(f"  {', '.join(cells)}", flush=True)
    table = print_markdown if options.markdown else print_table
    print(f"\n{options.train} training images per class, {options.repeats} repetitions\n")
    table(["method", "up to 45°", "time", "any angle", "time"], rows)
    print(f"\n{versions('patternfold', 'pytranskit', 'kymatio', 'torch', 'scikit-learn')}")


if __name__ == "__main__":
    main()
