"""``patternfold classify predict``: the class of every picture."""

from __future__ import annotations

import argparse
import csv
import io
from typing import Any

import numpy as np

from patternfold._writing import write_text
from patternfold.cli.console import Console, Failure
from patternfold.cli.models import read_model, read_new_images
from patternfold.cli.outputs import check_output


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, classify, write a table."""
    if options.output is not None:
        check_output(options.output, options.force)
    file = read_model(options.model)
    model = file.model
    if not hasattr(model, "predict"):
        raise Failure(f"{options.model} is no classifier; make one with 'classify train'.")
    found = read_new_images(file, options.source, options.skip_unreadable, console)
    predicted = [str(label) for label in model.predict(found.images, options.effort)]
    distances = None
    if hasattr(model, "project"):
        distances = model.distances(found.images, options.effort)
    rows = _rows(found.names, predicted, distances)
    classes = [str(c) for c in model.classes_]
    columns = ["file", "class", *(f"distance_{c}" for c in classes if distances is not None)]
    if options.output is not None:
        write_text(options.output, _as_csv(columns, rows))
    names, numbers = np.unique(predicted, return_counts=True)
    counts = dict(zip(names.tolist(), numbers.tolist(), strict=True))
    values: dict[str, Any] = {
        "images": len(found),
        "counts": counts,
        "predictions": dict(zip(found.names, predicted, strict=True)),
    }
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    text = f"{options.output}: {said}" if options.output else _as_csv(columns, rows).rstrip()
    if found.labels is not None and set(found.labels) <= set(classes):
        values["accuracy"] = float(np.mean(np.array(found.labels) == np.array(predicted)))
        console.say(f"{values['accuracy']:.1%} agree with their sub-folders")
    console.result(values, text)
    return 0


def _rows(names: Any, predicted: list[str], distances: np.ndarray | None) -> list[list[str]]:
    rows = [[name, label] for name, label in zip(names, predicted, strict=True)]
    if distances is not None:
        rows = [
            [*row, *(f"{v:.6g}" for v in line)] for row, line in zip(rows, distances, strict=True)
        ]
    return rows


def _as_csv(columns: list[str], rows: list[list[str]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([columns, *rows])
    return file.getvalue()
