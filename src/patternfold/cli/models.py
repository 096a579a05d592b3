"""Model files and images, as commands need them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from patternfold._validation import near_path
from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console, Failure
from patternfold.cli.outputs import check_output

MOST_SHOWN = 64
"""Pictures on a preview."""

SHEET_DPI = 100


def read_model(path: Path) -> Any:
    """Read a model file with what was kept beside it."""
    use_cache()
    from patternfold.persistence import read_model_file

    if not path.exists():
        raise Failure(f"{path} does not exist.{near_path(path)}")
    if path.is_dir():
        raise Failure(f"{path} is a folder; name a model file.")
    return read_model_file(path)


def require_pattern(file: Any, path: Path) -> Any:
    """Refuse classifiers, which have one pattern per class."""
    if not hasattr(file.model, "pattern_"):
        raise Failure(
            f"{path} is a classifier or a mixture; this command needs a model made by 'learn'."
        )
    return file


def read_new_images(
    file: Any, source: Path | Sequence[Path], skip_unreadable: bool, console: Console
) -> Any:
    """Read images and prepare them as the model's training images were."""
    from patternfold.files import Preparation, read_images

    shape = file.model.image_shape_
    if file.preparation is None:
        preparation = Preparation(size=shape, background="none", normalise="none", fit_each=True)
        console.say("the model file does not say how its images were prepared: taken as they are")
    else:
        preparation = Preparation.from_dict(file.preparation)
    if preparation.size != shape:
        raise Failure(f"The model was prepared for {preparation.size} but learned {shape}.")
    found = read_images(source, preparation, skip_unreadable=skip_unreadable)
    tell(found, console)
    return found


def prepare_images(options: argparse.Namespace, console: Console) -> Any:
    """Read the images to learn from, prepared as the options say."""
    from patternfold.files import Preparation, read_images

    if options.preview is not None:
        require_png(options.preview)
        check_output(options.preview, options.force)
    preparation = Preparation(
        options.size,
        options.background,
        options.subtract_background,
        options.normalise,
        fit_each=options.fit_each,
    )
    found = read_images(options.source, preparation, skip_unreadable=options.skip_unreadable)
    tell(found, console)
    if options.preview is not None:
        write_preview(found, options.preview)
        console.say(f"  {options.preview} shows them as they are learned from")
    return found


def place_names(options: argparse.Namespace) -> str:
    """Return where the pictures come from, as people say it."""
    from patternfold.files.find import where_text

    return where_text(options.source)


def require_png(path: Path) -> None:
    """Refuse other endings."""
    if path.suffix.lower() != ".png":
        raise Failure(f"{path} must end in .png.")


def write_preview(found: Any, path: Path) -> None:
    """Draw prepared pictures, evenly spread over all, to a PNG file."""
    from matplotlib.figure import Figure

    from patternfold._writing import replacing
    from patternfold.show.pages.explorer import spread
    from patternfold.show.plotting import ContactSheetDisplay, contact_sheet

    chosen = spread(len(found), MOST_SHOWN)
    mask = None if found.mask is None else found.mask[chosen]
    images, names = found.images[chosen], [found.names[i] for i in chosen]
    height, width, _ = contact_sheet(images, mask).shape
    figure = Figure(figsize=(width / SHEET_DPI, height / SHEET_DPI))
    ContactSheetDisplay(images, mask, names).plot(figure.add_axes((0, 0, 1, 1)))
    with replacing(path) as file:
        figure.savefig(file, dpi=2 * SHEET_DPI, format="png")


def tell(found: Any, console: Console) -> None:
    """Say what was read and what was done to it."""
    height, width = found.preparation.size
    console.say(f"{len(found)} images of {width}×{height} pixels")
    for note in found.notes:
        console.say(f"  {note}")
    for remark in found.remarks:
        console.warn(remark)


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as text in aligned columns."""
    cells = [[str(v) for v in row] for row in (head, *rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
