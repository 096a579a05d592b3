"""What the fuzzers share: damage of bytes, the loop over cases, and the account of it."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Case = Callable[[np.random.Generator], tuple[bytes, str]]
"""Makes the content of a damaged file, and the ending of its name."""

Check = Callable[[Path], str]
"""Reads the file; returns what came of it in a word, and raises on what must not be."""

EXTREMES = (0, 1, 2**7 - 1, 2**8 - 1, 2**15 - 1, 2**16 - 1, 2**24, 2**31 - 1, 2**32 - 1)


class Finding(AssertionError):
    """Something that must not be, beside exceptions that are not documented."""


def options_of(description: str | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=20_000, help="files to try (default: 20,000)")
    parser.add_argument("--seed", type=int, default=0, help="of the damage (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="case to begin with, to see one again")
    parser.add_argument("--seconds", type=float, default=10.0, help="a case may take (default: 10)")
    parser.add_argument("--memory", type=float, default=4.0, help="GB in all (default: 4)")
    parser.add_argument("--keep", type=Path, help="folder for the files of findings")
    return parser.parse_args()


def peak_memory() -> float:
    """Largest resident set of this process so far, in GB.

    On Linux `ru_maxrss` would begin with that of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def fuzz(make: Case, check: Check, options: argparse.Namespace) -> int:
    """Run all cases, tell what came of them, and return the exit code."""
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    slowest = (0.0, -1)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in range(options.first, options.first + options.cases):
            # A generator for each case: any of them can be seen again on its own.
            content, ending = make(np.random.default_rng([options.seed, case]))
            path = Path(folder, f"case{ending}")
            path.write_bytes(content)
            # Of this process alone: others may keep it waiting.
            started = time.process_time()
            trouble = _outcome(check, path, outcomes)
            seconds = time.process_time() - started
            slowest = max(slowest, (seconds, case))
            if seconds > options.seconds:
                trouble = trouble or f"took {seconds:.1f} s"
            if trouble:
                findings.append(f"case {case}: {trouble}")
                _keep(options.keep, path, case)
            path.unlink(missing_ok=True)
    whole = time.perf_counter() - begun
    peak = peak_memory()
    if peak > options.memory:
        findings.append(f"memory: {peak:.2f} GB at the peak")
    print(f"cases: {options.cases}, seed {options.seed}, {options.cases / whole:.0f} a second")
    print("outcomes: " + ", ".join(f"{n} {word}" for word, n in outcomes.most_common()))
    print(f"peak memory: {peak:.2f} GB")
    print(f"slowest: {slowest[0]:.2f} s, case {slowest[1]}")
    print(f"findings: {len(findings)}")
    print("\n".join(findings[:20]))
    return 1 if findings else 0


def _outcome(check: Check, path: Path, outcomes: Counter[str]) -> str | None:
    try:
        outcomes[check(path)] += 1
    except Exception as error:
        outcomes[type(error).__name__] += 1
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
    return None


def _keep(folder: Path | None, path: Path, case: int) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{case}{path.suffix}").write_bytes(path.read_bytes())


# Damage


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some bits, bytes or numbers, or cut, double or exchange some stretch."""
    changed = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16]))):
        kind = _KINDS[int(rng.integers(len(_KINDS)))]
        kind(changed, rng)
    return bytes(changed)


def _place(content: bytearray, rng: np.random.Generator) -> int:
    """Some place, every other time near the beginning, where formats have their numbers."""
    most = len(content) if rng.random() < 0.5 else min(len(content), 128)
    return int(rng.integers(max(most, 1)))


def _flip_bit(content: bytearray, rng: np.random.Generator) -> None:
    if content:
        content[_place(content, rng)] ^= 1 << int(rng.integers(8))


def _set_byte(content: bytearray, rng: np.random.Generator) -> None:
    if content:
        content[_place(content, rng)] = int(rng.integers(256))


def _set_number(content: bytearray, rng: np.random.Generator) -> None:
    place, size = _place(content, rng), int(rng.choice([2, 4]))
    value = int(EXTREMES[int(rng.integers(len(EXTREMES)))]) % 256**size
    order = "little" if rng.random() < 0.5 else "big"
    content[place : place + size] = value.to_bytes(size, order)


def _cut(content: bytearray, rng: np.random.Generator) -> None:
    del content[_place(content, rng) :]


def _remove(content: bytearray, rng: np.random.Generator) -> None:
    place = _place(content, rng)
    del content[place : place + int(rng.integers(1, 64))]


def _double(content: bytearray, rng: np.random.Generator) -> None:
    place, size = _place(content, rng), int(rng.integers(1, 256))
    content[place:place] = content[place : place + size]


def _insert(content: bytearray, rng: np.random.Generator) -> None:
    place = _place(content, rng)
    content[place:place] = rng.bytes(int(rng.integers(1, 64)))


_KINDS = (_flip_bit, _set_byte, _set_number, _cut, _remove, _double, _insert)


# JSON

VALUES: list[object] = [
    *(None, True, False, -1, 0, 1, 2**15, 2**31, 2**53, 2**70, -0.5, 0.0, 1e-9, 1e-300, 1e6, 1e308),
    *("", "x", "../x", "gaussian", "affine", "x" * 5000, "\x1b[2J", "\ud800", "$\\frac$", "NaN"),
    *([], {}, [1], [[]], {"a": 1}, [None] * 5, [1e9, 1e9], [10**9, 10**9], [4096, 4096], [1, 1]),
    *([0.0] * 4, [1e6] * 4, [-1e6] * 5, ["psi"], ["theta"], list(range(1000))),
]


def edited(value: object, rng: np.random.Generator) -> object:
    """Return a copy of JSON values with one of them replaced, removed or nested."""
    places = list(_places(value))
    place = places[int(rng.integers(len(places)))]
    return _with(value, place, rng)


def _places(value: object, before: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inside in items:
        yield (*before, key)
        yield from _places(inside, (*before, key))


def _with(value: object, place: tuple[object, ...], rng: np.random.Generator) -> object:
    if not place:
        if rng.random() < 0.02:
            return _nested(int(rng.choice([5, 20, 200, 900])))
        return VALUES[int(rng.integers(len(VALUES)))]
    assert isinstance(value, (dict, list))
    copy = value.copy()
    if len(place) == 1 and isinstance(copy, dict) and rng.random() < 0.1:
        del copy[place[0]]
    else:
        copy[place[0]] = _with(value[place[0]], place[1:], rng)  # type: ignore[index]
    return copy


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def main(make: Case, check: Check, description: str | None) -> None:
    """Run a fuzzer as a script."""
    sys.exit(fuzz(make, check, options_of(description)))
