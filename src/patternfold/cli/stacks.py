"""``patternfold learn`` and ``stream`` on stacks: images as they are, read block by block."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

from patternfold.cli.bounds import check_bounds, given_bounds, prior_of
from patternfold.cli.clusters import cluster
from patternfold.cli.console import Console, Failure
from patternfold.cli.learners import new_learner
from patternfold.cli.progress import Progress
from patternfold.cli.values import atoms_text

ALWAYS = (".zarr", ".h5", ".hdf5")
"""Files that are read block by block in any case."""

INTERRUPTED = "interrupted"


def is_stack(options: argparse.Namespace) -> bool:
    """Whether images are read block by block: named so, or asked for."""
    places = options.source
    named = len(places) == 1 and Path(str(places[0]).split("::")[0]).suffix.lower() in ALWAYS
    if options.stream and len(places) != 1:
        raise Failure("--stream takes one file or folder.")
    return named or options.stream


def check_checkpoint(options: argparse.Namespace) -> None:
    """Refuse a checkpoint that nobody wants to go on from."""
    path = options.checkpoint
    if options.resume and path is None:
        raise Failure("--resume needs --checkpoint FILE, the one to go on from.")
    if path is None or not path.exists():
        return
    if options.force and not options.resume:
        path.unlink()
    elif not options.resume:
        raise Failure(f"{path} exists already: go on from it with --resume, or begin with --force.")


def learn(options: argparse.Namespace, console: Console) -> int:
    """Learn a pattern out of core and write it."""
    from patternfold.files import open_stack

    check_bounds(options)
    stack = open_stack(str(options.source[0]))
    height, width = stack.shape[1:]
    console.say(f"{len(stack)} images of {width}×{height} pixels, {stack.dtype}, read as needed")
    tell_notes(stack, console)
    started = time.perf_counter()
    with cluster(options, console):
        model = _fit(options, stack, console)
    seconds = time.perf_counter() - started
    _save(model, stack, options)
    if options.checkpoint is not None and model.stop_reason_ != INTERRUPTED:
        options.checkpoint.unlink(missing_ok=True)
    error = float(model.error_path_[-1])
    values = {
        "model": str(options.output),
        "images": len(stack),
        "atoms": model.pattern_.n_atoms,
        "error": error,
        "error_path": [float(e) for e in model.error_path_],
        "seconds": round(seconds, 3),
        "stop_reason": model.stop_reason_,
        "interrupted": model.stop_reason_ == INTERRUPTED,
    }
    text = (
        f"{options.output}: {model.pattern_.n_atoms} atoms from {len(stack)} images in "
        f"{seconds:.1f} s, normalised error {error:.4f}\n"
        f"next: patternfold stream {options.output} {options.source[0]} -o poses.csv"
    )
    console.result(values, text)
    return int(values["interrupted"])


def tell_notes(stack: Any, console: Console) -> None:
    """Say what was left out."""
    for note in stack.notes:
        console.say(f"  {note}")


def _fit(options: argparse.Namespace, stack: Any, console: Console) -> Any:
    progress = Progress(console, options.atoms)
    model = new_learner(options, given_bounds(options) or None, prior_of(options), progress)
    console.say(f"learning {atoms_text(options.atoms)} (code is compiled on first use)")
    with warnings.catch_warnings(), progress.listening():
        warnings.simplefilter("ignore", UserWarning)  # an interruption is told by the result
        model.fit(stack, checkpoint=options.checkpoint)
    model.callback = None
    return model


def _save(model: Any, stack: Any, options: argparse.Namespace) -> None:
    import numpy as np

    from patternfold._validation import as_floats
    from patternfold.persistence import Examples, save
    from patternfold.show.pages.explorer import spread

    chosen = np.sort(spread(len(stack), options.examples)).astype(int)
    examples = None
    if len(chosen):
        names = tuple(f"{Path(stack.name).name}[{i}]" for i in chosen)
        images = as_floats("images", stack.take(chosen)).astype(np.float32)
        examples = Examples(images, model.parameters_[chosen], names, ())
    save(model, options.output, examples=examples)
