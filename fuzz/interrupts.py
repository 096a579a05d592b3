"""Interrupt fits and commands at random moments: none may be swallowed, none may crash.

An interrupted fit either raises KeyboardInterrupt and leaves the estimator as it was, or returns a
usable model whose ``stop_reason_`` is "interrupted". An interrupted command ends with an exit code
other than 0. Anything else is a finding, and the script then ends with exit code 1.

    python fuzz/interrupts.py --cases 60 --seed 0 --jobs 8
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LATE = 0.2
"""A result that is told so few seconds after the interrupt was there before it."""

SHARE = 12
"""Interrupts of one process, or of one row of commands: shares run side by side."""

Finding = str | None
Outcome = tuple[Counter[str], list[str]]
"""How often what happened, and findings."""


class Share(NamedTuple):
    """Some interrupts of an estimator or a command."""

    name: str
    number: int
    cases: int
    seed: int

    def rng(self) -> np.random.Generator:
        """Of the moments."""
        return np.random.default_rng([self.seed, self.number])


def shares(name: str, cases: int, seed: int) -> list[Share]:
    """All interrupts of one name."""
    begins = range(0, cases, SHARE)
    return [Share(name, k, min(SHARE, cases - b), seed) for k, b in enumerate(begins)]


def pictures(rng: np.random.Generator, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Bars and dots at random poses, with their names."""
    from patternfold import Pattern, datasets

    shapes = {"bar": [0.0, 0.0, 0.0, 0.5, 0.1], "dot": [0.0, 0.1, 0.0, 0.2, 0.2]}
    made = [
        datasets.random_images(Pattern([1.0], [g]), n, rng, "rotation-translation", shape=(16, 16))
        for g in shapes.values()
    ]
    return np.concatenate([images for images, _ in made]), np.repeat(list(shapes), n)


def estimators() -> dict[str, Callable[[], Any]]:
    """Makers of every estimator, small."""
    from patternfold import JPATS, PATS, AlignedViews, AlignedViewsClassifier, PatternMixture

    family = {"transformation": "rotation-translation", "random_state": 0}
    learner = PATS(2, n_starts=2, **family)
    return {
        "pats": lambda: PATS(3, n_exchanges=1, **family),
        "jpats": lambda: JPATS(3, n_starts=2, n_tuning=3, **family),
        "views": lambda: AlignedViews(learner),
        "classifier": lambda: AlignedViewsClassifier(manifold_learner=learner),
        "mixture": lambda: PatternMixture(2, n_parts=3, n_atoms=2, **family),
    }


COMMANDS = ("learn", "classify", "cluster", "reproduce")


def interrupt_fit(make: Callable[[], Any], X: Any, y: Any, delay: float) -> tuple[str, Finding]:
    """Fit and interrupt after some seconds; return what happened, and what is wrong with it."""
    model, timer = make(), threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    returned = False
    try:
        timer.start()
        model.fit(X, y)
        returned = True
        timer.join()
        time.sleep(0.01)  # a signal that came after the end is raised here
    except KeyboardInterrupt:
        timer.join()
        if returned:
            return "came too late", None
        return "raised", _still_unfitted(model)
    except BaseException:
        timer.cancel()
        return "crashed", traceback.format_exc()
    reason = model.stop_reason_ if hasattr(model, "stop_reason_") else "no stop_reason_"
    if reason != "interrupted":
        return "swallowed", f"stop_reason_ is {reason!r}"
    try:
        use = model.predict if hasattr(model, "predict") else model.transform
        use(X[:2])
    except Exception:
        return "unusable", traceback.format_exc()
    return "kept", None


def _still_unfitted(model: Any) -> Finding:
    left = [name for name in vars(model) if name.endswith("_") and not name.startswith("__")]
    return f"interrupted before there was a model, but {left} are set" if left else None


def fits(share: Share) -> int:
    """Interrupt one estimator's fit many times in this process; print a line of JSON for each."""
    warnings.simplefilter("ignore")
    rng = share.rng()
    X, y = pictures(np.random.default_rng(0))
    make = estimators()[share.name]
    make().fit(X, y)  # compiles
    started = time.perf_counter()
    make().fit(X, y)
    duration = time.perf_counter() - started
    for case in range(share.cases):
        delay = float(rng.uniform(0, duration))
        outcome, finding = interrupt_fit(make, X, y, delay)
        line = {"case": case, "delay": delay, "outcome": outcome, "finding": finding}
        print(json.dumps(line), flush=True)
    return 0


def fuzz_estimator(share: Share) -> Outcome:
    """Interrupt an estimator in a process of its own, whose end is judged too."""
    command = [sys.executable, __file__, "--fits", *(str(word) for word in share)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    where = f"{share.name} share {share.number}"
    found = [f"{where} case {e['case']}: {e['finding']}" for e in lines if e["finding"]]
    if process.returncode or len(lines) < share.cases:
        found.append(f"{where}: ended with {process.returncode}: {process.stderr[-2000:]}")
    return Counter(e["outcome"] for e in lines), found


def arguments_of(name: str, folder: Path, run: int) -> list[str]:
    """Arguments of a small instance of a command; each run writes to a place of its own."""
    source, output = str(folder / "pictures.npz"), str(folder / f"{name}-{run}")
    shared = ["--transformation", "rotation-translation", "--atoms", "3"]
    if name == "learn":
        return ["learn", source, "-o", output + ".pfold", *shared]
    if name == "cluster":
        return ["cluster", source, "-o", output + ".pfold", "--patterns", "2", *shared]
    if name == "classify":
        return ["classify", "train", source, "-o", output + ".pfold", *shared]
    return ["reproduce", "complexity", "--quick", "-o", output]


def run_command(arguments: list[str], delay: float | None) -> tuple[int, float, str]:
    """Run a command, interrupted after some seconds.

    Returns its exit code, the seconds from the interrupt, or else the start, to its result, and its
    talk. Results go to standard output, talk to standard error.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as talk:
        process = subprocess.Popen(
            [sys.executable, "-m", "patternfold", *arguments],
            stdout=subprocess.PIPE,
            stderr=talk,
            text=True,
        )
        told: list[float] = []
        reader = threading.Thread(target=_note_lines, args=(process.stdout, told))
        reader.start()
        if delay is not None:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            started = time.perf_counter()
        process.wait()
        reader.join()
        talk.seek(0)
        return process.returncode, (told or [np.inf])[0] - started, talk.read()


def _note_lines(stream: Any, times: list[float]) -> None:
    for _ in stream:
        times.append(time.perf_counter())


def fuzz_command(share: Share) -> Outcome:
    """Interrupt a command, each time in a new process."""
    name, rng, outcomes, found = share.name, share.rng(), Counter[str](), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        X, y = pictures(np.random.default_rng(0))
        np.savez(folder / "pictures.npz", X=X, y=y)
        for first in (-2, -1):  # the first one compiles
            code, duration, words = run_command(arguments_of(name, folder, first), None)
            if code:
                return outcomes, [f"{name}: fails by itself: {words[-2000:]}"]
        for case in range(share.cases):
            delay = float(rng.uniform(0.3, duration))
            code, since, words = run_command(arguments_of(name, folder, case), delay)
            outcome = _judged(code, since)
            outcomes[outcome] += 1
            if outcome in ("swallowed", "crashed"):
                found.append(
                    f"{name} share {share.number} case {case}, {delay:.2f} s: exit {code}: "
                    f"{words[-2000:]}"
                )
    return outcomes, found


def _judged(code: int, since: float) -> str:
    if code == 0:
        return "came too late" if since < LATE else "swallowed"
    return "raised" if code in (1, 130, -signal.SIGINT) else "crashed"


def fuzz_all(names: list[str], options: argparse.Namespace) -> dict[str, Outcome]:
    """Run the shares of all names, some at a time; return what came of each name."""
    begun = time.perf_counter()
    results: dict[str, Outcome] = {name: (Counter(), []) for name in names}

    def one(share: Share) -> None:
        if options.minutes and time.perf_counter() - begun > 60 * options.minutes:
            return
        fuzz = fuzz_command if share.name in COMMANDS else fuzz_estimator
        outcomes, found = fuzz(share)
        results[share.name][0].update(outcomes)
        results[share.name][1].extend(found)

    rows = [shares(name, options.cases, options.seed) for name in names]
    # Some of all names first, should the time not suffice.
    work = sorted((share for row in rows for share in row), key=lambda share: share.number)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, work))
    return results


def main() -> int:
    """Fuzz all estimators and commands, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=60, help="interrupts of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default: 1)")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many")
    parser.add_argument("--only", nargs="*", help="names of estimators and commands")
    parser.add_argument("--fits", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    # Jobs of a shell in the background are deaf to it, and so would be what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.fits:
        return fits(Share(options.fits[0], *(int(word) for word in options.fits[1:])))
    results = fuzz_all(options.only or [*estimators(), *COMMANDS], options)
    for name, (outcomes, found) in results.items():
        told = ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items()))
        for text in found:
            print(text)
        print(
            f"| `fuzz/interrupts.py --only {name}`, seed {options.seed} | "
            f"{outcomes.total()} interrupts: {told or 'nothing ran'} | {len(found)} |"
        )
    findings = sum(len(found) for _, found in results.values())
    tried = sum(outcomes.total() for outcomes, _ in results.values())
    print(f"interrupts: {tried}, findings: {findings}", flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
