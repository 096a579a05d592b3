"""The global search of `project` against brute force: 200 random starts per image, and the truth.

python benchmarks/global_search.py                                 everything, best on a GPU
python benchmarks/global_search.py --cases 'k16-*' 'digit-5-*'     some cases; --list names them
python benchmarks/global_search.py --images 16 --cache brute.npz   fewer images; brute force kept
python benchmarks/global_search.py --efforts quick normal          levels of effort to judge

Cases kK-thin-M and kK-wide-M: a random pattern of K atoms, and images of it to which atoms were
added and others taken away, so that at the true pose M % of an image's energy is left over. Cases
digit-C-others and digit-C-self: a pattern of 24 atoms learned from one digit, and transformed
copies of others of its class, and of itself. An image is lost if brute force finds a squared
distance that is lower by more than 0.1 %; the worst excess is by how much ours is larger.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import _digits
import jax
import numpy as np
from _timing import call_time, machine, verdict

from patternfold import PATS, Pattern, RotationTranslationScaling, manifold, project
from patternfold.datasets import place_on_canvas, random_parameters

FAMILY = RotationTranslationScaling()
SHAPE = (40, 40)
MOST_LEFT = 0.4
"""Share of its energy that an image may keep at its best pose and still be judged by the bars."""

LOST = 1e-3
"""Share of the squared distance by which brute force must be better."""

BARS = {"normal": 1.0, "thorough": 0.3, "default": 1.0}
"""Most lost images over all cases, in %; the quick level has none."""

MAX_ITER = 60
WIDTHS = {"thin": (0.04, 0.12), "wide": (0.1, 0.4)}
N_EXTRA, N_DROPPED = 3, 2


@dataclass
class Case:
    """A pattern, images, and the least distances that brute force found."""

    coef: np.ndarray
    gamma: np.ndarray
    images: np.ndarray
    lam: np.ndarray
    best: np.ndarray

    @property
    def pattern(self) -> Pattern:
        """p."""
        return Pattern(self.coef, self.gamma)

    @property
    def pictures(self) -> np.ndarray:
        """u; stored as float16, which loses nothing since they were rounded to it."""
        return self.images.astype(np.float32)


def new_case(pattern: Pattern, images: np.ndarray, lam: np.ndarray) -> Case:
    """Without brute force as yet."""
    return Case(pattern.coef, pattern.gamma, images.astype(np.float16), lam, np.empty(0))


def random_atoms(n: int, widths: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
    """γ of n atoms, centres within 0.45 of the origin along each axis."""
    centres = rng.uniform(-0.45, 0.45, (n, 2))
    return np.column_stack([rng.uniform(-np.pi, np.pi, n), centres, rng.uniform(*widths, (n, 2))])


def random_case(k: int, widths: str, percent: int, n: int, rng: np.random.Generator) -> Case:
    """Images of a random pattern with some atoms more and some less."""
    gamma = random_atoms(k, WIDTHS[widths], rng)
    pattern = Pattern(rng.standard_normal(k), gamma)
    lam = random_parameters(FAMILY, n, rng).astype(np.float32)
    extra = random_atoms(2 * k, WIDTHS[widths], rng)
    change = np.zeros((n, 3 * k))  # of the coefficients, those of the extra atoms last
    for own in change:
        dropped = rng.choice(k, N_DROPPED, replace=False)
        own[dropped] = -pattern.coef[dropped]
        own[k + rng.choice(2 * k, N_EXTRA, replace=False)] = rng.standard_normal(N_EXTRA)
    clean = manifold.render(pattern, lam, FAMILY, SHAPE)
    misfit = np.zeros_like(clean)
    for atom, weight in zip(np.concatenate([gamma, extra]), change.T, strict=True):
        one = manifold.render(Pattern([1.0], atom[None]), lam, FAMILY, SHAPE)
        misfit += weight[:, None].astype(np.float32) * one
    # The scale s for which ‖s·misfit‖² is the given share m of ‖clean + s·misfit‖².
    m = percent / 100
    a = (1 - m) * (misfit**2).sum(axis=1)
    b, c = m * (clean * misfit).sum(axis=1), m * (clean**2).sum(axis=1)
    images = clean + ((b + np.sqrt(b * b + a * c)) / a)[:, None] * misfit
    return new_case(pattern, images.reshape(n, *SHAPE), lam)


def digit_case(label: int, of_itself: bool, n: int, rng: np.random.Generator) -> Case:
    """A pattern learned from one digit, and transformed digits."""
    own = _digits.pictures()[0][label][: n + 1]
    first = place_on_canvas(own[:1], SHAPE).astype(np.float32)
    pattern = PATS(24, random_state=0).fit(first / np.linalg.norm(first)).pattern_
    chosen = np.repeat(own[:1], n, axis=0) if of_itself else own[1:]
    return new_case(pattern, *_digits.transformed(chosen, rng))


def all_cases(n_images: int, n_digits: int) -> dict[str, Callable[[np.random.Generator], Case]]:
    """How to make each case, by name."""
    cases: dict[str, Callable[[np.random.Generator], Case]] = {
        f"k{k}-{widths}-{percent}": partial(random_case, k, widths, percent, n_images)
        for k in (8, 16, 32)
        for widths in WIDTHS
        for percent in (5, 12, 25, 40)
    }
    for label in (2, 5, 8):
        for name, of_itself in (("others", False), ("self", True)):
            cases[f"digit-{label}-{name}"] = partial(digit_case, label, of_itself, n_digits)
    return cases


def brute_force(case: Case, n_starts: int, chunk: int, rng: np.random.Generator) -> np.ndarray:
    """Least distance over local searches from random λ in all of Λ, and from the true λ."""
    pattern, images = case.pattern, case.pictures
    n = len(images)
    best = project(pattern, images, FAMILY, start=case.lam, max_iter=MAX_ITER).distances
    at_once = max(c for c in range(1, n_starts + 1) if n_starts % c == 0 and c * n <= max(chunk, n))
    tiled = np.tile(images, (at_once, 1, 1))
    for _ in range(n_starts // at_once):
        start = FAMILY.parameters.sample(rng, len(tiled)).astype(np.float32)
        ends = project(pattern, tiled, FAMILY, start=start, max_iter=MAX_ITER).distances
        best = np.minimum(best, ends.reshape(at_once, n).min(axis=0))
    return best


class Cache:
    """Cases with what brute force found, in one file, or nowhere."""

    def __init__(self, path: Path | None):
        self.path = path
        self.arrays: dict[str, np.ndarray] = {}
        if path and path.exists():
            with np.load(path, allow_pickle=False) as stored:
                self.arrays = dict(stored)

    def get(self, key: str) -> Case | None:
        """Return a case that was kept."""
        parts = {name: self.arrays.get(f"{key}/{name}") for name in Case.__dataclass_fields__}
        return None if any(part is None for part in parts.values()) else Case(**parts)

    def keep(self, key: str, case: Case) -> None:
        """Write the file anew, with one more case."""
        self.arrays |= {f"{key}/{name}": value for name, value in vars(case).items()}
        if self.path:
            other = self.path.with_name(self.path.name + ".part")
            with other.open("wb") as file:
                np.savez_compressed(file, **self.arrays)
            os.replace(other, self.path)


@dataclass
class Outcome:
    """How one level of effort did on one case."""

    excess: np.ndarray
    lost: np.ndarray
    judged: np.ndarray
    rate: float

    def cells(self) -> str:
        """Three columns of the table."""
        worst = 100 * self.excess.max(initial=0)
        return f"{100 * self.lost.mean():>10.2f}{worst:>9.2f}{self.rate:>11,.0f}"


def judge(case: Case, options: dict[str, Any], n_timed: int) -> Outcome:
    """Search globally and compare; time it on at least ``n_timed`` images."""
    pattern, images = case.pattern, case.pictures
    ours = project(pattern, images, FAMILY, **options).distances.astype(float) ** 2
    best = case.best.astype(float) ** 2
    many = np.tile(images, (-(-n_timed // len(images)), 1, 1)) if n_timed else images
    if len(many) > len(images):
        project(pattern, many, FAMILY, **options)
    seconds = call_time(lambda: project(pattern, many, FAMILY, **options))
    left = best / (images.reshape(len(images), -1) ** 2).sum(axis=1)
    lost = best < (1 - LOST) * ours
    return Outcome(ours / best - 1, lost, left <= MOST_LEFT, len(many) / seconds)


def efforts_known() -> list[str]:
    """Levels of effort that `project` offers."""
    offered = "effort" in inspect.signature(project).parameters
    return ["quick", "normal", "thorough"] if offered else ["default"]


def print_head(levels: list[str]) -> None:
    """Print the head of the table."""
    print(" " * 32 + "".join(f"{level:>30}" for level in levels))
    columns = f"{'lost %':>10}{'worst %':>9}{'images/s':>11}"
    print(f"{'case':<16}{'images':>6}{'left %':>10}" + columns * len(levels), flush=True)


def main() -> int:
    """Run the chosen cases; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description="Global search against brute force")
    known = efforts_known()
    parser.add_argument("--cases", nargs="+", default=["*"], help="names or patterns such as 'k8*'")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--efforts", nargs="+", default=known, choices=known)
    parser.add_argument("--images", type=int, default=64, help="of each random pattern")
    parser.add_argument("--digits", type=int, default=70, help="images of each digit")
    parser.add_argument("--starts", type=int, default=200, help="of brute force, per image")
    parser.add_argument("--chunk", type=int, default=16_384, help="searches at once, at most")
    parser.add_argument("--cache", type=Path, help="file .npz that keeps brute force's results")
    parser.add_argument("--timed", type=int, help="images to time, at least; 4096 on a GPU")
    options = parser.parse_args()
    cases = all_cases(options.images, options.digits)
    names = [name for name in cases if any(fnmatch(name, word) for word in options.cases)]
    if options.list or not names:
        print("\n".join(cases))
        return 0 if options.list else 2
    backend = jax.default_backend()
    n_timed = options.timed if options.timed is not None else 4096 * (backend == "gpu")
    print(f"{machine()}, JAX {jax.__version__} on {backend}; {_digits.pictures()[1]}")
    print("left: median of what the best pose leaves of an image's energy\n")
    print_head(options.efforts)
    cache = Cache(options.cache)
    outcomes: dict[str, list[Outcome]] = {level: [] for level in options.efforts}
    searching = 0.0
    for name in names:
        n = options.digits if name.startswith("digit") else options.images
        key = f"{name}/{n}/{options.starts}"
        case = cache.get(key)
        if case is None:
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            case = cases[name](rng)
            started = time.perf_counter()
            case.best = brute_force(case, options.starts, options.chunk, rng)
            searching += time.perf_counter() - started
            cache.keep(key, case)
        energy = (case.pictures.reshape(len(case.images), -1) ** 2).sum(axis=1)
        line = f"{name:<16}{n:>6}{100 * np.median(case.best**2 / energy):>10.1f}"
        for level in options.efforts:
            effort = {} if level == "default" else {"effort": level}
            outcomes[level].append(judge(case, effort, n_timed))
            line += outcomes[level][-1].cells()
        print(line, flush=True)
    return print_total(outcomes, searching)


def print_total(outcomes: dict[str, list[Outcome]], searching: float) -> int:
    """Print the last row and the verdicts; return 1 if a bar is missed."""
    total, lines, missed = "", [], False
    for level, parts in outcomes.items():
        excess, lost, judged = (
            np.concatenate([getattr(p, f) for p in parts]) for f in ("excess", "lost", "judged")
        )
        rate = len(lost) / sum(len(p.lost) / p.rate for p in parts)
        total += Outcome(excess, lost, judged, rate).cells()
        beyond, lost = lost[~judged], lost[judged]
        text = (
            f"{level}: {lost.sum()} of {len(lost)} lost, {100 * lost.mean():.2f} %; of images that "
            f"match less, {beyond.sum()} of {len(beyond)}"
        )
        if level in BARS:
            good = bool(100 * lost.mean() < BARS[level])
            missed |= not good
            text = f"{verdict(good)}  {text} (< {BARS[level]} %)"
        lines.append(text)
    n = sum(len(p.lost) for p in next(iter(outcomes.values())))
    print(f"{'all':<16}{n:>6}{'':>10}{total}")
    print(f"\nBrute force took {searching:.0f} s.")
    print("\n".join(lines))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
