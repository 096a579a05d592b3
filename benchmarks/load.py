"""Every public function on 200,000 images: memory beside the images and what is returned.

python benchmarks/load.py                        all parts, each in a process of its own
python benchmarks/load.py --images 2000 project  another number; parts: see PARTS below

Images of 16×16 in float32, of two patterns in random poses with noise. The peak of the resident
set, less the bytes of the images and of the result, should stay below 4 GiB; on a GPU, where the
libraries of the device take about as much by themselves, less the peak of the same on some images.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _rows import Table, about, on_gpu, row, start_up
from _timing import add_parts, call_time, chosen_parts, verdict
from memory import peak

import patternfold as pf
from patternfold import datasets, manifold, report

SHAPE, FAMILY = (16, 16), "rotation-translation"
DRAWN, SOME = 4096, 64
"""Different images, which are repeated; and images that compile."""

BAR = 4 * 2**30
OPTIONS: dict[str, Any] = {"transformation": FAMILY, "random_state": 0, "n_starts": 1}
PATTERNS = (
    pf.Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]]),
    pf.Pattern([1.0, 1.0], [[0.0, 0.0, 0.0, 0.5, 0.1], [1.2, 0.2, 0.1, 0.3, 0.1]]),
)


def drawn(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, their λ and their classes; those of both patterns take turns."""
    rng, count = np.random.default_rng(0), min(n, DRAWN) // 2
    made = [datasets.random_images(p, count, rng, FAMILY, shape=SHAPE) for p in PATTERNS]
    some = np.stack([images for images, _ in made], axis=1).reshape(-1, *SHAPE)
    some = some + 0.02 * rng.standard_normal(some.shape)
    lam = np.stack([lam for _, lam in made], axis=1).reshape(len(some), -1).astype(np.float32)
    times = -(-n // len(some))
    labels = np.arange(times * len(some)) % 2
    images = np.tile(some.astype(np.float32), (times, 1, 1))
    return images[:n], np.tile(lam, (times, 1))[:n], labels[:n]


Call = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


def _mixture(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    model = pf.PatternMixture(2, n_parts=4, n_atoms=2, transformation=FAMILY, random_state=0)
    return model.fit(X).predict(X)


def _classifier(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    """Learned from some, as fitting its machine takes the square of the images."""
    model = pf.AlignedViewsClassifier(2, transformation=FAMILY, random_state=0)
    return model.fit(X[:SOME], y[:SOME]).predict(X)


def _views(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    model = pf.AlignedViews(pf.PATS(2, **OPTIONS), features="pixels", distances=False)
    return model.fit(X[:SOME], y[:SOME]).transform(X)


def _estimator(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    model = pf.PATS(2, n_exchanges=0, **OPTIONS).fit(X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "x.ptm"))
        model = pf.load(Path(folder, "x.ptm"))
    return [model.parameters_, model.transform(X), model.score(X), model.inverse_transform(lam)]


def _jpats(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    model = pf.JPATS(2, n_joint=1, n_tuning=1, **OPTIONS).fit(X, y)
    return [model.cross_parameters_, model.predict(X), model.decision_function(X)]


def _stream(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "x.npy"), X)
        model = pf.PATS(2, n_exchanges=0, **OPTIONS).fit(Path(folder, "x.npy"))
        pf.stream(model, Path(folder, "x.npy"), Path(folder, "poses.npy"))
    return [model.parameters_]


def _pages(X: np.ndarray, lam: np.ndarray, y: np.ndarray) -> Any:
    model = pf.PATS(2, n_exchanges=0, **OPTIONS).fit(X[:SOME])
    report.report(model, X=X)
    report.explorer(model, X)


CALLS: dict[str, Call] = {
    "project": lambda X, lam, y: pf.project(PATTERNS[0], X, FAMILY),
    "align": lambda X, lam, y: pf.align(X, lam, FAMILY),
    "warp": lambda X, lam, y: pf.warp(X, lam, FAMILY),
    "matrices": lambda X, lam, y: pf.matrices(lam, FAMILY, SHAPE),
    "render": lambda X, lam, y: manifold.render(PATTERNS[0], lam, FAMILY, SHAPE),
    "field": lambda X, lam, y: manifold.field(PATTERNS[0], lam, FAMILY, SHAPE),
    "tangents": lambda X, lam, y: manifold.tangents(PATTERNS[0], lam, FAMILY, SHAPE),
    "tangent_distance": lambda X, lam, y: manifold.tangent_distance(PATTERNS[0], X, lam, FAMILY),
    "random_images": lambda X, lam, y: datasets.random_images(
        PATTERNS[0], len(X), np.random.default_rng(0), FAMILY, shape=SHAPE
    ),
    "pats": _estimator,
    "jpats": _jpats,
    "views": _views,
    "classifier": _classifier,
    "mixture": _mixture,
    "stream": _stream,
    "pages": _pages,
}
PARTS = tuple(CALLS)


def size(result: Any) -> int:
    """Bytes of all arrays of a result."""
    if isinstance(result, np.ndarray):
        return result.nbytes
    parts = vars(result).values() if hasattr(result, "__dict__") else result
    return sum(map(size, parts)) if isinstance(parts, (list, tuple, type({}.values()))) else 0


def run_part(name: str, n: int) -> None:
    """Measure one part in this process."""
    start_up()
    about()
    X, lam, y = drawn(n)
    call = CALLS[name]
    call(X[:SOME], lam[:SOME], y[:SOME])
    before = peak() - X.nbytes
    results: list[Any] = []
    seconds = call_time(lambda: results.append(call(X, lam, y)))
    beside = peak() - X.nbytes - size(results[0]) - (before if on_gpu() else 0)
    row(
        f"{name} of {n:,} images, memory beside",
        f"{beside / 2**30:.2f} GiB",
        "< 4 GiB",
        beside < BAR,
        f"libraries {before / 2**30:.2f} GiB, {seconds:.0f} s",
    )


def main() -> int:
    """Run the chosen parts; return 1 if the bar is missed or a part fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_parts(parser, PARTS)
    parser.add_argument("--images", type=int, default=200_000, help="by default 200,000")
    parser.add_argument("--child", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_part(options.child, options.images)
        return 0
    table = Table()
    for name in chosen_parts(parser, options, PARTS):
        table.run(__file__, "--child", name, "--images", str(options.images))
    print(f"\n{verdict(not table.missed)}")
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main())
