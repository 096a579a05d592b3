"""``patternfold classify train``: from folders of pictures, one per class, to a model file."""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np

from patternfold.cli.bounds import bounds_of, check_bounds, prior_of, tell_bounds
from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console, Failure
from patternfold.cli.models import place_names, prepare_images, table
from patternfold.cli.outputs import check_output
from patternfold.cli.progress import Progress
from patternfold.cli.values import atoms_text
from patternfold.estimators.view_variants import check_variants
from patternfold.numerics.interrupts import check_interrupts, forget_interrupts


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, hold some images out, learn, judge, write."""
    check_output(options.output, options.force)
    if options.outliers and options.method != "jpats":
        raise Failure("--outliers needs --method jpats, which knows distances to manifolds.")
    if options.method == "jpats" and (options.mirror or options.variants != "auto"):
        raise Failure("--variants and --mirror need --method aligned-views; jpats learns patterns.")
    check_variants(options.variants, options.mirror)
    use_cache()
    check_bounds(options)
    found = prepare_images(options, console)
    labels = _labels(found, options)
    held = _held_out(labels, options.holdout, options.seed)
    started = time.perf_counter()
    bounds = bounds_of(options, found)
    tell_bounds(bounds, options, console)
    learn = partial(_fit, options, bounds, console, found, labels)
    model = learn(~held)
    values: dict[str, Any] = {
        "model": str(options.output),
        "classes": [str(c) for c in model.classes_],
    }
    said, interrupted = "", False
    if held.any():
        mask = None if found.mask is None else found.mask[held]
        judged, matrix = _judge(model, found.images[held], labels[held], mask)
        values |= judged
        said = (
            f"; {judged['accuracy']:.1%} of {judged['held_out']} held-out images right, by what "
            f"the others taught\n{matrix}"
        )
        console.say(f"{judged['accuracy']:.1%} of {judged['held_out']} held-out images right")
        model.calibrate(found.images[held], labels[held], sample_mask=mask)
        second = _learn_from_all(learn, model, len(held), console)
        interrupted = second is None
        if second is not None:
            model, held = second, np.zeros_like(held)
    check_interrupts()
    values |= {
        "images": int((~held).sum()),
        "seconds": round(time.perf_counter() - started, 3),
        "interrupted": interrupted,
    }
    _save(model, found, labels, held, options)
    text = f"{options.output}: {len(values['classes'])} classes from {values['images']} images"
    console.result(values, ("interrupted: " if interrupted else "") + text + said)
    return int(interrupted)


def _learn_from_all(learn: Any, first: Any, count: int, console: Console) -> Any:
    """Learn again with the images that were held out; probabilities stay as calibrated on them.

    None after Ctrl-C: there is the first model, which is written then.
    """
    console.say(f"learning again, from all {count} images (Ctrl-C keeps the first model)")
    try:
        model = learn(np.ones(count, bool))
        check_interrupts()
    except KeyboardInterrupt:
        forget_interrupts()
        return None
    model.temperature_ = first.temperature_
    return model


def _labels(found: Any, options: argparse.Namespace) -> np.ndarray:
    if found.labels is None or len(set(found.labels)) < 2:
        raise Failure(
            f"{place_names(options)} does not show two classes or more: put the pictures of each "
            "class in a folder of its own, or give an .npz file with labels y."
        )
    labels = np.array(found.labels)
    names, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        raise Failure(f"class {str(names[counts.argmin()])!r} has one image; give at least two.")
    return labels


def _held_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Choose a share of every class, and leave at least two images to learn from."""
    held = np.zeros(len(labels), bool)
    rng = np.random.default_rng(seed)
    for name in np.unique(labels):
        own = np.flatnonzero(labels == name)
        count = min(round(share * len(own)), len(own) - 2)
        held[rng.permutation(own)[:count]] = True
    return held


def _fit(
    options: argparse.Namespace,
    bounds: Any,
    console: Console,
    found: Any,
    labels: np.ndarray,
    some: np.ndarray,
) -> Any:
    from patternfold import JPATS, PATS, AlignedViewsClassifier

    progress = Progress(console, options.atoms)
    shared = _shared_options(options, bounds, prior_of(options, found))
    images, labels = found.images[some], labels[some]
    mask = None if found.mask is None else found.mask[some]
    _announce(options, len(set(labels)), console)
    with warnings.catch_warnings(), progress.listening():
        warnings.simplefilter("ignore")  # of learners that were interrupted
        if options.method == "jpats":
            threshold = "calibrate" if options.outliers else None
            model = JPATS(options.atoms, **shared, outlier_threshold=threshold, callback=progress)
            model.fit(images, labels, sample_mask=mask).set_params(callback=None)
        else:
            own = {"n_variants": options.variants, "mirror": options.mirror}
            model = AlignedViewsClassifier(options.atoms, **shared, **own)
            del shared["n_patterns"]
            learner = PATS(options.atoms, **shared, n_starts=1, n_exchanges=0, callback=progress)
            model.set_params(manifold_learner=learner)
            # The learner is only there to report; the other options say the same.
            model.fit(images, labels, sample_mask=mask).set_params(manifold_learner=None)
    if progress.interrupted:
        raise KeyboardInterrupt  # some classes would be half learned
    return model


def _shared_options(options: argparse.Namespace, bounds: Any, prior: Any) -> dict[str, Any]:
    """Return the options that every method has."""
    return {
        "transformation": options.transformation,
        "mother": options.mother,
        "bounds": bounds,
        "random_state": options.seed,
        "gain": options.gain,
        "offset": options.offset,
        "loss": options.loss,
        "prior": prior,
        "n_patterns": options.patterns,
    }


def _announce(options: argparse.Namespace, n_classes: int, console: Console) -> None:
    several = {1: "", "auto": ", as many patterns as help"}
    patterns = several.get(options.patterns, f", {options.patterns} patterns")
    learned = f"{atoms_text(options.atoms)}{patterns}"
    console.say(f"learning {learned} for each of {n_classes} classes")


def _judge(
    model: Any, images: np.ndarray, labels: np.ndarray, mask: np.ndarray | None
) -> tuple[dict[str, Any], str]:
    from sklearn.metrics import accuracy_score, confusion_matrix

    predicted = model.predict(images, sample_mask=mask)
    names = sorted({*labels.tolist(), *predicted.tolist()})
    matrix = confusion_matrix(labels, predicted, labels=names)
    values = {
        "held_out": len(labels),
        "accuracy": float(accuracy_score(labels, predicted)),
        "labels": names,
        "confusion": matrix.tolist(),
    }
    return values, table(["true \\ found", *names], zip(names, *matrix.T.tolist(), strict=True))


def _save(
    model: Any, found: Any, labels: np.ndarray, held: np.ndarray, options: argparse.Namespace
) -> None:
    from patternfold.learning.fitted import fitted_manifolds
    from patternfold.persistence import Examples, save
    from patternfold.show.pages.explorer import poses, spread

    order = np.flatnonzero(~held)[np.argsort(labels[~held], kind="stable")]
    chosen = order[spread(len(order), options.examples)] if options.examples else order[:0]
    examples = None
    if len(chosen):
        lam, named = poses(fitted_manifolds(model), found.images[chosen], labels[chosen].tolist())
        names = tuple(found.names[i] for i in chosen)
        examples = Examples(found.images[chosen], lam, names, tuple(named))
    save(model, options.output, preparation=found.preparation.as_dict(), examples=examples)
