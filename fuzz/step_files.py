"""Damaged files of finished steps: read as they were or not at all, and nothing is raised."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from harness import MOST_MEMORY, Finding, Made, run  # noqa: E402
from zips import hurt_zip  # noqa: E402

from patternfold.experiments.base import Done  # noqa: E402
from patternfold.experiments.steps import read_step, save_step  # noqa: E402

VALUES = {
    "images": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "labels": np.array(["a", "b"]),
    "count": 3,
    "text": "α",
    "list": [1, 2.5, None, {"x": [1]}],
}
PRINT = "fingerprint"
ONLY_BYTES = ".npz"
"""Ending of files whose damage the sums of their contents reveal."""


def _seed() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "step.npz")
        save_step(path, Done(VALUES, 1.5), PRINT)
        return path.read_bytes()


SEED = _seed()


def make(rng: np.random.Generator) -> Made:
    """Damage the file; the ending tells how."""
    content, mode = hurt_zip(SEED, "step.json", rng)
    return Made(content, ONLY_BYTES if mode in ("bytes", "cut") else ".edited", mode)


def check(path: Path) -> str:
    """Read; what is read is what was written unless somebody has written sums anew."""
    found = read_step(path, PRINT)
    if found is None:
        return "done again"
    if path.suffix == ONLY_BYTES and (
        _plain(found.values) != _plain(VALUES) or found.seconds != 1.5
    ):
        raise Finding(f"read {found}")
    return "read"


def _plain(values: dict[str, object]) -> dict[str, object]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


if __name__ == "__main__":
    sys.exit(run(make, check, __doc__, MOST_MEMORY))
