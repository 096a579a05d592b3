"""How many times as fast as an older version, on two CPU cores.

python benchmarks/against_tag.py                      all parts, against v0.1.0
python benchmarks/against_tag.py project pats         some parts: project views jpats pats
python benchmarks/against_tag.py --quick --ref HEAD~1 another version; 40 digits per class, not 200
python benchmarks/against_tag.py --rounds 3 project   more processes of each version, in turn

Every measurement runs in a fresh process, both versions in turn with the same interpreter, and
nothing compiled is kept between processes; the best round of each version counts. Training is a
first call, compilation included. Beside the times stands how good the results are.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import _digits
import numpy as np
from _timing import (
    OtherLoad,
    add_parts,
    call_time,
    chosen_parts,
    machine,
    median_time,
    print_table,
    verdict,
)

ROOT = Path(__file__).resolve().parents[1]
DEFAULT, FALLBACK = "v0.1.0", "84a1ed7"

Figures = dict[str, float]
"""Seconds by what was measured; names that begin with "=" are qualities of the result."""

BARS = {
    "project 1,000 images, warm": 1 / 2,
    "aligned views: prediction, warm": 1 / 3,
    "aligned views: training": 0.6,
    "JPATS: training": 0.6,
    "PATS, 30 images, 20 atoms: first call": 0.6,
    "PATS, 30 images, 20 atoms: warm": 0.7,
}
"""Most time of the new version as a share of the old one's."""


def projection(quick: bool) -> Figures:
    """1,000 noisy images of a pattern of 16 atoms."""
    from patternfold import project
    from patternfold.datasets import random_images, random_pattern

    rng = np.random.default_rng(0)
    pattern = random_pattern(16, rng)
    images, _ = random_images(pattern, 1000, rng, noise=0.02**2)
    found = project(pattern, images)
    seconds = median_time(lambda: project(pattern, images), 5)
    return {
        "project 1,000 images, warm": seconds,
        "=project: mean distance": float(found.distances.mean()),
    }


def views(quick: bool) -> Figures:
    """Aligned views of five classes, 12 atoms each."""
    from patternfold import AlignedViewsClassifier
    from patternfold.datasets import search_box

    n = 40 if quick else 200
    X, y, X_test, y_test = _digits.draw_classes(n, n)
    model = AlignedViewsClassifier(12, bounds=search_box("moderate"), random_state=0)
    if "n_variants" in model.get_params():  # the version of a tag may know none
        model.set_params(n_variants=0)
    training = call_time(lambda: model.fit(X, y))
    wrong = float((model.predict(X_test) != y_test).mean())
    return {
        "aligned views: training": training,
        "aligned views: prediction, warm": median_time(lambda: model.predict(X_test), 3),
        "=aligned views: % wrong": 100 * wrong,
    }


def jpats(quick: bool) -> Figures:
    """JPATS of five classes, 12 atoms each."""
    from patternfold import JPATS
    from patternfold.datasets import search_box

    n = 40 if quick else 200
    X, y, X_test, y_test = _digits.draw_classes(n, n)
    model = JPATS(12, bounds=search_box("moderate"), random_state=0)
    training = call_time(lambda: model.fit(X, y))
    wrong = float((model.predict(X_test) != y_test).mean())
    return {"JPATS: training": training, "=JPATS: % wrong": 100 * wrong}


def pats(quick: bool) -> Figures:
    """PATS on 30 transformed digits."""
    from patternfold import PATS

    images = _digits.draw(5, 30, 0)
    model = PATS(20, random_state=0)
    first = call_time(lambda: model.fit(images))
    return {
        "PATS, 30 images, 20 atoms: first call": first,
        "PATS, 30 images, 20 atoms: warm": median_time(lambda: model.fit(images), 3),
        "=PATS: error": float(model.error_path_[-1]),
    }


PARTS: dict[str, tuple[Callable[[bool], Figures], int]] = {
    "project": (projection, 3),
    "views": (views, 1),
    "jpats": (jpats, 1),
    "pats": (pats, 3),
}
"""What is measured, and in how many rounds."""


class Load(OtherLoad):
    """What kept the cores busy beside this process and those it has started."""

    @staticmethod
    def _clocks() -> tuple[float, float, float]:
        wall, busy, _ = OtherLoad._clocks()
        return wall, busy, sum(os.times()[:4])


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in this repository."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)


def commit_of(ref: str | None) -> str:
    """Return the commit to compare with."""
    for name in (ref,) if ref else (DEFAULT, FALLBACK):
        found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.strip()
    sys.exit(f"git knows no version {ref or DEFAULT!r} here; name another one with --ref.")


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out beside this one, and remove it whatever happens."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="patternfold-") as folder:
        path = Path(folder) / "old"
        try:
            added = git("worktree", "add", "--detach", str(path), commit)
            if added.returncode:
                sys.exit(added.stderr)
            yield path
        finally:
            git("worktree", "remove", "--force", str(path))


def measure(part: str, quick: bool, source: Path) -> Figures:
    """Measure one part of the version in ``source`` in a fresh process."""
    environment = os.environ | {
        "PYTHONPATH": str(source),
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, __file__, "--child", part, *["--quick"] * quick]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"measuring {part} with {source} broke off, exit status {done.returncode}.")
    result = json.loads(done.stdout.splitlines()[-1])
    if not Path(result.pop("from")).is_relative_to(source):
        sys.exit(f"the measurement did not use {source}.")
    return result


def best_of(rounds: list[Figures]) -> Figures:
    """The least of each figure."""
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def compare(parts: list[str], options: argparse.Namespace, old_source: Path) -> bool:
    """Print both versions side by side; return whether the bars are met."""
    rows, qualities, passed = [], [], True
    for part in parts:
        rounds: dict[str, list[Figures]] = {"old": [], "new": []}
        for _ in range(options.rounds or PARTS[part][1]):
            rounds["old"].append(measure(part, options.quick, old_source))
            rounds["new"].append(measure(part, options.quick, ROOT / "src"))
        old, new = best_of(rounds["old"]), best_of(rounds["new"])
        for name in old:
            if name.startswith("="):
                qualities.append([name[1:], f"{old[name]:.4f}", f"{new[name]:.4f}"])
                continue
            share, bar = new[name] / old[name], BARS[name]
            passed &= share <= bar
            cells = [f"{old[name]:.3f}", f"{new[name]:.3f}", f"{share:.2f}", f"{bar:.2f}"]
            rows.append([name, *cells, f"{1 / share:.1f}", verdict(share <= bar)])
    print_table(["seconds", "old", "new", "new / old", "at most", "times as fast", ""], rows)
    print()
    print_table(["quality", "old", "new"], qualities)
    return passed


def main() -> int:
    """Compare the chosen parts; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description="This version against an older one")
    add_parts(parser, PARTS)
    parser.add_argument("--ref", help=f"version to compare with, by default {DEFAULT}")
    parser.add_argument("--quick", action="store_true", help="40 images per class, not 200")
    parser.add_argument("--rounds", type=int, help="processes of each version, in turn")
    parser.add_argument("--child", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        import patternfold

        figures = PARTS[options.child][0](options.quick)
        print(json.dumps(figures | {"from": patternfold.__file__}))
        return 0
    parts = chosen_parts(parser, options, PARTS)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    commit = commit_of(options.ref)
    images = f"{_digits.pictures()[1]}, 5 × {40 if options.quick else 200}"
    print(f"{machine()}; {images}; old: {git('describe', '--tags', '--always', commit).stdout}")
    with worktree(commit) as old, Load() as load:
        passed = compare(parts, options, old / "src")
    print(f"\n{load}\n{verdict(passed)}")
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
