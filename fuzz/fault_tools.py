"""Small runs of commands, with faults, and the judgement of what they leave behind."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from patternfold.persistence import load

LONGEST = 600.0
"""Seconds after which a command counts as hanging."""

LEARN = ["--transformation", "rotation-translation", "--atoms", "2", "--seed", "0", "--force"]

LIMITED = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs a command none of whose files may be longer: writing then fails, as on a full disk."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    said: str
    seconds: float

    @property
    def crashed(self) -> bool:
        """Whether it ended otherwise than with a sentence for the user."""
        return "Traceback" in self.said or self.code not in (0, 1)


@dataclass
class Task:
    """A command, where it writes, and what it needs."""

    name: str
    arguments: list[str]
    outputs: list[Path] = field(default_factory=list)
    """Files and folders it writes."""


def tasks(place: Path, source: Path, model: Path) -> dict[str, Task]:
    """Every command that writes, on small pictures, to a place of its own."""
    place.mkdir(parents=True, exist_ok=True)

    def task(name: str, arguments: list[object], *outputs: str) -> Task:
        words = [str(word) for word in arguments]
        return Task(name, words, [place / output for output in outputs])

    kept = ["--checkpoint", place / "steps", "--resume"]
    made = [
        task("learn", ["learn", source, "-o", place / "m.ptm", *LEARN], "m.ptm"),
        task("resume", ["learn", source, "-o", place / "s.ptm", *kept, *LEARN], "s.ptm"),
        task(
            "classify",
            ["classify", "train", source, "-o", place / "c.ptm", *LEARN],
            "c.ptm",
        ),
        task("export", ["export", model, "-o", place / "p.svg", "--force"], "p.svg"),
        task("explore", ["explore", model, "-o", place / "e.html", "--force"], "e.html"),
        task("report", ["report", model, "-o", place / "r.html", "--force"], "r.html"),
        task("align", ["align", model, source, "-o", place / "aligned", "--force"], "aligned"),
        task("reproduce", ["reproduce", "complexity", "--quick", "-o", place / "out"], "out"),
    ]
    return {each.name: each for each in made}


def run(
    task: Task,
    *,
    kill_after: float | None = None,
    kill_writing: float | None = None,
    largest_file: int | None = None,
    meanwhile: Callable[[], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command, with a fault.

    It is killed after some seconds, or that long after it has begun to write; or no file of it may
    be longer than so much.
    """
    command = [sys.executable, "-m", "patternfold", *task.arguments]
    if largest_file is not None:
        command = [sys.executable, "-c", LIMITED, str(largest_file), *command]
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    if meanwhile is not None:
        meanwhile()
    if kill_writing is not None:
        _wait_for_writing(task, process)
        kill_after = kill_writing
    try:
        said, _ = process.communicate(timeout=LONGEST if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    return Ended(process.returncode, said, time.perf_counter() - started)


def _wait_for_writing(task: Task, process: subprocess.Popen[str]) -> None:
    """Wait until a file has appeared under its temporary name, or the command has ended."""
    while process.poll() is None and not leftovers(task.outputs[0].parent):
        time.sleep(0.001)


def digests(outputs: list[Path]) -> dict[str, str]:
    """All files that a user sees, with the digests of their contents."""
    files = [file for output in outputs for file in _files(output)]
    return {str(file): sha256(file.read_bytes()).hexdigest() for file in files}


def _files(output: Path) -> list[Path]:
    if output.is_dir():
        inside = (path for path in sorted(output.rglob("*")) if path.is_file())
        return [path for path in inside if not _hidden(path.relative_to(output))]
    return [output] if output.exists() else []


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def broken(outputs: list[Path], before: Mapping[str, str]) -> list[str]:
    """Name the files that are neither as before nor whole."""
    after = digests(outputs)
    changed = [Path(name) for name, digest in after.items() if before.get(name) != digest]
    missing = [name for name in before if name not in after]
    return [f"{name} is gone" for name in missing] + [
        f"{path}: {reason}" for path in changed if (reason := _half(path)) is not None
    ]


def leftovers(place: Path) -> list[str]:
    """Hidden files beside the outputs."""
    return [str(path) for path in place.rglob("*") if path.name.startswith(".")]


def _half(path: Path) -> str | None:
    """Say what is wrong with a file of a kind that commands write; None for nothing."""
    try:
        _CHECKS.get(path.suffix, _not_empty)(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _not_empty(path: Path) -> None:
    if not path.stat().st_size:
        raise ValueError("it is empty")


def _picture(path: Path) -> None:
    with Image.open(path) as image:
        image.load()


def _page(path: Path) -> None:
    if not path.read_text().rstrip().endswith("</html>"):
        raise ValueError("its end is missing")


def _table(path: Path) -> None:
    if not path.read_bytes().endswith(b"\n"):
        raise ValueError("its end is missing")
    with open(path, newline="") as file:
        if len({len(row) for row in csv.reader(file)}) != 1:
            raise ValueError("its rows differ in length")


def _array(path: Path) -> None:
    found = np.load(path)
    if isinstance(found, np.lib.npyio.NpzFile):
        for name in found.files:
            found[name]


_CHECKS: dict[str, Callable[[Path], object]] = {
    ".ptm": load,
    ".svg": ElementTree.parse,
    ".html": _page,
    ".csv": _table,
    ".json": lambda path: json.loads(path.read_text()),
    ".npy": _array,
    ".npz": _array,
    **dict.fromkeys((".png", ".tif", ".jpg"), _picture),
}
