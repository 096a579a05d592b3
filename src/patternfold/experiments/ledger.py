"""The ledger: statements of the paper beside what was measured, as pages of the documentation."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from patternfold._writing import write_text
from patternfold.experiments.base import Claim, Values
from patternfold.experiments.registry import ENTRIES
from patternfold.experiments.results import Record, all_results

PAGE, PAGES, PICTURES = "claims.md", Path("claims"), Path("images/experiments")
TRIED = Path("tried")
"""Folder of texts, by experiment, on the interpretations of the paper that were tried."""

HEAD = """# Statements of the paper

What Vural and Frossard state on their experiments, whether the experiments of
[this library](experiments.md) agree, and how its default does in the same respect. Each experiment
has a page with all figures and, where statements fail, with what was tried. Written by
`patternfold reproduce ledger` from the full runs.
"""


def write_ledger(
    results: Path, docs: Path, warn: Callable[[str], object] = lambda text: None
) -> tuple[Values, str]:
    """Write ``claims.md``, a page for each experiment, and pictures, from full runs in a folder.

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
    for folder in (docs / PICTURES, docs / PAGES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for record in records:
        write_text(docs / PAGES / f"{record.name}.md", _page(record, docs))
    page = docs / PAGE
    write_text(page, "\n".join([HEAD, _summary(records), _table(records), _contents(records)]))
    n_claims, held = _counts(records)
    values = {
        "page": str(page),
        "experiments": len(records),
        "statements": n_claims,
        "hold": held,
        "versions": _versions(records),
    }
    return values, f"{page}: {held} of {n_claims} statements hold, {len(records)} experiments"


def _counts(records: list[Record]) -> tuple[int, int]:
    claims = [claim for record in records for claim in record.claims]
    return len(claims), sum(claim.holds for claim in claims)


def _versions(records: list[Record]) -> list[str]:
    """From which versions the results are; one, if they are of one run."""
    return list(dict.fromkeys(_version(record) for record in records))


def _version(record: Record) -> str:
    commit = record.config.get("commit", "")
    number = record.config.get("versions", {}).get("patternfold", "unknown")
    return f"{number}, commit {commit}" if commit else number


def _summary(records: list[Record]) -> str:
    n_claims, held = _counts(records)
    versions = "; ".join(_versions(records))
    lines = [f"{held} of {n_claims} statements hold. From version {versions}.\n"]
    missing = [name for name in ENTRIES if name not in {record.name for record in records}]
    if missing:
        lines.append(f"Not run: {', '.join(missing)}.\n")
    return "\n".join(lines)


def _table(records: list[Record]) -> str:
    lines = ["| Experiment | The paper says | Holds | Our default |", "|---|---|---|---|"]
    for record in records:
        link = f"[{record.config['figure']}]({PAGES.as_posix()}/{record.name}.md)"
        where = f"{link}, stand-in" if record.stand_in else link
        lines += [
            _cells(where, claim.statement, _holds(claim), claim.ours or "–")
            for claim in record.claims
        ]
    return "\n".join([*lines, ""])


def _contents(records: list[Record]) -> str:
    names = [f"{PAGES.as_posix()}/{record.name}" for record in records]
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```", ""])


def _page(record: Record, docs: Path) -> str:
    """Return an experiment's statements first, then what was tried, then notes and pictures."""
    config = record.config
    steps = sum(config["seconds_of_steps"].values())
    lines = [
        f"# {config['title']}\n",
        f"{config['figure']} of the paper; `patternfold reproduce {record.name}`, "
        f"{steps:.0f} s of work, seed {config['seed']}, version {_version(record)}.\n",
    ]
    if record.stand_in:
        lines.append(f"**Stand-in**: {_inline(record.stand_in)}.\n")
    lines += ["| The paper says | Measured | Holds | Our default |", "|---|---|---|---|"]
    lines += [_row(claim) for claim in record.claims]
    return "\n".join([*lines, "", *_tried(record, docs), *_notes(record), *_pictures(record, docs)])


def _tried(record: Record, docs: Path) -> list[str]:
    if all(claim.holds for claim in record.claims):
        return []
    path = f"{TRIED.as_posix()}/{record.name}.md"
    known = f"```{{include}} ../{path}\n```\n"
    missing = f"Nothing is recorded of what was tried: there is no `{path}`.\n"
    return ["## What was tried\n", known if (docs / path).exists() else missing]


def _notes(record: Record) -> list[str]:
    return ["## Notes\n", *(f"- {_inline(note)}" for note in record.config["notes"]), ""]


def _pictures(record: Record, docs: Path) -> list[str]:
    lines = ["## Pictures\n"] if record.pictures else []
    for path, caption in record.pictures:
        name = f"{record.name}-{path.name}"
        shutil.copyfile(path, docs / PICTURES / name)
        lines.append(f"![{_inline(caption)}](../{PICTURES.as_posix()}/{name})\n")
        lines.append(f"*{_inline(caption)}*\n")
    return lines


def _row(claim: Claim) -> str:
    measured = f"{claim.measured}. {claim.reason}" if claim.reason else claim.measured
    return _cells(claim.statement, measured, _holds(claim), claim.ours or "–")


def _holds(claim: Claim) -> str:
    return "yes" if claim.holds else "**no**"


def _cells(*cells: str) -> str:
    return "| " + " | ".join(map(_inline, cells)) + " |"


def _inline(text: str) -> str:
    """Keep the text within a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
