"""Projection: how fast is it.

python benchmarks/projection_speed.py           both parts
python benchmarks/projection_speed.py local     local stage against scipy.optimize.least_squares
python benchmarks/projection_speed.py growth    growth with images and pixels
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _projection import FAMILY, N_ATOMS, SHAPE, add_noise, run_parts
from _timing import OtherLoad, call_time, compare, print_table, verdict
from scipy import optimize

from patternfold import Grid, Pattern, project
from patternfold.datasets import random_images, random_pattern

MIN_RATIO = 100.0
MAX_EXPONENT = 1.1


class PlainProblem:
    """min ‖U_λ(p) − u‖² for one image, written in NumPy as one would for scipy."""

    def __init__(self, pattern: Pattern, image: np.ndarray):
        self.image = image.ravel().astype(np.float64)
        self.weights = np.sqrt(2 / np.pi) * pattern.coef[:, None]
        psi, self.tau_x, self.tau_y, self.sigma_x, self.sigma_y = pattern.gamma.T[:, :, None]
        self.c, self.s = np.cos(psi), np.sin(psi)
        grid = Grid(*image.shape)
        self.x, self.y = grid.x, grid.y

    def atoms(self, lam: np.ndarray) -> tuple[np.ndarray, ...]:
        """Pattern coordinates of the pixels, and of each atom, with its values."""
        theta, tx, ty, sx, sy = lam
        dx, dy = self.x - tx, self.y - ty
        x = (np.cos(theta) * dx + np.sin(theta) * dy) / sx
        y = (np.cos(theta) * dy - np.sin(theta) * dx) / sy
        u = (self.c * (x - self.tau_x) + self.s * (y - self.tau_y)) / self.sigma_x
        v = (self.c * (y - self.tau_y) - self.s * (x - self.tau_x)) / self.sigma_y
        return x, y, u, v, self.weights * np.exp(-(u * u + v * v))

    def residual(self, lam: np.ndarray) -> np.ndarray:
        """U_λ(p) − u."""
        return self.atoms(lam)[-1].sum(axis=0) - self.image

    def jacobian(self, lam: np.ndarray) -> np.ndarray:
        """∂U_λ(p)/∂λ, by the chain rule."""
        theta, _, _, sx, sy = lam
        x, y, u, v, phi = self.atoms(lam)
        along_u, along_v = -2 * u * phi / self.sigma_x, -2 * v * phi / self.sigma_y
        px = (self.c * along_u - self.s * along_v).sum(axis=0)
        py = (self.s * along_u + self.c * along_v).sum(axis=0)
        c, s = np.cos(theta), np.sin(theta)
        return np.stack(
            [
                px * y * sy / sx - py * x * sx / sy,
                -px * c / sx + py * s / sy,
                -px * s / sx - py * c / sy,
                -px * x / sx,
                -py * y / sy,
            ],
            axis=1,
        )


def scipy_distances(
    pattern: Pattern, images: np.ndarray, starts: np.ndarray, analytic: bool
) -> np.ndarray:
    """Distances after scipy's bounded least squares from each start, all else as by default."""
    box = FAMILY.parameters
    ends = []
    for image, start in zip(images, starts, strict=True):
        problem = PlainProblem(pattern, image)
        jacobian: Any = problem.jacobian if analytic else "2-point"
        found = optimize.least_squares(
            problem.residual, start, jac=jacobian, bounds=(box.lower, box.upper)
        )
        ends.append(np.sqrt(2 * found.cost))
    return np.array(ends)


def local_speed(n_images: int = 1000, n_scipy: int = 30) -> bool:
    """Compare the local stage with scipy from the same starts."""
    print(
        f"\nLocal stage: images of {SHAPE[0]}x{SHAPE[1]}, {N_ATOMS} atoms, 10 dB, from starts "
        f"about 1 pixel off.\npatternfold: {n_images} images in float32. scipy: the first "
        f"{n_scipy} of them, one at a time, float64, the model in NumPy.\n"
    )
    rng = np.random.default_rng(2)
    pattern = random_pattern(N_ATOMS, rng)
    clean, lam = random_images(pattern, n_images, rng)
    images = add_noise(clean, 10.0, rng)
    starts = FAMILY.parameters.put_inside(lam + 0.05 * rng.normal(size=lam.shape))
    some = images[:n_scipy], starts[:n_scipy]

    def ours() -> np.ndarray:
        return project(pattern, images, FAMILY, start=starts).distances

    first = call_time(ours)
    times = compare(
        {
            "ours": ours,
            "default": lambda: scipy_distances(pattern, *some, analytic=False),
            "analytic": lambda: scipy_distances(pattern, *some, analytic=True),
        },
        enough=lambda t: t["default"] / n_scipy >= MIN_RATIO * t["ours"] / n_images,
        rounds=3,
        max_rounds=20,
    )
    each = {k: t / (n_images if k == "ours" else n_scipy) for k, t in times.items()}
    ends = {
        "ours": ours()[:n_scipy],
        "default": scipy_distances(pattern, *some, analytic=False),
        "analytic": scipy_distances(pattern, *some, analytic=True),
    }
    least = np.min(list(ends.values()), axis=0)
    titles = {
        "ours": "patternfold",
        "default": "scipy, its default: finite differences",
        "analytic": "scipy, analytic Jacobian",
    }
    rows = [
        [
            title,
            f"{1e3 * each[key]:.3f}",
            f"{each[key] / each['ours']:.0f}",
            f"{100 * (ends[key] <= 1.001 * least).mean():.0f}",
        ]
        for key, title in titles.items()
    ]
    print_table(["local search", "ms/image", "ratio", "reached the best %"], rows)
    ratio = each["default"] / each["ours"]
    passed = ratio >= MIN_RATIO
    print(f"\nFirst call of patternfold, compilation included: {first:.1f} s.")
    print(f"{verdict(passed)}  {ratio:.0f} times scipy's default (>= {MIN_RATIO:.0f})")
    return passed


def best_run(pattern: Pattern, images: np.ndarray, repeats: int) -> float:
    """Seconds of the quickest of some projections."""
    project(pattern, images, FAMILY)
    return min(call_time(lambda: project(pattern, images, FAMILY)) for _ in range(repeats))


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(repeats: int = 5) -> bool:
    """Print the times by number of images and of pixels, and their exponents."""
    rng = np.random.default_rng(3)
    pattern = random_pattern(N_ATOMS, rng)
    print(f"\n{N_ATOMS} atoms, 10 dB, float32, best of {repeats} runs.\n")
    series = {
        "images": [(n, 40) for n in (250, 500, 1000, 2000, 4000)],
        "pixels": [(1000, side) for side in (24, 32, 40, 56, 80)],
    }
    rows, passed, lines = [], True, []
    measured: dict[tuple[int, int], float] = {}
    for title, problems in series.items():
        for n, side in problems:
            if (n, side) not in measured:
                clean, _ = random_images(pattern, n, rng, shape=(side, side))
                measured[n, side] = best_run(pattern, add_noise(clean, 10.0, rng), repeats)
            seconds = measured[n, side]
            rows.append([f"{n} of {side}x{side}", f"{seconds:.3f}", f"{n / seconds:.0f}"])
        sizes = [n if title == "images" else side**2 for n, side in problems]
        slope = exponent(sizes, [measured[p] for p in problems])
        good = slope <= MAX_EXPONENT
        passed &= good
        power = f"(number of {title})^{slope:.2f}"
        lines.append(f"{verdict(good)}  time grows as {power} (<= {MAX_EXPONENT})")
    print_table(["images", "seconds", "images/s"], rows)
    print("\n" + "\n".join(lines))
    return passed


def loaded(part: Callable[[], bool]) -> Callable[[], bool]:
    """Say after a part how busy other programs kept the machine."""

    def run() -> bool:
        with OtherLoad() as load:
            passed = part()
        print(f"\n{load}")
        return passed

    return run


if __name__ == "__main__":
    parts = {"local": loaded(local_speed), "growth": loaded(growth)}
    sys.exit(run_parts(parts, "Speed of the projection"))
