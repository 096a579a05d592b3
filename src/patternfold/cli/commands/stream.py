"""``patternfold stream``: poses, classes or aligned images of a stack, block by block."""

from __future__ import annotations

import argparse
import time
from typing import Any

from patternfold.cli.clusters import cluster
from patternfold.cli.console import Console, Failure
from patternfold.cli.models import read_model
from patternfold.cli.outputs import check_output
from patternfold.cli.stacks import tell_notes

METHODS = {
    "poses": "project",
    "parameters": "transform",
    "distances": "distances",
    "aligned": "align",
    "classes": "predict",
    "probabilities": "predict_proba",
}
"""What may be written, and the method that returns it."""

EVERY = 2.0
"""Seconds between two lines of progress."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, compute and write, a block at a time."""
    output = options.output
    if not (options.resume and output.exists()):
        check_output(output, options.force, folder=output.suffix.lower() == ".zarr")
    model = read_model(options.model).model
    method = METHODS[options.what]
    if not hasattr(model, method):
        kind = "a classifier" if hasattr(model, "classes_") else "no classifier"
        raise Failure(f"{options.model} is {kind} and gives no {options.what}.")
    from patternfold import open_stack, stream

    stack = open_stack(str(options.stack))
    tell_notes(stack, console)
    tell = Teller(console)
    effort = {} if options.effort is None else {"effort": options.effort}
    how: dict[str, Any] = {"resume": options.resume, "callback": tell} | effort
    with cluster(options, console):
        done = stream(model, stack, output, method, **how)
    rate = tell.rate
    values = {"output": str(output), "images": done, "images_per_second": rate}
    console.result(values, f"{output}: {options.what} of {done} images, {rate:.0f} images/s")
    return 0


class Teller:
    """Says how many images are done, how fast, and how long it will take."""

    def __init__(self, console: Console):
        self.console, self.told, self.rate = console, time.perf_counter(), 0.0

    def __call__(self, done: int, total: int, rate: float) -> None:
        """Say it now and then."""
        self.rate = rate
        if time.perf_counter() - self.told > EVERY and done < total:
            self.told = time.perf_counter()
            left = (total - done) / rate
            self.console.say(f"  {done} of {total} images, {rate:.0f}/s, {left:.0f} s left")
