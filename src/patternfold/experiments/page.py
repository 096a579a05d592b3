"""One page, ``report.html``, on all experiments that were run."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patternfold.experiments.results import Record, all_results
from patternfold.show.pages.document import render_page

PAGE = "report.html"


def write_page(results: Path, warn: Callable[[str], object] = lambda text: None) -> Path:
    """Write the page on all results of a folder; ``warn`` is told of those left out."""
    records = all_results(results, warn)
    claims = [claim for record in records for claim in record.claims]
    held = sum(claim.holds for claim in claims)
    facts = [
        f"{len(records)} experiments",
        f"{held} of {len(claims)} statements of the paper hold",
    ]
    if any(record.config["quick"] for record in records):
        facts.append("some are quick looks at tiny instances")
    page = render_page(
        "experiments.html",
        title="The paper's experiments",
        facts=facts,
        records=[_section(record) for record in records],
    )
    return page.save(results / PAGE)


def _section(record: Record) -> dict[str, Any]:
    config = record.config
    return {
        "name": record.name,
        "title": config["title"],
        "subtitle": f"{config['figure']} of the paper. {_cost(config)}",
        "notes": [
            *([f"Stand-in: {record.stand_in}."] if record.stand_in else []),
            *config["notes"],
        ],
        "claims": record.claims,
        "pictures": [(_address(path), caption) for path, caption in record.pictures],
        "options": [(k.replace("_", " "), _show(v)) for k, v in config["configuration"].items()],
    }


def _cost(config: dict[str, Any]) -> str:
    steps = sum(config["seconds_of_steps"].values())
    kind = "Quick look" if config["quick"] else "Full run"
    return f"{kind}, seed {config['seed']}, {steps:.0f} s of work."


def _show(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _address(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
