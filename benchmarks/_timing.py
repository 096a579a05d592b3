"""Helpers shared by the benchmarks: times that survive a busy machine, tables, verdicts."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any


def call_time(function: Callable[[], Any]) -> float:
    """Seconds of one call. The function must wait for its result, as all public ones do."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_time(function: Callable[[], Any], repeats: int) -> float:
    """Median seconds of ``repeats`` calls."""
    return statistics.median(call_time(function) for _ in range(repeats))


def compare(
    functions: Mapping[str, Callable[[], Any]],
    enough: Callable[[dict[str, float]], bool] = lambda times: True,
    rounds: int = 6,
    max_rounds: int = 30,
    round_seconds: float = 0.2,
) -> dict[str, float]:
    """Time several functions side by side: the best of some medians for each.

    The functions take turns, so that a slow spell of the machine meets all of them; the best
    median is what each does when left alone. Rounds go on, up to ``max_rounds``, until the times
    are ``enough``: other programs may be busy at first. Call each function once before, to
    compile it.
    """
    repeats = {
        name: max(3, min(50, int(round_seconds / max(call_time(function), 1e-6))))
        for name, function in functions.items()
    }
    best = dict.fromkeys(functions, float("inf"))
    for i in range(max_rounds):
        if i >= rounds and enough(best):
            break
        for name, function in functions.items():
            best[name] = min(best[name], median_time(function, repeats[name]))
    return best


class OtherLoad:
    """Context that measures how many cores other programs kept busy meanwhile (Linux only)."""

    cores: float = 0.0

    def __enter__(self) -> OtherLoad:
        """Start the clocks."""
        self._start = self._clocks()
        return self

    def __exit__(self, *_: object) -> None:
        """Read the clocks again."""
        wall, busy, own = (b - a for a, b in zip(self._start, self._clocks(), strict=True))
        self.cores = max(0.0, busy - own) / wall

    def __str__(self) -> str:
        """Say what it means for the times."""
        return f"Other programs kept {self.cores:.1f} cores busy during these measurements."

    @staticmethod
    def _clocks() -> tuple[float, float, float]:
        """Seconds of wall time, of work on all cores, and of work of this process."""
        stat = Path("/proc/stat")
        busy = 0.0
        if stat.exists():
            fields = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
            busy = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, time.process_time()


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: the first aligned left, the others right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())


def print_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as documents have it."""
    for row in (header, ["---"] * len(header), *rows):
        print(f"| {' | '.join(row)} |")


def versions(*packages: str) -> str:
    """Say the date, the machine and which versions of packages are here."""
    found = []
    for name in packages:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return f"{datetime.date.today()}, {machine()}: {', '.join(found)}"


def add_parts(parser: argparse.ArgumentParser, parts: Iterable[str]) -> None:
    """Let the command line name the parts of a benchmark to run."""
    parser.add_argument("parts", nargs="*", help=", ".join(parts))


def chosen_parts(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    parts: Iterable[str],
    default: Sequence[str] | None = None,
) -> list[str]:
    """Return the parts named on the command line, or the default, or all."""
    known = list(parts)
    if unknown := sorted(set(options.parts) - set(known)):
        parser.error(f"there is no part {unknown}; choose from {', '.join(known)}")
    return options.parts or list(default or known)


def verdict(passed: bool) -> str:
    """Return PASS or FAIL."""
    return "PASS" if passed else "FAIL"


def machine() -> str:
    """Describe the machine in a few words."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}"
