"""The folder of an experiment's results: pictures, metrics.csv, config.json, claims.json."""

from __future__ import annotations

import csv
import io
import json
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._version import __version__
from patternfold._writing import replacing, write_text
from patternfold.experiments.base import Claim, Outcome, Values
from patternfold.experiments.context import STEPS, Context
from patternfold.experiments.origin import commit
from patternfold.experiments.registry import ENTRIES, load_experiment
from patternfold.experiments.workers import Pool, cores

CONFIG, CLAIMS, METRICS = "config.json", "claims.json", "metrics.csv"


@dataclass(frozen=True)
class Record:
    """What a folder of results holds."""

    name: str
    folder: Path
    config: Values
    claims: list[Claim]

    @property
    def stand_in(self) -> str:
        """What stands in for images that were not there; empty if nothing does."""
        return self.config.get("stand_in", "")

    @property
    def pictures(self) -> list[tuple[Path, str]]:
        """Picture files with their captions."""
        return [(self.folder / f"{k}.png", text) for k, text in self.config["pictures"].items()]


def run_experiment(
    name: str,
    results: Path,
    *,
    data: Path | None = None,
    seed: int = 0,
    quick: bool = False,
    force: bool = False,
    say: Callable[[str], object] = lambda text: None,
    pool: Pool | None = None,
) -> Record:
    """Run an experiment, or finish one that was interrupted, and write its results.

    Parameters
    ----------
    name : str
        Of the experiment, one of `ENTRIES`.
    results : path
        Folder of all results; this one's are written to ``results/NAME``.
    data : path, optional
        Folder with image sets; by default the variable PATTERNFOLD_DATA.
    seed : int, default=0
        Of all random numbers.
    quick : bool, default=False
        A quick look at a tiny instance instead of the full run.
    force : bool, default=False
        Do all steps anew instead of taking them from an earlier run.
    say : callable, optional
        Told how far the run has come.
    pool : Pool, optional
        Processes that do the steps side by side; without them steps are done in turn.
    """
    experiment = load_experiment(name)
    configuration = experiment.quick if quick else experiment.full
    context = Context(name, configuration, results, data, seed, quick, say, pool)
    if force:
        shutil.rmtree(results / name / STEPS, ignore_errors=True)
    with pool.turn if pool else nullcontext():
        started = time.perf_counter()
        outcome = experiment.run(context)
        return write_results(context, outcome, time.perf_counter() - started)


def write_results(context: Context, outcome: Outcome, seconds: float) -> Record:
    """Write what an experiment found."""
    folder = context.results / context.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in outcome.pictures.items():
        with replacing(folder / f"{name}.png") as file:
            picture.figure.savefig(file, format="png", dpi=120, facecolor="white")
    _remove_others(folder, outcome.pictures)
    _write_metrics(folder / METRICS, outcome.metrics)
    _write_json(folder / CLAIMS, [asdict(claim) for claim in outcome.claims])
    _write_json(folder / CONFIG, _config(context, outcome, seconds))
    return read_results(folder)


def _remove_others(folder: Path, pictures: Iterable[str]) -> None:
    """Remove pictures of an earlier run, once the new ones are there."""
    for old in folder.glob("*.png"):
        if old.stem not in pictures:
            old.unlink()


class DamagedResults(ValueError):
    """Results that can't be read; the message names the file and the remedy."""


def read_results(folder: Path) -> Record:
    """Read what was written.

    Raises
    ------
    DamagedResults
        If a file is missing or damaged.
    """
    config = _read_json(folder / CONFIG, dict)
    missing = {"name", "title", "figure", "quick", "seed", "configuration", "notes", "pictures"}
    missing = (missing | {"seconds_of_steps"}) - set(config)
    if missing:
        raise _damaged(folder / CONFIG, f"it lacks {', '.join(sorted(missing))}")
    try:
        claims = [Claim(**claim) for claim in _read_json(folder / CLAIMS, list)]
    except TypeError as error:
        raise _damaged(folder / CLAIMS, error) from error
    record = Record(config["name"], folder, config, claims)
    for path, _ in record.pictures:
        if not path.is_file():
            raise _damaged(path, "it is missing")
    return record


def all_results(results: Path, warn: Callable[[str], object] = lambda text: None) -> list[Record]:
    """Read the results of all experiments that were run, in the paper's order.

    Damaged ones are left out, and ``warn`` is told so.
    """
    records = []
    for folder in (results / name for name in ENTRIES):
        if not (folder / CONFIG).exists():
            continue
        try:
            records.append(read_results(folder))
        except DamagedResults as error:
            warn(str(error))
    return records


def _read_json(path: Path, kind: type) -> Any:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(value, kind):
        raise _damaged(path, f"it holds a {type(value).__name__}")
    return value


def _damaged(path: Path, reason: object) -> DamagedResults:
    return DamagedResults(
        f"{path} is damaged ({reason}); write it anew with 'patternfold reproduce "
        f"{path.parent.name}', which takes finished steps from the earlier run."
    )


def _config(context: Context, outcome: Outcome, seconds: float) -> Values:
    entry = ENTRIES[context.name]
    return {
        **entry._asdict(),
        "quick": context.quick,
        "seed": context.seed,
        "configuration": asdict(context.configuration),
        "stand_in": outcome.stand_in,
        "notes": list(outcome.notes),
        "pictures": {name: picture.caption for name, picture in outcome.pictures.items()},
        "versions": _versions(),
        "commit": commit(),
        "machine": {"system": platform.system(), "type": platform.machine(), "cores": cores()},
        "seconds": round(seconds, 2),
        "seconds_of_steps": context.seconds,
    }


def _versions() -> dict[str, str]:
    names = ("jax", "numpy", "scipy", "scikit-learn", "matplotlib")
    own = {"patternfold": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in names}


def _write_metrics(path: Path, rows: Sequence[Values]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, file.getvalue())


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
    write_text(path, text + "\n")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
