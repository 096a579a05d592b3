"""Faults while commands run: old files stay, no half files appear, the next run works.

    python fuzz/faults.py --cases 50 --jobs 8

Kinds: commands killed at random moments; files that may not grow, as on a full disk; a disk that is
full indeed, and one that is read-only, where this user may mount; folders that vanish; several
writers of one file, with a reader; a compilation cache with damaged files. `interrupts.py` does
the same with Ctrl-C. It ends with exit status 1 on a finding.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from damage import damaged  # noqa: E402
from fault_tools import Ended, Task, broken, digests, leftovers, run, tasks  # noqa: E402
from interrupts import pictures  # noqa: E402

from patternfold.persistence import ModelFileError, load  # noqa: E402

Found = list[str]
WRITERS = 4
SAVES = 40
"""Of each writer of the same file."""

WRITING = 0.02
"""Seconds after a file was begun within which a command is killed."""

SMALL_DISK = 16 * 1024
"""Bytes: less than any page or picture."""

REPEATABLE = ("learn", "resume", "export", "explore")
"""Commands that write the same bytes again; others tell times, or draw with other libraries."""

SAVE_SCRIPT = """
import sys
from patternfold.persistence import load, save
model = load(sys.argv[1])
for k in range(int(sys.argv[3])):
    model.stop_reason_ = f"{sys.argv[4]} {k} " + "x" * 100_000
    save(model, sys.argv[2])
"""


class Stage:
    """Pictures, a model, and what whole runs of all commands take."""

    def __init__(self, place: Path, names: list[str], jobs: int = 1):
        self.place, self.source, self.model = place, place / "x.npz", place / "model.ptm"
        X, y = pictures(np.random.default_rng(0), 4)
        np.savez(self.source, X=X.astype(np.float32), y=y)
        learned = tasks(place / "first", self.source, self.model)["learn"]
        self._require(run(learned))
        shutil.copy(learned.outputs[0], self.model)
        self.names = names
        with ThreadPoolExecutor(jobs) as pool:
            self.seconds = dict(zip(names, pool.map(self._whole, names), strict=True))

    def _whole(self, name: str) -> float:
        """Run a command to its end, twice as the first one compiles; return how long it takes."""
        for k in range(2):
            ended = run(self.tasks(f"whole{k}")[name])
            self._require(ended)
        return ended.seconds

    def tasks(self, where: str) -> dict[str, Task]:
        """All commands, writing to a folder of that name."""
        return tasks(self.place / where, self.source, self.model)

    def prepared(self, name: str, where: str) -> tuple[Task, dict[str, str]]:
        """A command whose outputs are there from an earlier run, and their digests."""
        task, done = self.tasks(where)[name], self.tasks("whole1")[name]
        for output, old in zip(task.outputs, done.outputs, strict=True):
            copy = shutil.copytree if old.is_dir() else shutil.copy
            copy(old, output)
        return task, digests(task.outputs)

    @staticmethod
    def _require(ended: Ended) -> None:
        if ended.code:
            raise SystemExit(f"a command fails by itself: {ended.said[-2000:]}")


def again(task: Task, before: dict[str, str] | None = None) -> Found:
    """Run once more without a fault: it works, gives the same, and nothing is left over."""
    ended = run(task)
    found = [f"the next run ended with {ended.code}: {ended.said[-500:]}"] if ended.code else []
    left = leftovers(task.outputs[0].parent)
    if before and task.name in REPEATABLE and digests(task.outputs) != before:
        found.append("the next run gave something else")
    return found + [f"left over after the next run: {left}"] * bool(left)


def kill(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found:
    """Kill -9, at any moment or while files are written, which takes milliseconds."""
    task, before = stage.prepared(name, where)
    if rng.random() < 0.5:
        run(task, kill_writing=float(rng.uniform(0, WRITING)))
    else:
        run(task, kill_after=float(rng.uniform(0.1, 1.0)) * stage.seconds[name])
    return broken(task.outputs, before) + again(task, before)


def full(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found:
    """No file may be longer than some share of the longest."""
    task, before = stage.prepared(name, where)
    sizes = [Path(file).stat().st_size for file in before]
    limit = int(rng.uniform(0, 1) * max(sizes))
    ended = run(task, largest_file=limit)
    found = broken(task.outputs, before) + _sentence(ended, f"files of at most {limit} bytes")
    return found + again(task, before)


def vanish(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found:
    """The folder of the outputs goes away while the command runs."""
    task, _ = stage.prepared(name, where)
    delay = float(rng.uniform(0.1, 1.0)) * stage.seconds[name]

    def remove() -> None:
        time.sleep(delay)
        shutil.rmtree(task.outputs[0].parent, ignore_errors=True)

    ended = run(task, meanwhile=remove)
    task.outputs[0].parent.mkdir(exist_ok=True)
    return _sentence(ended, "its folder vanished", maybe=True) + again(task)


def cache(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found:
    """Damage some of the files of compiled code: the result is the same."""
    task, before = stage.prepared(name, where)
    folder = stage.place / f"{where}-cache"
    environment = {"JAX_COMPILATION_CACHE_DIR": str(folder)}
    Stage._require(run(task, environment=environment))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        if rng.random() < 0.5:
            path.write_bytes(damaged(path.read_bytes(), rng))
    ended = run(task, environment=environment)
    found = [] if files else ["nothing was cached"]
    if ended.code:
        found.append(f"with a damaged cache: {ended.code}, {ended.said[-500:]}")
    return found + broken(task.outputs, before)


def read_only(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found | None:
    """Write to a folder that can't be written to."""
    return _on_disk(stage, name, where, "ro") if os.geteuid() == 0 else _closed(stage, name, where)


def small_disk(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found | None:
    """Write to a disk with less room than the output takes."""
    return _on_disk(stage, name, where, f"size={SMALL_DISK}")


def _closed(stage: Stage, name: str, where: str) -> Found:
    task, before = stage.prepared(name, where)
    folder = task.outputs[0].parent
    places = [path for path in (folder, *folder.rglob("*")) if path.is_dir()]
    for place in places:
        place.chmod(0o555)
    ended = run(task)
    for place in places:
        place.chmod(0o755)
    return _sentence(ended, "a closed folder") + broken(task.outputs, before) + again(task, before)


def _on_disk(stage: Stage, name: str, where: str, options: str) -> Found | None:
    """None where this user may not mount."""
    with mounted(stage.place / where, options) as done:
        if not done:
            return None
        task = stage.tasks(where)[name]
        ended = run(task)
        if ended.code == 0 and options != "ro":
            return broken(task.outputs, {})  # it did fit
        return _sentence(ended, options) + broken(task.outputs, {})


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[bool]:
    """Mount a file system in memory, or tell that this user may not."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = (
        shutil.which("mount") is not None
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(folder)], capture_output=True, check=False)


def _sentence(ended: Ended, what: str, maybe: bool = False) -> Found:
    """A command that can't write fails with a sentence; with ``maybe`` it may come through."""
    if ended.crashed:
        return [f"{what}: ended with {ended.code}: {ended.said[-1500:]}"]
    return [] if ended.code or maybe else [f"{what}: ended with 0"]


def writers(stage: Stage, name: str, where: str, rng: np.random.Generator) -> Found:
    """Several processes save to one file, some are killed, while it is loaded again and again."""
    folder = stage.place / where
    folder.mkdir()
    target = folder / "shared.ptm"
    shutil.copy(stage.model, target)
    command = [sys.executable, "-c", SAVE_SCRIPT, str(stage.model), str(target), str(SAVES)]
    running = [subprocess.Popen([*command, f"writer {k}"]) for k in range(WRITERS)]
    timers = [
        threading.Timer(float(rng.uniform(2, 8)), process.kill)
        for process in running[: WRITERS // 2]
    ]
    for timer in timers:
        timer.start()
    found: Found = []
    while any(process.poll() is None for process in running):
        try:
            load(target)
        except (ModelFileError, OSError) as error:
            found.append(f"a reader met {error}")
    for timer in timers:
        timer.cancel()
    load(target)
    subprocess.run([*command[:-1], "1", "last"], check=True)
    left = leftovers(folder)
    return found + [f"left over: {left}"] * bool(left)


Fault = Callable[[Stage, str, str, np.random.Generator], Found | None]
"""Returns findings, or None where it can't be tried."""

KINDS: dict[str, Fault] = {
    "kill": kill,
    "full": full,
    "vanish": vanish,
    "cache": cache,
    "read_only": read_only,
    "small_disk": small_disk,
    "writers": writers,
}
ONLY_LEARN = ("cache", "writers")
"""Kinds that are tried with one command."""


def main() -> int:
    """Try all kinds of faults, or those named, with all commands, or those named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10, help="of each kind and command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--commands", nargs="*", help="by default all that write")
    parser.add_argument(
        "--minutes", type=float, help="begin no case after so many, whole runs not counted"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        known = list(tasks(Path(place, "names"), Path(place), Path(place)))
        if unknown := set(options.commands or known) - set(known):
            parser.error(f"no such commands: {sorted(unknown)}; there are {', '.join(known)}")
        begun = time.perf_counter()
        stage = Stage(Path(place), options.commands or known, options.jobs)
        print(f"whole runs took {time.perf_counter() - begun:.0f} s", flush=True)
        results = tried(stage, options)
    for kind in options.kinds:
        tell(kind, options.seed, [each for each in results if each[0][0] == kind])
    findings = sum(len(found) for _, found in results)
    print(f"findings: {findings}")
    return 1 if findings else 0


Case = tuple[str, str, int]
"""A kind, a command and a number."""


def tried(stage: Stage, options: argparse.Namespace) -> list[tuple[Case, Found]]:
    """Try some cases at a time; return those that could be tried within the minutes."""
    cases: list[Case] = [
        (kind, name, case)
        for case in range(options.cases)
        for kind in options.kinds
        for name in stage.names
        if name == "learn" or kind not in ONLY_LEARN
    ]
    if options.minutes:  # some of all kinds
        np.random.default_rng(options.seed).shuffle(cases)
    begun = time.perf_counter()

    def one(chosen: Case) -> Found | None:
        kind, name, case = chosen
        if options.minutes and time.perf_counter() - begun > 60 * options.minutes:
            return None
        rng = np.random.default_rng([options.seed, case, *name.encode()])
        try:
            found = KINDS[kind](stage, name, f"{kind}-{name}-{case}", rng)
        except (Exception, SystemExit) as error:
            found = [f"{type(error).__name__}: {error}"]
        return found and [f"{kind} {name} case {case}: {text}" for text in found]

    with ThreadPoolExecutor(options.jobs) as pool:
        pairs = zip(cases, pool.map(one, cases), strict=True)
        return [(case, found) for case, found in pairs if found is not None]


def tell(kind: str, seed: int, done: list[tuple[Case, Found]]) -> None:
    """Print findings, and a line for the table of docs/reliability.md."""
    found = [text for _, result in done for text in result]
    counts = Counter(name for (_, name, _), _ in done)
    names = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    if not done:
        print(f"{kind}: not tried")
        return
    print("\n".join(found))
    print(
        f"| `fuzz/faults.py --kinds {kind}`, seed {seed} | {len(done)} cases: {names} | "
        f"{len(found)} |"
    )


if __name__ == "__main__":
    sys.exit(main())
