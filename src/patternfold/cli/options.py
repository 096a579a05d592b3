"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

from patternfold.cli import names
from patternfold.cli.clusters import add_cluster
from patternfold.cli.values import atoms as number_of_atoms
from patternfold.cli.values import bound, count, prior, size

SOURCE = (
    "folder of pictures (sub-folders are classes), multi-page TIFF, MRC stack, STAR file, .npy, "
    ".npz, a pattern such as '*.tif', or several of these"
)


def add_output(parser: argparse.ArgumentParser, text: str, metavar: str = "FILE") -> None:
    """Where to write, and whether over what is there."""
    parser.add_argument("-o", "--output", type=Path, required=True, metavar=metavar, help=text)
    parser.add_argument("--force", action="store_true", help="overwrite what is there")


def add_source(parser: argparse.ArgumentParser) -> None:
    """The pictures to read."""
    parser.add_argument("source", type=Path, nargs="+", metavar="FOLDER|FILE", help=SOURCE)


def add_preparation(parser: argparse.ArgumentParser) -> None:
    """How pictures become images of one shape."""
    group = parser.add_argument_group("preparation of the pictures")
    group.add_argument(
        "--size",
        type=size,
        metavar="N|WxH",
        help="lay all on a canvas of this size (default: chosen, up to 512, or 128 where sizes "
        "differ)",
    )
    group.add_argument(
        "--fit-each",
        action="store_true",
        help="magnify each picture by itself (default: all alike, so that sizes can be compared)",
    )
    group.add_argument(
        "--background",
        choices=("auto", "dark", "light", "none"),
        default="auto",
        help="what things lie on: it is subtracted, and with light the rest inverted; none takes "
        "pictures as they are (default: auto)",
    )
    group.add_argument(
        "--subtract-background",
        action="store_true",
        help="cut off what is darker than the background",
    )
    group.add_argument(
        "--normalise",
        choices=("unit", "range", "none"),
        default="unit",
        help="each image to unit norm (default), or to greatest value 1",
    )
    group.add_argument(
        "--preview",
        type=Path,
        metavar="FILE.png",
        help="draw the prepared pictures, with what does not count hatched",
    )
    add_skip(group)


def add_skip(parser: argparse._ActionsContainer) -> None:
    """Whether what can't be read is left out."""
    parser.add_argument(
        "--skip-unreadable", action="store_true", help="leave out files that can't be read"
    )


def add_learning(
    parser: argparse.ArgumentParser, atoms: int | None, usual: str = ""
) -> argparse._ArgumentGroup:
    """What is learned; ``usual`` is what no number of atoms means."""
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--atoms",
        type=number_of_atoms,
        default=atoms,
        help=f"atoms per pattern, or 'auto' for as many as help (default: {atoms or usual})",
    )
    add_name(
        group,
        "transformation",
        names.Sums(names.transformations()),
        "how the pictures differ, also a sum such as similarity+bend",
        None,
        "similarity; with --paper the paper's, rotation-translation-scaling",
    )
    add_name(group, "mother", names.mothers(), "shape of the atoms", "gaussian")
    _add_bound(group)
    _add_light(group)
    add_name(group, "loss", names.losses(), "what residuals cost", "squared")
    _add_prior(group)
    group.add_argument("--seed", type=count, default=0, help="of random numbers (default: 0)")
    group.add_argument(
        "--examples",
        type=count,
        default=36,
        help="training images to keep in the file for pictures (default: 36)",
    )
    return group


def _add_bound(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--bound",
        type=bound,
        action="append",
        default=[],
        metavar="NAME=LOW:HIGH",
        help="interval of a parameter: theta=-30deg:30deg, tx=-5px:5px (pixels of the pictures as "
        "they are), s=0.8:1.2; may be repeated",
    )


def _add_light(group: argparse._ArgumentGroup) -> None:
    for name, what in (("gain", "contrast"), ("offset", "background level")):
        group.add_argument(
            f"--no-{name}",
            dest=name,
            action="store_false",
            help=f"all pictures have one {what}; by default each has its own",
        )


def _add_prior(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--prior",
        type=prior,
        action="append",
        default=[],
        metavar="NAME=MEAN:STD",
        help="which values of a parameter are likely: theta=0deg:10deg, s=1:0.1; may be repeated; "
        "or 'learned', from the pictures",
    )


def add_name(
    group: argparse._ArgumentGroup,
    option: str,
    known: tuple[str, ...],
    text: str,
    default: str | None,
    usual: str | None = None,
) -> None:
    """Add an option that names a component; ``usual`` is what no default means."""
    group.add_argument(
        f"--{option}",
        choices=known,
        default=default,
        metavar="NAME",
        help=f"{text}: {', '.join(known)} (default: {default or usual})",
    )


def add_effort(parser: argparse.ArgumentParser, default: str | None) -> None:
    """How hard to search; no default is that of the model."""
    known = names.efforts()
    usual = default or "the model's"
    text = f"how hard to search for poses: {', '.join(known)} (default: {usual})"
    parser.add_argument("--effort", choices=known, default=default, metavar="LEVEL", help=text)


def add_scaling(parser: argparse.ArgumentParser) -> None:
    """Learning from more images than fit into memory, or for long."""
    group = parser.add_argument_group("many images")
    group.add_argument(
        "--stream",
        action="store_true",
        help="read the images of one file or folder block by block and take them as they are; so "
        "are zarr and HDF5 files in any case",
    )
    group.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="keep every step here while learning"
    )
    group.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    add_cluster(group)
