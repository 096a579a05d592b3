"""Speed and memory of rendering, the field pass, tangents and the tangent distance.

Speed: the public functions, called as a user calls them (checks of the input, hand-over to JAX and
the copy to NumPy included), against a straightforward NumPy evaluation in the same run.
Memory: the peak of a whole Python process that works on 100,000 images.

    python benchmarks/core.py            both
    python benchmarks/core.py --speed    speed only
    python benchmarks/core.py --memory   memory only
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from _timing import OtherLoad, call_time, compare, machine, print_table, verdict

from patternfold import Grid, Pattern, RotationTranslationScaling, manifold

SHAPE = (40, 40)
TRANSFORMATION = RotationTranslationScaling()

MIN_RATIO = 20.0
MAX_DIFFERENCE = 1e-5
MAX_GIB = 4.0

Arrays = tuple[np.ndarray, ...]


def make_problem(n_images: int, n_atoms: int) -> tuple[Pattern, np.ndarray]:
    """Random atoms of 2 to 10 pixels' width, random λ from the whole box, in float32."""
    rng = np.random.default_rng(0)
    low = [-np.pi, -0.6, -0.6, 0.1, 0.1]
    high = [np.pi, 0.6, 0.6, 0.5, 0.5]
    pattern = Pattern(rng.normal(size=n_atoms), rng.uniform(low, high, size=(n_atoms, 5)))
    return pattern, TRANSFORMATION.parameters.sample(rng, n_images).astype(np.float32)


def numpy_coordinates(pattern: Pattern, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(u, v) = b(γ_k, a(λ_i, x, y)) for all images, atoms and pixels: two (N, K, n) arrays."""
    grid = Grid(*SHAPE)
    x, y = grid.x.astype(lam.dtype), grid.y.astype(lam.dtype)
    theta, tx, ty, sx, sy = lam.T[:, :, None]
    dx, dy = x - tx, y - ty
    warped_x = (np.cos(theta) * dx + np.sin(theta) * dy) / sx
    warped_y = (np.cos(theta) * dy - np.sin(theta) * dx) / sy
    psi, tau_x, tau_y, sigma_x, sigma_y = pattern.gamma.astype(lam.dtype).T[:, :, None]
    dx, dy = warped_x[:, None] - tau_x, warped_y[:, None] - tau_y
    u = (np.cos(psi) * dx + np.sin(psi) * dy) / sigma_x
    v = (np.cos(psi) * dy - np.sin(psi) * dx) / sigma_y
    return u, v


def numpy_render(pattern: Pattern, lam: np.ndarray) -> Arrays:
    """U_λ(p) from one (N, K, n) array of exponentials."""
    u, v = numpy_coordinates(pattern, lam)
    phi = np.exp(-(u * u + v * v))
    return (np.einsum("k,ikl->il", _weights(pattern, lam), phi),)


def numpy_field(pattern: Pattern, lam: np.ndarray) -> Arrays:
    """(p, p_x', p_y') from the same exponentials, by the chain rule."""
    u, v = numpy_coordinates(pattern, lam)
    psi, _, _, sigma_x, sigma_y = pattern.gamma.astype(lam.dtype).T[:, :, None]
    c, s = np.cos(psi), np.sin(psi)
    phi = np.exp(-(u * u + v * v))
    phi_u, phi_v = -2 * u * phi, -2 * v * phi
    phi_x = phi_u * (c / sigma_x) - phi_v * (s / sigma_y)
    phi_y = phi_u * (s / sigma_x) + phi_v * (c / sigma_y)
    weights = _weights(pattern, lam)
    value, along_x, along_y = (
        np.einsum("k,ikl->il", weights, part) for part in (phi, phi_x, phi_y)
    )
    return value, along_x, along_y


def _weights(pattern: Pattern, lam: np.ndarray) -> np.ndarray:
    """Coefficients times the norm of the Gaussian mother function."""
    return (np.sqrt(2 / np.pi) * pattern.coef).astype(lam.dtype)


def fold_render(pattern: Pattern, lam: np.ndarray) -> Arrays:
    """Render with the public function."""
    return (manifold.render(pattern, lam, TRANSFORMATION, SHAPE),)


def fold_field(pattern: Pattern, lam: np.ndarray) -> Arrays:
    """Run the field pass with the public function."""
    return manifold.field(pattern, lam, TRANSFORMATION, SHAPE)


def worst_difference(results: Arrays, references: Arrays) -> float:
    """Largest ‖a − b‖ / ‖b‖ over the images of all arrays."""
    return max(
        float((np.linalg.norm(a - b, axis=1) / np.linalg.norm(b, axis=1)).max())
        for a, b in zip(results, references, strict=True)
    )


def measure(
    name: str,
    plain: Callable[..., Arrays],
    fold: Callable[..., Arrays],
    pattern: Pattern,
    lam: np.ndarray,
) -> tuple[list[str], bool]:
    """Compare two functions; return a row of the table and whether the bars are met."""
    first = call_time(lambda: fold(pattern, lam))
    times = compare(
        {"numpy": lambda: plain(pattern, lam), "fold": lambda: fold(pattern, lam)},
        enough=lambda best: best["numpy"] >= MIN_RATIO * best["fold"],
    )
    ratio = times["numpy"] / times["fold"]
    rate = len(lam) * pattern.n_atoms * SHAPE[0] * SHAPE[1] / times["fold"] / 1e9
    difference = worst_difference(fold(pattern, lam), plain(pattern, lam.astype(np.float64)))
    good = ratio >= MIN_RATIO and difference <= MAX_DIFFERENCE
    row = [
        name,
        f"{1e3 * times['numpy']:.1f}",
        f"{1e3 * times['fold']:.2f}",
        f"{ratio:.1f}",
        f"{first:.2f}",
        f"{rate:.2f}",
        f"{difference:.1e}",
        verdict(good),
    ]
    return row, good


def speed(n_images: int = 256, n_atoms: int = 16) -> bool:
    """Print the speed table; return whether every bar is met."""
    print(
        f"\nSpeed of the public functions: {n_images} images of {SHAPE[0]}x{SHAPE[1]}, "
        f"{n_atoms} atoms, float32.\nPart of every call: input checks and the copy to NumPy. "
        "Difference: worst image, to NumPy in float64.\n"
    )
    pattern, lam = make_problem(n_images, n_atoms)
    pairs: dict[str, tuple[Callable[..., Arrays], Callable[..., Arrays]]] = {
        "render": (numpy_render, fold_render),
        "field": (numpy_field, fold_field),
    }
    rows, passed = [], True
    with OtherLoad() as load:
        for name, (plain, fold) in pairs.items():
            row, good = measure(name, plain, fold, pattern, lam)
            rows.append(row)
            passed &= good
    print_table(
        [
            "function",
            "NumPy ms",
            "patternfold ms",
            f"ratio (>= {MIN_RATIO:.0f})",
            "first call s",
            "10^9 atom-pixels/s",
            f"difference (<= {MAX_DIFFERENCE:.0e})",
            "",
        ],
        rows,
    )
    print(f"\n{load}")
    return passed


def large_render(pattern: Pattern, lam: np.ndarray) -> Any:
    """Render all images."""
    return manifold.render(pattern, lam, TRANSFORMATION, SHAPE)


def large_tangents(pattern: Pattern, lam: np.ndarray) -> Any:
    """All tangent vectors of all images."""
    return manifold.tangents(pattern, lam, TRANSFORMATION, SHAPE)


def large_tangent_distance(pattern: Pattern, lam: np.ndarray) -> Any:
    """Tangent distances of images of noise: the content does not matter here."""
    rng = np.random.default_rng(1)
    images = rng.standard_normal((len(lam), *SHAPE), dtype=np.float32)
    return manifold.tangent_distance(pattern, images, lam, TRANSFORMATION)


LARGE_JOBS = {
    "render": large_render,
    "tangents": large_tangents,
    "tangent_distance": large_tangent_distance,
}


def peak_of(job: str, n_images: int, n_atoms: int) -> None:
    """Run one large job in this process and print its time and peak memory as JSON."""
    pattern, lam = make_problem(n_images, n_atoms)
    result: list[Any] = []
    seconds = call_time(lambda: result.append(LARGE_JOBS[job](pattern, lam)))
    arrays = result[0] if isinstance(result[0], tuple) else (result[0],)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    size = sum(array.nbytes for array in arrays)
    print(json.dumps({"seconds": seconds, "peak": peak, "result": size}))


def memory(n_images: int = 100_000, n_atoms: int = 32) -> bool:
    """Print the memory table, one process per row; return whether every bar is met."""
    print(
        f"\nPeak memory of a process: {n_images} images of {SHAPE[0]}x{SHAPE[1]}, "
        f"{n_atoms} atoms, float32.\nThe result itself is part of it.\n"
    )
    rows, passed = [], True
    for job in LARGE_JOBS:
        command = [sys.executable, __file__, "--peak", job, str(n_images), str(n_atoms)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        peak = found["peak"] / 2**30
        good = peak <= MAX_GIB
        passed &= good
        rows.append(
            [
                job,
                f"{found['seconds']:.1f}",
                f"{found['result'] / 2**30:.2f}",
                f"{peak:.2f}",
                verdict(good),
            ]
        )
    print_table(["function", "seconds", "result GiB", f"peak GiB (<= {MAX_GIB:.0f})", ""], rows)
    return passed


def main() -> int:
    """Run the chosen parts; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", action="store_true", help="the speed part only")
    parser.add_argument("--memory", action="store_true", help="the memory part only")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        job, n_images, n_atoms = options.peak
        peak_of(job, int(n_images), int(n_atoms))
        return 0
    both = options.speed == options.memory
    print(f"{machine()}, NumPy {np.__version__}, JAX {jax.__version__} on {jax.default_backend()}")
    passed = True
    if options.speed or both:
        passed &= speed()
    if options.memory or both:
        passed &= memory()
    print(f"\n{verdict(passed)}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
