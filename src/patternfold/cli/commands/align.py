"""``patternfold align``: pictures in the pattern's frame, with the poses found."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patternfold._writing import replacing, replacing_folder, write_bytes, write_text
from patternfold.cli.console import Console, Failure
from patternfold.cli.judgement import judged, judgement, remarks_as_values
from patternfold.cli.models import read_model, read_new_images, require_pattern
from patternfold.cli.outputs import check_output
from patternfold.cli.picture_names import ending_of_source, picture_names

MEAN, TABLE = "mean.png", "poses.csv"
"""What a folder holds beside the pictures; a stack has them beside it, after its own name."""

BESIDE = (".tif", ".tiff", ".zarr")
"""Stacks that have these files beside them."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, project, resample, write."""
    write = _writer(options.output)
    _check_outputs(options)
    file = require_pattern(read_model(options.model), options.model)
    from patternfold.cli.aligned import Aligned
    from patternfold.cli.poses import pose_columns

    model = file.model
    found = read_new_images(file, options.source, options.skip_unreadable, console)
    evidence = model.examine(
        found.images, options.effort, found.mask, names=found.names, uncertainty=True
    )
    poses = evidence.found
    aligned = Aligned.of(
        found,
        poses.parameters,
        model.transformation_,
        options.expand,
        options.prepared,
        options.interpolation,
    )
    write(options.output, aligned, pose_columns(aligned.full, poses), poses)
    _conclude(options, aligned, evidence, console)
    return 0


def _writer(output: Path) -> Callable[..., None]:
    """Return what writes such an output."""
    known = {
        "": _write_folder,
        ".npz": _write_arrays,
        ".tif": _write_tiff,
        ".tiff": _write_tiff,
        ".zarr": _write_zarr,
    }
    ending = output.suffix.lower()
    if ending not in known:
        raise Failure(f"{output} must be a folder, or a stack ending in .tif, .zarr or .npz.")
    return known[ending]


def _check_outputs(options: argparse.Namespace) -> None:
    output, ending = options.output, options.output.suffix.lower()
    if ending in BESIDE:
        from patternfold.show.pictures import require_writer

        require_writer(ending)  # what is missing is said before the work, not after it
    check_output(output, options.force, folder=ending in ("", ".zarr"))
    sources = [place for place in options.source if place.exists()]
    if output.exists() and any(map(output.samefile, sources)):
        raise Failure(f"{output} holds the pictures to align; write to another place.")
    if ending in BESIDE:
        for name in (MEAN, TABLE):
            check_output(_beside(output, name), options.force)
    if ending == ".zarr" and output.exists():
        from patternfold.show.pictures import is_zarr

        if any(output.iterdir()) and not is_zarr(output):
            raise Failure(f"{output} is a folder that holds no zarr array; name another place.")


def _beside(output: Path, name: str) -> Path:
    """Where a file goes that belongs to a stack: ``x.tif`` has ``x_poses.csv``."""
    return output.with_name(f"{output.stem}_{name}")


def _poses_path(output: Path) -> str | None:
    """Where the table is; arrays hold its columns themselves."""
    if output.suffix == "":
        return str(output / TABLE)
    return None if output.suffix.lower() == ".npz" else str(_beside(output, TABLE))


def _write_folder(folder: Path, aligned: Any, columns: Any, poses: Any) -> None:
    from patternfold.show.pictures import PNG, encode_picture, ending_of
    from patternfold.show.png import to_grey

    found = aligned.found
    endings = [
        PNG if aligned.prepared else ending_of(kind, ending_of_source(name))
        for kind, name in zip(aligned.kinds, found.names, strict=True)
    ]
    files = picture_names(found.names, (MEAN, TABLE), endings)
    with replacing_folder(folder) as place:
        for i, (picture, file, ending) in enumerate(zip(aligned, files, endings, strict=True)):
            if aligned.prepared:
                picture = to_grey(picture, 0.0, float(found.images[i].max()))
            path = place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_picture(picture, ending))
        (place / MEAN).write_bytes(encode_picture(aligned.mean(), PNG))
        write_text(place / TABLE, _table(files, found, columns))


def _write_arrays(path: Path, aligned: Any, columns: Any, poses: Any) -> None:
    import numpy as np

    from patternfold.cli.aligned import in_one_kind
    from patternfold.files.kinds import common_kind

    found = aligned.found
    arrays: dict[str, Any] = {
        "aligned": np.stack(list(in_one_kind(aligned, common_kind(aligned.kinds)))),
        "parameters": poses.parameters,
        "parameter_names": np.array(poses.names),
        "distances": poses.distances,
        "names": np.array(found.names),
        **{name: column for name, column in columns.items() if name not in poses.names},
    }
    if aligned.full.transformation.is_affine:
        arrays["matrices"] = aligned.full.matrices()
    if found.labels is not None:
        arrays["labels"] = np.array(found.labels)
    with replacing(path) as file:
        np.savez(file, **arrays)


def _write_tiff(path: Path, aligned: Any, columns: Any, poses: Any) -> None:
    from patternfold.cli.aligned import in_one_kind
    from patternfold.files.kinds import common_kind
    from patternfold.show.pictures import write_tiff

    kind = common_kind(aligned.kinds)
    shape = (len(aligned.full), *aligned.full.frame.shape)
    with replacing(path) as file:
        write_tiff(file, in_one_kind(aligned, kind), shape, kind)
    _write_beside(path, aligned, columns)


def _write_zarr(path: Path, aligned: Any, columns: Any, poses: Any) -> None:
    from patternfold.cli.aligned import in_one_kind
    from patternfold.files.kinds import common_kind
    from patternfold.show.pictures import remove_zarr, write_zarr

    kind = common_kind(aligned.kinds)
    shape = (len(aligned.full), *aligned.full.frame.shape)
    with replacing_folder(path) as place:
        names = {"names": list(aligned.found.names)}
        write_zarr(place, in_one_kind(aligned, kind), shape, kind, names)
        remove_zarr(path)  # chunks of an older array must not stay among the new ones
    _write_beside(path, aligned, columns)


def _write_beside(path: Path, aligned: Any, columns: Any) -> None:
    """Write the mean and the table, in which pages of the stack are named."""
    from patternfold.show.pictures import PNG, encode_picture

    pages = [f"{path.name}[{i}]" for i in range(len(aligned.full))]
    write_bytes(_beside(path, MEAN), encode_picture(aligned.mean(), PNG))
    write_text(_beside(path, TABLE), _table(pages, aligned.found, columns))


def _table(files: Any, found: Any, columns: Any) -> str:
    from patternfold.cli.poses import pose_table

    return pose_table(files, found.names, columns)


def _conclude(options: argparse.Namespace, aligned: Any, evidence: Any, console: Console) -> None:
    from patternfold.estimators.remarks import remarks_on_new

    poses, remarks = evidence.found, remarks_on_new(evidence)
    height, width = aligned.full.frame.shape
    values = {
        "output": str(options.output),
        "images": len(aligned.found),
        "size": [width, height],
        "poses": _poses_path(options.output),
        "parameters": list(poses.names),
        "mean_distance": float(poses.distances.mean()),
        "error": evidence.error,
        **judgement(evidence),
        "remarks": remarks_as_values(remarks),
    }
    what = "prepared pictures" if options.prepared else "pictures"
    text = (
        f"{options.output}: {len(aligned.found)} {what} aligned in a frame of {width}×{height} "
        f"pixels, normalised error {evidence.error:.4f}\n{judged(evidence)}"
    )
    console.say_remarks(remarks)
    console.result(values, text)
