"""``patternfold learn``: from pictures to a model file."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from patternfold.cli.bounds import bounds_of, check_bounds, prior_of, tell_bounds
from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console, Failure
from patternfold.cli.judgement import judged, judgement, remarks_as_values
from patternfold.cli.learners import new_learner
from patternfold.cli.models import place_names, prepare_images
from patternfold.cli.outputs import check_output
from patternfold.cli.progress import Progress
from patternfold.cli.stacks import check_checkpoint, is_stack, learn
from patternfold.cli.values import atoms_text

INTERRUPTED = "interrupted"
"""Why learning stopped, as `patternfold.learning.state` says, which takes long to import."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, learn, write."""
    check_output(options.output, options.force)
    check_checkpoint(options)
    use_cache()
    if is_stack(options):
        return learn(options, console)
    if options.cluster is not None or options.workers is not None:
        raise Failure("--cluster and --workers are for stacks: name a .zarr file, or use --stream.")
    check_bounds(options)
    found = prepare_images(options, console)
    classes = len(set(found.labels or ()))
    if classes > 1:
        console.say(f"  {classes} classes taken together: one pattern is learned for all")
    if len(found) < 2:
        raise Failure(f"{place_names(options)} holds one image; a pattern is learned from several.")
    started = time.perf_counter()
    model, interrupted = _fit(options, found, console)
    seconds = time.perf_counter() - started
    _save(model, found, options)
    if options.checkpoint is not None and not interrupted:
        options.checkpoint.unlink(missing_ok=True)
    # Who has interrupted does not want to wait for a look at the images.
    looked = (None, []) if interrupted else _look(model, found)
    _conclude(model, *looked, options, seconds, console)
    return 1 if interrupted else 0


def _fit(options: argparse.Namespace, found: Any, console: Console) -> tuple[Any, bool]:
    progress = Progress(console, options.atoms)
    bounds = bounds_of(options, found)
    tell_bounds(bounds, options, console)
    model = new_learner(options, bounds, prior_of(options, found), progress)
    console.say(
        f"learning {atoms_text(options.atoms)} (code is compiled on first use; Ctrl-C stops)"
    )
    with warnings.catch_warnings(record=True) as caught, progress.listening():
        warnings.simplefilter("always")
        model.fit(found.images, sample_mask=found.mask, checkpoint=options.checkpoint)
    interrupted = model.stop_reason_ == INTERRUPTED
    for warning in caught:
        if not interrupted and issubclass(warning.category, UserWarning):
            console.warn(str(warning.message))
    model.callback = None
    return model, interrupted


def _look(model: Any, found: Any) -> tuple[Any, list[Any]]:
    """Look at the images again, unless Ctrl-C says not to wait for it: the model is written."""
    from patternfold.estimators.remarks import remarks_on

    try:
        evidence = model.examine(found.images, names=found.names, sample_mask=found.mask)
        return evidence, remarks_on(model, evidence)
    except KeyboardInterrupt:
        return None, []


def _save(model: Any, found: Any, options: argparse.Namespace) -> None:
    from patternfold.persistence import Examples, save
    from patternfold.show.pages.explorer import spread

    chosen = spread(len(found), options.examples)
    labels = () if found.labels is None else tuple(found.labels[i] for i in chosen)
    examples = Examples(
        found.images[chosen],
        model.parameters_[chosen],
        tuple(found.names[i] for i in chosen),
        labels,
    )
    save(
        model,
        options.output,
        preparation=found.preparation.as_dict(),
        examples=examples if options.examples else None,
    )


def _conclude(
    model: Any,
    evidence: Any,
    remarks: list[Any],
    options: argparse.Namespace,
    seconds: float,
    console: Console,
) -> None:
    error, interrupted = float(model.error_path_[-1]), model.stop_reason_ == INTERRUPTED
    values = {
        "model": str(options.output),
        "images": len(model.parameters_),
        "atoms": model.pattern_.n_atoms,
        "error": error,
        "error_path": [float(e) for e in model.error_path_],
        "seconds": round(seconds, 3),
        "stop_reason": model.stop_reason_,
        "interrupted": interrupted,
        "remarks": remarks_as_values(remarks),
    }
    head = "interrupted: " if interrupted else ""
    text = (
        f"{head}{options.output}: {model.pattern_.n_atoms} atoms from {len(model.parameters_)} "
        f"images in {seconds:.1f} s, normalised error {error:.4f}"
    )
    if options.atoms == "auto":
        text += f" ({model.stop_reason_})"
    if evidence is not None:
        values |= judgement(evidence)
        text += f"\n{judged(evidence)}"
    console.say_remarks(remarks)
    page = options.output.with_suffix(".html")
    console.result(values, f"{text}\nnext: patternfold explore {options.output} -o {page}")
