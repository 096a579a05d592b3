"""What the fuzzers share: the loop over cases, in one process or several, and their options."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from account import Account, memory
from guard import Hang, Watch, alarmed


class Made(NamedTuple):
    """A damaged file."""

    content: bytes
    ending: str
    """Of its name."""
    mode: str = "bytes"
    """What was done to it, in a word."""


Case = Callable[[np.random.Generator], Made]
Check = Callable[[Path], str]
"""Reads the file; returns what came of it in a word, and raises on what must not be."""

LONGEST = 5.0
"""Seconds that reading a file may take."""

MOST_MEMORY = 0.5
"""GB of the resident set, with the libraries, that reading model files may take."""


class Finding(AssertionError):
    """Something that must not be, beside exceptions that are not documented."""


def options_of(description: str | None, memory: float) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=20_000, help="files to try (default: 20,000)")
    parser.add_argument("--seed", type=int, default=0, help="of the damage (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="case to begin with, to see one again")
    parser.add_argument("--minutes", type=float, help="end after so many, whatever is left")
    parser.add_argument("--processes", type=int, default=1, help="that share the cases")
    parser.add_argument(
        "--seconds", type=float, default=LONGEST, help=f"a case may take (default: {LONGEST:g})"
    )
    parser.add_argument(
        "--memory", type=float, default=memory, help=f"GB in all (default: {memory:g})"
    )
    parser.add_argument("--keep", type=Path, help="folder for the files of findings")
    parser.add_argument("--account", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def fuzz(make: Case, check: Check, options: argparse.Namespace) -> Account:
    """Run all cases in this process."""
    account, watch = Account(), Watch()
    begun = time.perf_counter()
    before, _ = memory()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in range(options.first, options.first + options.cases):
            if options.minutes and time.perf_counter() - begun > 60 * options.minutes:
                break
            # A generator for each case: any of them can be seen again on its own.
            made = make(np.random.default_rng([options.seed, case]))
            path = Path(folder, f"case{made.ending}")
            path.write_bytes(made.content)
            trouble = _try(check, path, case, account, watch, options)
            if trouble:
                account.findings.append(f"case {case} ({made.mode}): {trouble}")
                _keep(options.keep, path, case)
            account.cases += 1
            account.modes[made.mode] += 1
            path.unlink(missing_ok=True)
    account.seconds = time.perf_counter() - begun
    account.peak = memory()[1]
    account.growth = max(account.peak - before, 0.0)
    if account.peak > options.memory:
        account.findings.append(f"memory: {account.peak:.2f} GB at the peak")
    return account


def _try(
    check: Check,
    path: Path,
    case: int,
    account: Account,
    watch: Watch,
    options: argparse.Namespace,
) -> str | None:
    # Of this process alone: others may keep it waiting.
    started = time.process_time()
    trouble = None
    try:
        with alarmed(2 * options.seconds):
            watch.on = True
            account.outcomes[check(path)] += 1
    except Hang:
        trouble = "did not end"
    except Exception as error:
        account.outcomes[type(error).__name__] += 1
        place = traceback.extract_tb(error.__traceback__)[-1]
        trouble = f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
    finally:
        watch.on = False
    seconds = time.process_time() - started
    account.slowest = max(account.slowest, (seconds, case))
    if watch.seen:
        trouble, watch.seen = trouble or "; ".join(watch.seen[:3]), []
    return trouble or (f"took {seconds:.1f} s" if seconds > options.seconds else None)


def _keep(folder: Path | None, path: Path, case: int) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{case}{path.suffix}").write_bytes(path.read_bytes())


def _share(options: argparse.Namespace) -> Account:
    """Run the cases in several processes of this script."""
    share, total, running = -(-options.cases // options.processes), Account(), []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(options.processes):
            path, left = Path(folder, f"{k}.json"), options.cases - k * share
            command = [sys.executable, *sys.argv, "--processes", "1", "--account", str(path)]
            command += ["--first", str(options.first + k * share), "--cases", str(min(share, left))]
            if left > 0:
                running.append((path, subprocess.Popen(command, stdout=subprocess.DEVNULL)))
        for path, process in running:
            code = process.wait()
            if path.exists():
                total.add(Account.read(path))
            else:
                total.findings.append(f"a process ended with {code}")
    return total


def run(
    make: Case,
    check: Check,
    description: str | None,
    memory: float,
    afterwards: Callable[[], list[str]] = list,
) -> int:
    """Run a fuzzer as a script, tell what came of it and return the exit code.

    ``afterwards`` is called in each process when its memory has been read; it returns findings.
    """
    options = options_of(description, memory)
    if options.processes > 1:
        account = _share(options)
    else:
        account = fuzz(make, check, options)
        account.findings += afterwards()
    if options.account:
        account.save(options.account)
    else:
        account.tell(f"fuzz/{Path(sys.argv[0]).name}", options.seed, options.processes)
    return 1 if account.findings else 0
