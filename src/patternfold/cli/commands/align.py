"""``patternfold align``: pictures in the pattern's frame, with the parameters found."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from patternfold._writing import replacing, replacing_folder
from patternfold.cli.console import Console, Failure
from patternfold.cli.models import read_model, read_new_images, require_pattern
from patternfold.cli.outputs import check_output
from patternfold.cli.picture_names import picture_names

MEAN, TABLE = "mean.png", "parameters.csv"
"""What a folder holds beside the pictures."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, project, resample, write."""
    as_folder = options.output.suffix == ""
    if not as_folder and options.output.suffix != ".npz":
        raise Failure(f"{options.output} must be a folder, or a file ending in .npz.")
    check_output(options.output, options.force, folder=as_folder)
    if options.output.exists() and options.output.samefile(options.source):
        raise Failure(f"{options.output} holds the pictures to align; write to another place.")
    file = require_pattern(read_model(options.model), options.model)
    from patternfold import align, project

    model = file.model
    found = read_new_images(file, options.source, options.skip_unreadable, console)
    poses = project(model.pattern_, found.images, model.transformation_, effort=options.effort)
    aligned = align(
        found.images, poses.parameters, model.transformation_, interpolation=options.interpolation
    )
    names = model.transformation_.parameters.names
    if as_folder:
        _write_folder(options.output, aligned, poses, found, names)
    else:
        _write_arrays(options.output, aligned, poses, found, names)
    spread = float(aligned.std(axis=0).sum() / max(found.images.std(axis=0).sum(), 1e-30))
    values = {
        "output": str(options.output),
        "images": len(found),
        "parameters": list(names),
        "mean_distance": float(poses.distances.mean()),
        "spread_after_over_before": spread,
    }
    text = (
        f"{options.output}: {len(found)} images aligned; their spread is {spread:.0%} of what it "
        f"was, mean distance to the pattern {poses.distances.mean():.4g}"
    )
    console.result(values, text)
    return 0


def _write_arrays(path: Path, aligned: Any, poses: Any, found: Any, names: Any) -> None:
    import numpy as np

    arrays: dict[str, Any] = {
        "aligned": aligned,
        "parameters": poses.parameters,
        "parameter_names": np.array(names),
        "distances": poses.distances,
        "names": np.array(found.names),
    }
    if found.labels is not None:
        arrays["labels"] = np.array(found.labels)
    with replacing(path) as file:
        np.savez(file, **arrays)


def _write_folder(folder: Path, aligned: Any, poses: Any, found: Any, names: Any) -> None:
    from patternfold.show.png import encode_png, to_grey

    files = picture_names(found.names, (MEAN, TABLE))
    with replacing_folder(folder) as place:
        for image, original, file in zip(aligned, found.images, files, strict=True):
            path = place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_png(to_grey(image, 0.0, float(original.max()))))
        (place / MEAN).write_bytes(encode_png(to_grey(aligned.mean(axis=0))))
        with open(place / TABLE, "w", newline="", encoding="utf-8") as table:
            writer = csv.writer(table)
            writer.writerow(["file", "source", *names, "distance"])
            for file, name, lam, distance in zip(
                files, found.names, poses.parameters, poses.distances, strict=True
            ):
                writer.writerow([file, name, *(f"{v:.9g}" for v in lam), f"{distance:.9g}"])
