"""The ledger: statements of the paper beside what was measured, as pages of the documentation."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from patternfold._writing import write_text
from patternfold.experiments.base import Claim, Values
from patternfold.experiments.registry import ENTRIES
from patternfold.experiments.results import Record, all_results

PAGE, PICTURES = "claims.md", Path("images/experiments")
HEAD = """# Statements of the paper

What Vural and Frossard state on their experiments, what the experiments of
[this library](experiments.md) measure, and how its default does in the same respect. This page is
written by `patternfold reproduce ledger` from the full runs.
"""


def write_ledger(
    results: Path, docs: Path, warn: Callable[[str], object] = lambda text: None
) -> tuple[Values, str]:
    """Write ``claims.md`` and its pictures to the documentation, from the full runs in a folder.

    Damaged results are left out, and ``warn`` is told so.

    Returns
    -------
    values : dict
        What was written.
    text : str
        The same for people.
    """
    records = [record for record in all_results(results, warn) if not record.config["quick"]]
    if not records:
        raise FileNotFoundError(
            f"{results} holds no full run of an experiment; begin with "
            f"'patternfold reproduce all -o {results}'."
        )
    pictures = docs / PICTURES
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    parts = [HEAD, _summary(records), *(_section(record, pictures) for record in records)]
    page = docs / PAGE
    write_text(page, "\n".join(parts))
    claims = [claim for record in records for claim in record.claims]
    held = sum(claim.holds for claim in claims)
    values = {
        "page": str(page),
        "experiments": len(records),
        "statements": len(claims),
        "hold": held,
    }
    return values, f"{page}: {held} of {len(claims)} statements hold, {len(records)} experiments"


def _summary(records: list[Record]) -> str:
    claims = [claim for record in records for claim in record.claims]
    held = sum(claim.holds for claim in claims)
    lines = [f"{held} of {len(claims)} statements hold.\n"]
    missing = [name for name in ENTRIES if name not in {record.name for record in records}]
    if missing:
        lines.append(f"Not run: {', '.join(missing)}.\n")
    failed = [claim for claim in claims if not claim.holds]
    if failed:
        lines.append("Those that do not:\n")
        lines += [f"- {_sentence(claim)}" for claim in failed]
        lines.append("")
    return "\n".join(lines)


def _sentence(claim: Claim) -> str:
    reason = f" {claim.reason}" if claim.reason else ""
    return f"{_inline(claim.statement)} — measured: {_inline(claim.measured)}.{_inline(reason)}"


def _section(record: Record, pictures: Path) -> str:
    config = record.config
    steps = sum(config["seconds_of_steps"].values())
    lines = [
        f"## {config['title']}\n",
        f"{config['figure']} of the paper; `patternfold reproduce {record.name}`, "
        f"{steps:.0f} s of work, seed {config['seed']}.\n",
    ]
    lines += [*(f"- {_inline(note)}" for note in config["notes"]), ""]
    for path, caption in record.pictures:
        name = f"{record.name}-{path.name}"
        shutil.copyfile(path, pictures / name)
        lines.append(f"![{_inline(caption)}]({PICTURES.as_posix()}/{name})\n")
        lines.append(f"*{_inline(caption)}*\n")
    lines += ["| The paper says | Measured | Holds | Our default |", "|---|---|---|---|"]
    lines += [_row(claim) for claim in record.claims]
    return "\n".join([*lines, ""])


def _row(claim: Claim) -> str:
    measured = f"{claim.measured}. {claim.reason}" if claim.reason else claim.measured
    holds = "yes" if claim.holds else "**no**"
    cells = (claim.statement, measured, holds, claim.ours or "–")
    return "| " + " | ".join(map(_inline, cells)) + " |"


def _inline(text: str) -> str:
    """Keep the text within a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
