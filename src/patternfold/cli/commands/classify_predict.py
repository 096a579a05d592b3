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
    given = (found.images, options.effort, found.mask)
    predicted = [str(label) for label in model.predict(*given)]
    classes = [str(c) for c in model.classes_]
    columns, numbers_of = ["file", "class"], []
    probabilities = _probabilities(model, found, options, console)
    if probabilities is not None:
        columns += [f"probability_{c}" for c in classes]
        numbers_of.append(probabilities)
    if hasattr(model, "project"):
        columns += [f"distance_{c}" for c in classes]
        numbers_of.append(model.distances(*given))
    rows = _rows(found.names, predicted, numbers_of)
    if options.output is not None:
        write_text(options.output, _as_csv(columns, rows))
    values = _values(found, predicted, classes, probabilities)
    said = ", ".join(f"{count} {name}" for name, count in values["counts"].items())
    text = f"{options.output}: {said}" if options.output else _as_csv(columns, rows).rstrip()
    if found.labels is not None and set(found.labels) <= set(classes):
        values["accuracy"] = float(np.mean(np.array(found.labels) == np.array(predicted)))
        console.say(f"{values['accuracy']:.1%} agree with their sub-folders")
    console.result(values, text)
    return 0


def _values(
    found: Any, predicted: list[str], classes: list[str], probabilities: np.ndarray | None
) -> dict[str, Any]:
    """Return the result as values."""
    names, numbers = np.unique(predicted, return_counts=True)
    values: dict[str, Any] = {
        "images": len(found),
        "counts": dict(zip(names.tolist(), numbers.tolist(), strict=True)),
        "predictions": dict(zip(found.names, predicted, strict=True)),
    }
    if probabilities is not None:
        values["probabilities"] = {
            name: dict(zip(classes, line, strict=True))
            for name, line in zip(found.names, probabilities.round(6).tolist(), strict=True)
        }
    return values


def _probabilities(
    model: Any, found: Any, options: argparse.Namespace, console: Console
) -> np.ndarray | None:
    """Return probabilities of the classes, if the model knows them, and say what they are."""
    if getattr(model, "temperature_", None) is None:
        console.say(
            "no probabilities: the model was not calibrated; 'classify train' with --holdout does"
        )
        return None
    console.say("probabilities: softmax of the decisions, calibrated on held-out images")
    return model.predict_proba(found.images, options.effort, found.mask)


def _rows(names: Any, predicted: list[str], numbers: list[np.ndarray]) -> list[list[str]]:
    table = np.concatenate([np.empty((len(predicted), 0)), *numbers], axis=1)
    return [
        [name, label, *(f"{value:.6g}" for value in line)]
        for name, label, line in zip(names, predicted, table, strict=True)
    ]


def _as_csv(columns: list[str], rows: list[list[str]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows([columns, *rows])
    return file.getvalue()
