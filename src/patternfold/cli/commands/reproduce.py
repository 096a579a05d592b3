"""``patternfold reproduce``: the paper's experiments."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console, Failure
from patternfold.experiments.registry import ENTRIES

if TYPE_CHECKING:
    from patternfold.experiments.results import Record


def run(options: argparse.Namespace, console: Console) -> int:
    """List the experiments, run them, or write the ledger of their results."""
    if options.name == "list":
        return _list(console)
    results = options.output or Path("results/quick" if options.quick else "results")
    if options.name == "ledger":
        return _ledger(results, options.docs, console)
    names = list(ENTRIES) if options.name == "all" else [options.name]
    use_cache()
    try:
        return _reproduce(names, results, options, console)
    except KeyboardInterrupt:
        return console.fail(
            f"Interrupted; the steps that were finished are kept in {results}, and the same "
            "command goes on from there."
        )


def _list(console: Console) -> int:
    width = max(len(name) for name in ENTRIES)
    lines = [f"{e.name:<{width}}  {e.figure:<9}  {e.title}" for e in ENTRIES.values()]
    values = {"experiments": [entry._asdict() for entry in ENTRIES.values()]}
    console.result(values, "\n".join(lines))
    return 0


def _ledger(results: Path, docs: Path, console: Console) -> int:
    from patternfold.experiments.ledger import write_ledger

    if not docs.is_dir():
        raise Failure(f"--docs {docs} is not a folder; name that of the documentation.")
    values, text = write_ledger(results, docs, console.warn)
    console.result(values, text)
    return 0


def _reproduce(
    names: list[str], results: Path, options: argparse.Namespace, console: Console
) -> int:
    from patternfold.experiments.page import write_page

    done, skipped = _run(names, results, options, console)
    page = write_page(results, console.warn)
    values = {"results": str(results), "page": str(page), "experiments": done, "skipped": skipped}
    console.result(values, "\n".join([*map(_line, done), *_ending(page, skipped)]))
    return 1 if skipped else 0


def _run(
    names: list[str], results: Path, options: argparse.Namespace, console: Console
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Run experiments; return what is said of each in their order, and what others lack."""
    from patternfold.datasets import MissingData
    from patternfold.experiments.together import run_together
    from patternfold.experiments.workers import cores

    jobs = options.jobs or (1 if options.quick else cores())
    started, done, skipped = time.perf_counter(), {}, {}
    given = {key: getattr(options, key) for key in ("data", "seed", "quick", "force")}
    for name, found in run_together(names, results, jobs, **given, say=console.say):
        if isinstance(found, MissingData):
            if len(names) == 1:
                raise found
            skipped[name] = str(found)
            console.warn(f"{name} is skipped: {found}")
        else:
            done[name] = _told(found, time.perf_counter() - started)
            console.say(_line(done[name]))
    return [done[name] for name in names if name in done], skipped


def _told(record: Record, seconds: float) -> dict[str, Any]:
    return {
        "name": record.name,
        "folder": str(record.folder),
        "statements": len(record.claims),
        "hold": sum(claim.holds for claim in record.claims),
        "stand_in": record.stand_in,
        "seconds": round(seconds, 2),
    }


def _line(done: dict[str, Any]) -> str:
    return (
        f"{done['name']}: {done['hold']} of {done['statements']} statements hold, "
        f"done after {done['seconds']:.0f} s, {done['folder']}"
        + (f"; stand-in: {done['stand_in']}" if done["stand_in"] else "")
    )


def _ending(page: Path, skipped: dict[str, str]) -> list[str]:
    lines = [f"{page}: open it in a browser"]
    if skipped:
        lines.append(f"skipped for want of data: {', '.join(skipped)}")
    return lines
