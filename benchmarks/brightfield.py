"""Ordinary pictures, as a new user would give them: `learn` and `align` with no options.

Generated pictures of one textured thing, of known poses, on dark, mid-grey and light backgrounds,
with vignettes, light edges, black bars, colour, 8 and 16 bits, sizes 80 to 700. Each set is written
to files and goes through the command line; the angles in poses.csv are compared with the true ones,
up to one turn for all, and for symmetric things up to their symmetry. Sets with pictures that do
not belong must raise the remarks that name them.

    python benchmarks/brightfield.py                 30 pictures of each kind
    python benchmarks/brightfield.py --pictures 12 --background grey --plain
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _timing import machine, print_table, verdict

from patternfold.cli import main as command
from patternfold.datasets import Brightfield, make_brightfield

MAX_MEDIAN = 1.0
"""Degrees."""

MIN_NEAR, NEAR = 0.98, 5.0
"""Share of pictures whose angle is within so many degrees."""

SYMMETRY = 3
EXTRAS = ("blank", "stranger", "polarity")


class Outcome(NamedTuple):
    """What came of one set."""

    errors: np.ndarray
    """Degrees."""
    said: str
    """All that the commands told."""
    learning: float
    aligning: float
    """Seconds."""


def run(pictures: Brightfield, folder: Path) -> Outcome:
    """Write the pictures, learn and align."""
    pictures.save(folder / "pictures")
    model, output = str(folder / "model.ptm"), folder / "aligned"
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        started = time.perf_counter()
        learned = command(["learn", str(folder / "pictures"), "-o", model])
        middle = time.perf_counter()
        aligned = command(["align", model, str(folder / "pictures"), "-o", str(output)])
        ended = time.perf_counter()
    if learned or aligned:
        raise SystemExit(said.getvalue())
    with open(output / "poses.csv", newline="", encoding="utf-8") as file:
        found = {line["source"]: float(line["angle_deg"]) for line in csv.DictReader(file)}
    angles = np.array([found[name] for name in pictures.names])
    errors = angle_errors(angles, pictures.angles, pictures.symmetry)
    return Outcome(errors, said.getvalue(), middle - started, ended - middle)


def angle_errors(found: np.ndarray, true: np.ndarray, symmetry: int) -> np.ndarray:
    """Degrees between angles, up to one turn for all and the symmetry; extras are left out."""
    known = np.isfinite(true)
    turn = 360 / symmetry
    apart = (found - true)[known] * symmetry
    # Which turn is common is told by most pictures: the one with the least median error.
    starts = np.concatenate([apart, [np.rad2deg(np.angle(np.exp(1j * np.deg2rad(apart)).mean()))]])
    all_errors = [np.abs((apart - start + 180) % 360 - 180) / symmetry for start in starts]
    best = min(all_errors, key=np.median)
    assert best.max() <= turn / 2 + 1e-9
    return best


def accuracy(name: str, outcome: Outcome) -> tuple[list[str], bool]:
    """A line of the table, and whether the bars are met."""
    median, near = float(np.median(outcome.errors)), float((outcome.errors <= NEAR).mean())
    passed = median <= MAX_MEDIAN and near >= MIN_NEAR
    figures = [f"{median:.3f}°", f"{near:.1%}", f"{outcome.errors.max():.2f}°"]
    times = [f"{outcome.learning:.0f} s", f"{outcome.aligning:.0f} s"]
    return [name, *figures, *times, verdict(passed)], passed


def remarks(outcome: Outcome, pictures: Brightfield) -> list[tuple[str, bool]]:
    """Whether each picture that does not belong is named in what was said."""
    names = {Path(name).stem: name for name in pictures.names}
    warned = [line for line in outcome.said.splitlines() if "warning" in line or "remark" in line]
    return [(extra, any(names[extra] in line for line in warned)) for extra in EXTRAS]


def main() -> int:
    """Run all sets and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=30)
    parser.add_argument("--background", choices=("dark", "grey", "light"), action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="neither symmetry nor extras")
    parser.add_argument("--verbose", action="store_true", help="print what the commands say")
    options = parser.parse_args()
    backgrounds = options.background or ["dark", "grey", "light"]
    sets = [(name, name, {}) for name in backgrounds]
    if not options.plain:
        sets.append((f"grey, {SYMMETRY}-fold symmetry", "grey", {"symmetry": SYMMETRY}))
        sets += [(f"{name} with extras", name, {"extras": EXTRAS}) for name in backgrounds]
    print(f"{machine()}; {options.pictures} pictures each, no options\n", flush=True)
    lines, all_passed, told = [], True, []
    for name, background, more in sets:
        pictures = make_brightfield(options.pictures, background, seed=options.seed, **more)
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(pictures, Path(folder))
        line, passed = accuracy(name, outcome)
        print("  ".join(line), flush=True)
        if options.verbose:
            print(outcome.said, flush=True)
        lines.append(line)
        all_passed &= passed
        if "extras" in more:
            for extra, named in remarks(outcome, pictures):
                told.append([name, extra, verdict(named)])
                all_passed &= named
    print()
    head = ["pictures", "median", f"within {NEAR:g}°", "worst", "learn", "align", ""]
    print_table(head, lines)
    if told:
        print()
        print_table(["pictures", "named in a remark", ""], told)
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
