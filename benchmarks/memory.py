"""Memory that `project` and `PATS` take beside the images, each in a process of its own.

python benchmarks/memory.py                      200,000 images on a GPU, else 1,000
python benchmarks/memory.py --images 5000 pats   another number; parts: project pats
python benchmarks/memory.py --atoms 20 pats      atoms that PATS learns, 4 by default

Images of 40×40 in float32: digits, and for `project` three quarters images of the pattern, which
are found sooner. The peak of the resident set, less the bytes of the images, should stay
below 4 GiB. On a GPU the libraries of the device take about as much by themselves: there the peak
of the same call with eight images is taken off too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import _digits
import numpy as np
from _rows import Table, about, on_gpu, row, start_up
from _timing import add_parts, call_time, chosen_parts, verdict

from patternfold import PATS, project
from patternfold.datasets import random_images, random_pattern

PARTS = ("project", "pats")
BAR = 4 * 2**30
DRAWN = 5_000
"""Different images; they are repeated."""


def peak() -> int:
    """Largest resident set of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would start at the size of the parent process
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run_part(name: str, n: int | None, n_atoms: int) -> None:
    """Measure one part in this process."""
    start_up()
    n = n or (200_000 if on_gpu() else 1_000)
    about()
    some = _digits.draw(5, min(n, DRAWN), 0)
    rng = np.random.default_rng(0)
    pattern = random_pattern(16, rng)
    if name == "project":
        easy = 3 * len(some) // 4
        some[:easy], _ = random_images(pattern, easy, rng, noise=0.02**2)
    images = np.empty((n, *some.shape[1:]), np.float32)
    for first in range(0, n, len(some)):
        images[first : first + len(some)] = some[: n - first]

    def call(some: np.ndarray) -> Any:
        if name == "project":
            return project(pattern, some)
        return PATS(n_atoms, random_state=0).fit(some)

    call(images[:8])
    before = peak() - images.nbytes
    title = f"project {n:,} images" if name == "project" else f"PATS({n_atoms}) on {n:,} images"
    seconds = call_time(lambda: call(images))
    beside = peak() - images.nbytes - (before if on_gpu() else 0)
    note = f"images {images.nbytes / 2**30:.2f} GiB, before {before / 2**30:.2f}, {seconds:.0f} s"
    row(title + ", memory beside", f"{beside / 2**30:.2f} GiB", "< 4 GiB", beside < BAR, note)


def main() -> int:
    """Run the chosen parts; return 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description="Memory beside the images")
    add_parts(parser, PARTS)
    parser.add_argument("--images", type=int, help="by default 200,000 on a GPU, else 1,000")
    parser.add_argument("--atoms", type=int, default=4, help="that PATS learns")
    parser.add_argument("--child", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_part(options.child, options.images, options.atoms)
        return 0
    table = Table()
    images = ["--images", str(options.images)] if options.images else []
    for name in chosen_parts(parser, options, PARTS):
        table.run(__file__, "--child", name, "--atoms", str(options.atoms), *images)
    print(f"\n{verdict(not table.missed)}")
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main())
