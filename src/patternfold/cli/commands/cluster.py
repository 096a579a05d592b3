"""``patternfold cluster``: pictures sorted into kinds, a model file and a table of groups."""

from __future__ import annotations

import argparse
import csv
import io
import time
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._writing import replacing_folder, write_text
from patternfold.cli.bounds import bounds_of, check_bounds, tell_bounds
from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console, Failure
from patternfold.cli.judgement import remarks_as_values
from patternfold.cli.models import place_names, prepare_images
from patternfold.cli.outputs import check_output
from patternfold.cli.picture_names import picture_names

OUTLIERS = "outliers"
"""Folder, and name in the table, of pictures that fit no group."""

TRIALS, FEW = 3, 2000
"""How often parts are learned where there are so few pictures: it takes little longer, and the best
of several is better where some parts begin badly."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, sort, write the model, the table and, where asked for, the pictures by group."""
    table = options.output.with_suffix(".csv")
    for path in (options.output, table):
        check_output(path, options.force)
    if options.folders is not None:
        check_output(options.folders, options.force, folder=True)
    use_cache()
    check_bounds(options)
    found = prepare_images(options, console)
    if len(found) < 2:
        raise Failure(f"{place_names(options)} holds one image; kinds are told among several.")
    started = time.perf_counter()
    model = _fit(options, found, console)
    seconds = time.perf_counter() - started
    _save(model, found, options)
    write_text(table, groups_table(model, found.names))
    if options.folders is not None:
        _write_folders(options.folders, model, found)
    _conclude(model, options, table, seconds, console)
    return 0


def group_name(label: int | np.integer) -> str:
    """Return what a group is called: ``group_1`` is the largest."""
    return OUTLIERS if label < 0 else f"group_{label + 1}"


def groups_table(model: Any, names: Any) -> str:
    """Return CSV: file, group, confidence, the next group, part, distance and pose."""
    found, text = model.assignment_, io.StringIO(newline="")
    writer = csv.writer(text)
    head = ["file", "group", "confidence", "next_group", "part", "distance"]
    writer.writerow([*head, *model.transformation_.parameters.names])
    for i, name in enumerate(names):
        numbers = [f"{v + 0.0:.8g}" for v in (found.distances[i], *found.parameters[i])]
        label, following = group_name(found.labels[i]), group_name(found.runner_up[i])
        confidence = f"{found.confidence[i]:.6g}"
        writer.writerow([name, label, confidence, following, int(found.parts[i]), *numbers])
    return text.getvalue()


def _fit(options: argparse.Namespace, found: Any, console: Console) -> Any:
    from patternfold import PatternMixture

    bounds = bounds_of(options, found)
    tell_bounds(bounds, options, console)
    atoms = {} if options.atoms == "auto" else {"n_atoms": options.atoms}
    console.say("learning parts (code is compiled on first use; Ctrl-C stops)")

    def tell(line: Any) -> None:
        console.say(f"  {line.stage}: misfit {line.error:.4f}")

    model = PatternMixture(
        options.patterns,
        **atoms,
        transformation=options.transformation,
        mother=options.mother,
        bounds=bounds,
        outliers=options.outliers,
        gain=options.gain,
        offset=options.offset,
        n_init=TRIALS if len(found) <= FEW else 1,
        random_state=options.seed,
        callback=tell,
    )
    model.fit(found.images, sample_mask=found.mask)
    return model.set_params(callback=None)


def _save(model: Any, found: Any, options: argparse.Namespace) -> None:
    """Write the model, with some images of each group and some between two for its pages."""
    from patternfold.persistence import Examples, save
    from patternfold.show.pages.kinds import shown_images

    images, examples = found.images, None
    if options.examples:
        chosen = shown_images(model, images.reshape(len(images), -1), options.examples)
        names = tuple(found.names[i] for i in chosen)
        examples = Examples(images[chosen], model.parameters_[chosen], names)
    preparation = found.preparation.as_dict()
    save(model, options.output, preparation=preparation, examples=examples)


def _write_folders(folder: Path, model: Any, found: Any) -> None:
    """Write the prepared pictures, a sub-folder for each group."""
    from patternfold.show.pictures import PNG, encode_picture
    from patternfold.show.png import to_grey

    with replacing_folder(folder) as place:
        for name, label, image in zip(
            picture_names(found.names), model.labels_, found.images, strict=True
        ):
            path = place / group_name(label) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_picture(to_grey(image, 0.0, float(image.max())), PNG))


def _conclude(
    model: Any, options: argparse.Namespace, table: Path, seconds: float, console: Console
) -> None:
    from patternfold.estimators.remarks import remarks_on_kinds

    remarks = remarks_on_kinds(model)
    sizes = {
        group_name(g): int(np.sum(model.labels_ == g))
        for g in range(-1, len(model.patterns_))
        if (model.labels_ == g).any()
    }
    values = {
        "model": str(options.output),
        "table": str(table),
        "images": len(model.labels_),
        "groups": sizes,
        "parts": len(model.parts_),
        "seconds": round(seconds, 3),
        "remarks": remarks_as_values(remarks),
    }
    said = ", ".join(f"{count} in {name}" for name, count in sizes.items())
    text = f"{options.output}: {len(model.labels_)} images in {seconds:.1f} s: {said}; {table}"
    page = options.output.with_suffix(".html")
    console.say_remarks(remarks)
    console.result(values, f"{text}\nnext: patternfold report {options.output} -o {page}")
