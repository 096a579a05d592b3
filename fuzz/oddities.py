"""Odd images, threads, processes and settings of JAX: results as they should be, or a sentence.

    python fuzz/oddities.py                  all
    python fuzz/oddities.py --only shapes    some of: see CHECKS below

Each check runs in a process of its own and ends with exit status 1 on a finding.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402

Found = list[str]

SAME = 1e-5
"""Largest difference, as a share of the largest number, of results that are the same but for the
order of sums in float32, which the number of threads changes."""

LONGEST = 300.0
"""Seconds of one fit of an odd set of images."""

OPTIONS: dict[str, Any] = {"transformation": "rotation-translation", "random_state": 0}


def estimators() -> dict[str, Callable[[], Any]]:
    """Makers of every estimator, small."""
    from patternfold import JPATS, PATS, AlignedViewsClassifier, PatternMixture

    few = {"n_starts": 1, **OPTIONS}
    return {
        "PATS": lambda: PATS(2, n_exchanges=0, **few),
        "JPATS": lambda: JPATS(2, n_joint=1, n_tuning=1, **few),
        "AlignedViewsClassifier": lambda: AlignedViewsClassifier(2, **OPTIONS),
        "PatternMixture": lambda: PatternMixture(2, n_parts=2, n_atoms=2, **OPTIONS),
    }


def pictures(n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Bars and dots in float32, and their names."""
    from interrupts import pictures as drawn

    X, y = drawn(np.random.default_rng(0), n)
    return X.astype(np.float32), y


def numbers(model: Any, X: np.ndarray) -> np.ndarray:
    """What a model has learned and what it says of images, as one row of numbers."""
    patterns = getattr(model, "patterns_", None) or getattr(model, "parts_", None)
    if hasattr(model, "views_"):
        patterns = model.views_.patterns_
    patterns = [model.pattern_] if patterns is None else patterns
    said = model.transform(X) if hasattr(model, "transform") else model.decision_function(X)
    parts = [np.concatenate([p.coef, p.gamma.ravel()]) for p in patterns]
    return np.concatenate([*parts, np.ravel(said)]).astype(np.float64)


def fitted(name: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fit one estimator; return its numbers."""
    return numbers(estimators()[name]().fit(X, y), X)


def differs(one: np.ndarray, other: np.ndarray, tolerance: float = SAME) -> str | None:
    """Say by how much results differ, if by more than a share of their largest number."""
    if one.shape != other.shape:
        return f"shapes {one.shape} and {other.shape}"
    difference = float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-300))
    return f"they differ by {difference:.2g}" if not difference <= tolerance else None


def amplitudes() -> Found:
    """Images times 1e-30 and 1e30: the same classes and, scaled, the same patterns."""
    found, (X, y) = [], pictures()
    for name, make in estimators().items():
        usual = make().fit(X.astype(np.float64), y)
        for exponent in (-100, 100):  # 1e-30 and 1e30
            images = np.ldexp(X.astype(np.float64), exponent)
            other = make().fit(images, y)
            if hasattr(usual, "predict"):
                if (other.predict(images) != usual.predict(X.astype(np.float64))).any():
                    found.append(f"{name} times 2^{exponent}: other classes")
            elif text := differs(usual.transform(X.astype(np.float64)), other.transform(images)):
                found.append(f"{name} times 2^{exponent}: {text}")
    return found


def odd_sets() -> dict[str, np.ndarray]:
    """Sets of images that are hardly sets of images."""
    rng = np.random.default_rng(0)
    X, _ = pictures()
    return {
        "one image": X[:1],
        "two images": X[:2],
        "equal images": np.repeat(X[:1], 6, axis=0),
        "blank images": np.zeros((6, 8, 8), np.float32),
        "constant images": np.ones((6, 8, 8), np.float32),
        "one pixel": rng.random((6, 1, 1), np.float32),
        "one row": rng.random((6, 1, 40), np.float32),
        "one column": rng.random((6, 40, 1), np.float32),
        "one bright pixel": np.eye(64, dtype=np.float32)[:6].reshape(6, 8, 8),
        "1000×1000": _large(rng),
        "integers": (255 * X).astype(np.uint8),
        "negative": -X,
    }


def _large(rng: np.random.Generator) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(-1, 1, 1000), np.linspace(-1, 1, 1000))
    return np.array(
        [
            np.exp(-((x - a) ** 2) / 0.1 - (y - b) ** 2 / 0.02)
            for a, b in rng.uniform(-0.3, 0.3, (4, 2))
        ],
        np.float32,
    )


def shapes() -> Found:
    """Every estimator on odd sets: finite numbers, or a ValueError."""
    found = []
    for what, X in odd_sets().items():
        y = np.arange(len(X)) % 2
        for name, make in estimators().items():
            started = time.process_time()
            try:
                if not np.isfinite(numbers(make().fit(X, y), X)).all():
                    found.append(f"{name} on {what}: not finite")
            except ValueError as error:
                print(f"{name} on {what}: {str(error)[:120]}", flush=True)
            except Exception as error:
                found.append(f"{name} on {what}: {type(error).__name__}: {error}")
            if time.process_time() - started > LONGEST:
                found.append(f"{name} on {what}: {time.process_time() - started:.0f} s")
    return found


def threads() -> Found:
    """Four threads that fit at once find what each finds alone."""
    X, y = pictures()
    names = list(estimators())
    alone = {name: fitted(name, X, y) for name in names}
    results: dict[str, Any] = {}

    def work(name: str) -> None:
        try:
            results[name] = fitted(name, X, y)
        except Exception as error:
            results[name] = error

    workers = [threading.Thread(target=work, args=(name,)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return _compared(alone, results, 0.0)


def workers() -> Found:
    """Processes of joblib and spawned ones find what this one finds."""
    from joblib import Parallel, delayed

    X, y = pictures()
    names = ["PATS", "JPATS"]
    alone = {name: fitted(name, X, y) for name in names}
    loky = Parallel(n_jobs=2, backend="loky")(delayed(fitted)(name, X, y) for name in names)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        spawned = pool.starmap(fitted, [(name, X, y) for name in names])
    found = _compared(alone, dict(zip(names, loky, strict=True)))
    return found + _compared(alone, dict(zip(names, spawned, strict=True)))


def forks() -> Found:
    """A fork after a computation is refused with a remedy, before JAX can hang."""
    script = Path(__file__).parents[1] / "tests/test_processes.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-k", "fork", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if ended.returncode == 0 else [ended.stdout[-2000:]]


SETTINGS = {
    "x64": {"JAX_ENABLE_X64": "1"},
    "no x64": {"JAX_ENABLE_X64": "0"},
    "debug NaNs": {"JAX_DEBUG_NANS": "1"},
    "two devices": {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
    "the second device": {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "PATTERNFOLD_ODD_DEVICE": "1",
    },
    "one thread": {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"},
}
"""What a user may have set, as variables of the environment."""


def settings() -> Found:
    """Settings of JAX are left as they were, and change nothing of what is found."""
    return _in_processes(SETTINGS)


def repeats() -> Found:
    """The same seed gives the same in another process, and on one core."""
    return _in_processes({"another process": {}, "one core": {"PATTERNFOLD_ODD_CORES": "1"}})


def _in_processes(environments: dict[str, dict[str, str]]) -> Found:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        usual = _own_process(Path(folder, "usual.npz"), {})
        for what, environment in environments.items():
            try:
                other = _own_process(Path(folder, "other.npz"), environment)
            except subprocess.CalledProcessError as error:
                found.append(f"{what}: {error.stderr[-1500:]}")
                continue
            found += [f"{what}: {text}" for text in _compared(usual, other)]
            print(f"{what}: largest difference {_largest(usual, other):.2g}", flush=True)
    return found


def _own_process(path: Path, environment: dict[str, str]) -> dict[str, np.ndarray]:
    command = [sys.executable, __file__, "--write", str(path)]
    subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    with np.load(path) as arrays:
        return dict(arrays)


def write(path: str) -> None:
    """Fit every estimator under the settings of this process, which must stay."""
    if os.environ.get("PATTERNFOLD_ODD_CORES"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    import jax

    if os.environ.get("PATTERNFOLD_ODD_DEVICE"):
        jax.config.update("jax_default_device", jax.devices()[1])
    before = dict(jax.config.values)
    X, y = pictures()
    results = {name: fitted(name, X, y) for name in estimators()}
    changed = [key for key, value in before.items() if jax.config.values[key] != value]
    if changed:
        raise SystemExit(f"changed: {changed}")
    np.savez(path, **results)


def _largest(one: dict[str, Any], other: dict[str, Any]) -> float:
    pairs = [(one[name], other[name]) for name in one if one[name].shape == other[name].shape]
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


def _compared(one: dict[str, Any], other: dict[str, Any], tolerance: float = SAME) -> Found:
    found = []
    for name, values in one.items():
        theirs = other.get(name)
        if not isinstance(theirs, np.ndarray):
            found.append(f"{name}: {theirs!r}")
        elif text := differs(values, theirs, tolerance):
            found.append(f"{name}: {text}")
    return found


CHECKS: dict[str, Callable[[], Found]] = {
    check.__name__: check
    for check in (amplitudes, shapes, threads, workers, forks, settings, repeats)
}


def _found(name: str) -> Found:
    """Run a check in a process of its own, passing on what it says."""
    command, found = [sys.executable, __file__, "--check", name], None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("FOUND "):
                found = json.loads(line.removeprefix("FOUND "))
            else:
                print(line, end="", flush=True)
    found = [f"ended with {process.returncode}"] if found is None else found
    print("\n".join(found))
    return found


def main() -> int:
    """Run the checks, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(CHECKS))
    parser.add_argument("--check", choices=list(CHECKS), help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.write:
        write(options.write)
        return 0
    if options.check:
        print("FOUND " + json.dumps(CHECKS[options.check]()))
        return 0
    everything = 0
    for name in options.only or CHECKS:
        started = time.perf_counter()
        found = _found(name)
        seconds = time.perf_counter() - started
        words = (CHECKS[name].__doc__ or "").split(":")[0].rstrip(".")
        print(f"| `fuzz/oddities.py --only {name}` | {words} | {len(found)} | {seconds:.0f} s |")
        everything += len(found)
    print(f"findings: {everything}", flush=True)
    return 1 if everything else 0


if __name__ == "__main__":
    sys.exit(main())
