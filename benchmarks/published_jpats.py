"""JPATS as published: what each choice that the paper leaves open does to train and test error.

python benchmarks/published_jpats.py run VARIANT SEED --out runs.jsonl   one fit, one line of JSON
python benchmarks/published_jpats.py all --jobs 2 --out runs.jsonl       all variants and seeds
python benchmarks/published_jpats.py table runs.jsonl                    Markdown

Transformed digits, moderate rotations. Seeds are 100 and above: none of these splits is used by an
experiment. A fit is a process of its own on one core, and the GPU if there is one; `all`
leaves out what the file has already, and starts nothing after --limit seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ONE_CORE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
COUNTS = (2, 4, 6, 8, 10, 12)
"""Numbers of atoms per class after which test images are classified."""

AT_ORIGIN = float(np.sqrt(2 / np.pi))
"""The Gaussian mother function at the origin."""


def variants(peak: float) -> dict[str, dict[str, Any]]:
    """Options by name, on top of those of `JPATS.paper`; ``peak`` is the mean brightest pixel."""
    from patternfold.learning.schedules import (
        RELATIVE_ALPHA,
        BetaSchedule,
        SigmoidAlpha,
        fit_beta,
    )

    def relative(factor: float, **options: Any) -> SigmoidAlpha:
        return replace(RELATIVE_ALPHA.times(factor), **options)

    def share(of_peak: float) -> float:
        return of_peak * peak / AT_ORIGIN

    def usual(f: np.ndarray, wrong: np.ndarray) -> float:
        return float(2 / np.abs(f).mean())

    def sharp(f: np.ndarray, wrong: np.ndarray) -> float:
        return 4 * usual(f, wrong)

    return {
        "PATS, λ in a small region": {"alpha": 0.0, "projection": "line-search"},
        "PATS, λ over Λ": {"alpha": 0.0},
        "PATS, no tangent refinement": {"alpha": 0.0, "tangent_refinement": False},
        "JPATS.paper()": {},
        "λ in a small region": {"projection": "local"},
        "patience 3": {"patience": 3},
        "α by cross-validation": {"alpha": "cv"},
        "C 0.25": {"max_coef": share(0.25)},
        "C 0.35": {"max_coef": share(0.35)},
        "C 0.7": {"max_coef": share(0.7)},
        "C 0.5": {"max_coef": share(0.5)},
        "C 2": {"max_coef": share(2.0)},
        "C 4": {"max_coef": share(4.0)},
        "α 0.5 to 10": {"alpha": SigmoidAlpha()},
        "α 0.5 to 10, C 0.25": {"alpha": SigmoidAlpha(), "max_coef": share(0.25)},
        "α 0.01 to 0.2": {"alpha": SigmoidAlpha(0.01, 0.2)},
        "α ×0.25": {"alpha": relative(0.25)},
        "α ×0.5": {"alpha": relative(0.5)},
        "α ×2": {"alpha": relative(2)},
        "α ×4": {"alpha": relative(4)},
        "α later": {"alpha": relative(1, centre=9.0)},
        "together, E_c must fall": {"acceptance": "fall"},
        "together, E_c must not rise": {"acceptance": "no-rise"},
        "accepted together": {"acceptance": "tie"},
        "accepted together, α ×0.5": {"acceptance": "tie", "alpha": relative(0.5)},
        "first β ×4": {"beta": BetaSchedule(fit_beta, first=8.0)},
        "first β ÷4": {"beta": BetaSchedule(fit_beta, first=0.5)},
        "β = 2/mean|f|": {"beta": usual},
        "β = 8/mean|f|": {"beta": sharp},
        "three base updates": {"n_base_updates": 3},
        "all atoms significant": {"significance": 0.0},
        "significant from 0.1": {"significance": 0.1},
        "no tangent refinement": {"tangent_refinement": False},
    }


def defaults() -> dict[str, dict[str, Any]]:
    """Variants of the default `JPATS`, which goes beyond the paper."""
    return {
        "ours": {},
        "ours, α auto": {"alpha": "auto"},
        "ours, patience 10": {"patience": 10},
        "ours, by class": {"acceptance": "by-class"},
        "ours, 3 joint": {"n_joint": 3},
    }


def fit_one(name: str, seed: int, n_train: int) -> dict[str, Any]:
    """Fit a variant on a split, and count errors."""
    import jax

    from patternfold import JPATS
    from patternfold._validation import lookup
    from patternfold.baselines import with_first_atoms
    from patternfold.datasets import search_box, split_digits

    split = split_digits("moderate", n_train, seed)
    peak = float(np.abs(split.X).max(axis=(1, 2)).mean())
    shared: dict[str, Any] = {"random_state": 0, "bounds": search_box("moderate")}
    if name in defaults():
        model, counts = JPATS(12, **shared, **defaults()[name]), (12,)
    else:
        options = lookup("variant", name, variants(peak))
        model, counts = JPATS.paper(12, solver="search", **shared, **options), COUNTS
    started = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - started
    atoms = [p.n_atoms for p in model.patterns_]
    test = {}
    for k in counts:
        fewer = with_first_atoms(model, k) if k < max(atoms) else model
        test[k] = 100 * float((fewer.predict(split.X_test) != split.y_test).mean())
    return {
        "variant": name,
        "seed": seed,
        "n_train": n_train,
        "atoms": atoms,
        "train": 100 * float(model.error_path_[-1, 0]),
        "approximation": float(model.error_path_[-1, 1]),
        "test": test,
        "largest": max(float(np.abs(p.coef).max()) for p in model.patterns_),
        "iterations": model.n_iter_,
        "reason": model.stop_reason_,
        "seconds": seconds,
        "device": jax.default_backend(),
    }


def run(options: argparse.Namespace) -> int:
    """Append the line of one fit to the file."""
    line = json.dumps(fit_one(options.variant, options.seed, options.train), ensure_ascii=False)
    with open(options.out, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    print(line)
    return 0


def run_all(options: argparse.Namespace) -> int:
    """Run what the file does not have yet, each fit in a process of its own."""
    started = time.perf_counter()
    done = {(r["variant"], r["seed"], r["n_train"]) for r in read([options.out])}
    names = options.variants or [*variants(1.0), *defaults()]
    wanted = [(name, seed) for seed in options.seeds for name in names]
    todo = [w for w in wanted if (*w, options.train) not in done]

    def start(job: tuple[str, int]) -> int:
        if time.perf_counter() - started > options.limit:
            return 1
        arguments = ["run", job[0], str(job[1]), "--train", str(options.train)]
        command = [sys.executable, __file__, *arguments, "--out", str(options.out)]
        left = options.kill - (time.perf_counter() - started)
        flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_CORE}"
        try:
            return subprocess.run(
                command, env=os.environ | {"XLA_FLAGS": flags}, timeout=left, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return 1

    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(start, todo))
    print(f"{codes.count(0)} of {len(codes)} runs done in {time.perf_counter() - started:.0f} s")
    return 0


def read(paths: list[Path]) -> list[dict[str, Any]]:
    """The lines of some files."""
    lines = [p.read_text(encoding="utf-8").splitlines() for p in paths if p.exists()]
    return [json.loads(line) for part in lines for line in part]


def table(options: argparse.Namespace) -> int:
    """Print means over the seeds that all variants of a size have in common with the first."""
    rows = read(options.files)
    for n_train in sorted({r["n_train"] for r in rows}):
        some = [r for r in rows if r["n_train"] == n_train]
        print(f"\n{n_train} training images per class\n")
        print("| variant | splits | train % | test % | 4, 8 atoms | E_a | atoms | below PATS | s |")
        print("|---|---|---|---|---|---|---|---|---|")
        pats = {r["seed"]: r for r in some if r["variant"] == options.against}
        names = [n for n in [*variants(1.0), *defaults()] if any(r["variant"] == n for r in some)]
        for name in names:
            print(_row(name, [r for r in some if r["variant"] == name], pats))
    return 0


def _row(name: str, runs: list[dict[str, Any]], pats: dict[int, dict[str, Any]]) -> str:
    def mean(values: list[float]) -> float:
        return float(np.mean(values))

    test = [r["test"]["12"] for r in runs]
    fewer = [f"{mean([r['test'][k] for r in runs]):.1f}" for k in "48" if k in runs[0]["test"]]
    both = [(r, pats[r["seed"]]) for r in runs if r["seed"] in pats]
    below = sum(r["test"]["12"] < p["test"]["12"] for r, p in both)
    less = mean([r["test"]["12"] - p["test"]["12"] for r, p in both]) if both else np.nan
    cells = [
        name,
        len(runs),
        f"{mean([r['train'] for r in runs]):.1f}",
        f"{mean(test):.1f} ± {float(np.std(test)):.1f}",
        ", ".join(fewer),
        f"{mean([r['approximation'] for r in runs]):.3f}",
        f"{mean([a for r in runs for a in r['atoms']]):.1f}",
        f"{below} of {len(both)} ({less:+.1f})",
        f"{mean([r['seconds'] for r in runs]):.0f}",
    ]
    return "| " + " | ".join(str(c) for c in cells) + " |"


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="JPATS as published, by variant")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="fit one variant on one split")
    one.add_argument("variant", help="as the functions variants and defaults name them")
    one.add_argument("seed", type=int)
    every = commands.add_parser("all", help="fit many, each in a process of its own")
    every.add_argument("--variants", nargs="*")
    every.add_argument("--seeds", type=int, nargs="*", default=[100, 101, 102, 103])
    every.add_argument("--jobs", type=int, default=2)
    every.add_argument("--limit", type=float, default=np.inf, help="start nothing after, in s")
    every.add_argument("--kill", type=float, default=1e6, help="end what still runs then, in s")
    for command in (one, every):
        command.add_argument("--train", type=int, default=100, help="images per class")
        command.add_argument("--out", type=Path, default=Path("published_jpats.jsonl"))
    show = commands.add_parser("table", help="print Markdown")
    show.add_argument("files", type=Path, nargs="+")
    show.add_argument("--against", default="PATS, λ in a small region")
    options = parser.parse_args()
    return {"run": run, "all": run_all, "table": table}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
