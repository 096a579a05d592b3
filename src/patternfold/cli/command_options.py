"""Commands and the options of each."""

from __future__ import annotations

import argparse
from pathlib import Path

from patternfold.cli import names
from patternfold.cli.clusters import add_cluster
from patternfold.cli.options import (
    add_effort,
    add_learning,
    add_name,
    add_output,
    add_preparation,
    add_scaling,
    add_skip,
    add_source,
)
from patternfold.cli.values import atoms as number_of_atoms
from patternfold.cli.values import count, count_or_auto, positive, share
from patternfold.experiments.registry import ENTRIES


def _fill_learn(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_output(parser, "model file to write, for example model.ptm")
    group = add_learning(parser, None, "auto, or 20 with --paper")
    add_name(group, "dictionary", names.dictionaries(), "how atoms are made", "atoms")
    add_name(group, "solver", names.solvers(), "how atoms are found", None, "search")
    group.add_argument("--paper", action="store_true", help="the published algorithm, unimproved")
    add_preparation(parser)
    add_scaling(parser)


def _fill_cluster(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_output(parser, "model file to write, for example model.ptm; the table is beside it, .csv")
    group = add_learning(parser, None, "8 for each part")
    group.add_argument(
        "--patterns",
        type=number_of_atoms,
        default="auto",
        metavar="N|auto",
        help="number of groups (default: auto, as many as hardly share pictures)",
    )
    group.add_argument("--outliers", action="store_true", help="tell pictures that fit no group")
    group.add_argument(
        "--folders",
        type=Path,
        metavar="FOLDER",
        help="also write the prepared pictures there, a sub-folder for each group",
    )
    add_preparation(parser)


def _fill_train(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_output(parser, "model file to write, for example model.ptm")
    group = add_learning(parser, 12)
    group.add_argument(
        "--method",
        choices=("aligned-views", "jpats"),
        default="aligned-views",
        help="a support vector machine on aligned images (default), or the nearest manifold",
    )
    group.add_argument(
        "--patterns",
        type=number_of_atoms,
        default=1,
        metavar="N|auto",
        help="patterns per class, or 'auto' for as many as help (default: 1)",
    )
    group.add_argument(
        "--variants",
        type=count_or_auto,
        default="auto",
        metavar="N|auto",
        help="with aligned-views: slightly deformed copies of each image to learn from as well "
        "(default: auto, up to 24)",
    )
    group.add_argument(
        "--mirror",
        action="store_true",
        help="with aligned-views: things and their mirror images are of one class",
    )
    group.add_argument(
        "--outliers", action="store_true", help="with jpats: tell images that fit no class"
    )
    group.add_argument(
        "--holdout", type=share, default=0.2, help="share of images to judge by (default: 0.2)"
    )
    add_preparation(parser)


def _fill_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file of a classifier")
    add_source(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="CSV table to write (default: print it)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite what is there")
    add_effort(parser, "quick")
    add_skip(parser)


def _fill_align(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    add_source(parser)
    add_output(
        parser,
        "folder for the pictures, poses.csv and mean.png; or a stack: x.tif, x.zarr or x.npz",
        "PLACE",
    )
    parser.add_argument(
        "--expand", action="store_true", help="enlarge the frame so that nothing is cut off"
    )
    parser.add_argument(
        "--prepared",
        action="store_true",
        help="align the prepared pictures, as the model sees them (default: the originals)",
    )
    parser.add_argument(
        "--interpolation", choices=("linear", "cubic"), default="linear", help="default: linear"
    )
    add_effort(parser, "normal")
    add_skip(parser)


def _fill_stream(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument(
        "stack",
        metavar="STACK",
        help=".npy, zarr, HDF5, TIFF, MRC or STAR file, file.h5::name, or a folder of pictures",
    )
    add_output(parser, "poses.csv, poses.parquet, x.npy or x.zarr")
    parser.add_argument(
        "--what",
        choices=("poses", "parameters", "distances", "aligned", "classes", "probabilities"),
        default="poses",
        help="what to write (default: poses); aligned images go to .npy or .zarr",
    )
    add_effort(parser, None)
    parser.add_argument("--resume", action="store_true", help="go on behind what is written")
    add_cluster(parser)


def _fill_explore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    add_output(parser, "page to write, for example page.html")
    parser.add_argument("--images", type=Path, metavar="FOLDER|FILE", help="show these images")
    parser.add_argument("--show", type=positive, default=36, help="how many of them (default: 36)")
    parser.add_argument("--title", help="heading of the page (default: the file's name)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    add_skip(parser)


def _fill_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    add_output(parser, "page to write, for example report.html")
    parser.add_argument("--images", type=Path, metavar="FOLDER|FILE", help="show their alignment")
    parser.add_argument("--title", help="heading of the page (default: the file's name)")
    add_skip(parser)


def _fill_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    add_output(parser, "pattern.svg, pattern.png, or pattern.csv with the atoms")
    parser.add_argument(
        "--size", type=positive, default=512, help="pixels of the longer side (default: 512)"
    )
    parser.add_argument(
        "--background", choices=("dark", "light"), help="default: as that of the pictures was"
    )


def _fill_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, nargs="?", help="model file; without one, the versions")


def _fill_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("demo-output"), help="folder to write to"
    )
    parser.add_argument("--force", action="store_true", help="overwrite what is there")
    parser.add_argument("--digit", type=int, default=5, choices=range(10), help="default: 5")
    parser.add_argument("--images", type=positive, default=30, help="how many (default: 30)")
    parser.add_argument("--atoms", type=positive, default=20, help="how many (default: 20)")
    parser.add_argument("--no-kinds", action="store_true", help="do not sort a pile of digits")
    parser.add_argument("--seed", type=count, default=0)


def _fill_reproduce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        metavar="NAME|all|list|ledger",
        choices=(*ENTRIES, "all", "list", "ledger"),
        help="an experiment, all of them, a list of them, or the table of the paper's statements",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder of results (default: results, or results/quick with --quick)",
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="image sets (default: PATTERNFOLD_DATA)"
    )
    parser.add_argument("--quick", action="store_true", help="a quick look at tiny instances")
    parser.add_argument("--seed", type=count, default=0, help="of random numbers (default: 0)")
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="processes that do steps side by side (default: the cores at hand, 1 with --quick)",
    )
    parser.add_argument(
        "--force", action="store_true", help="begin anew, without steps of earlier runs"
    )
    parser.add_argument(
        "--docs",
        type=Path,
        default=Path("docs"),
        metavar="FOLDER",
        help="with ledger: documentation to write to (default: docs)",
    )


CLASSIFY = "train a classifier on folders of pictures, and use it"
ACTIONS = (
    ("train", "learn classes from folders of pictures, one per class", _fill_train),
    ("predict", "tell the class of every picture", _fill_predict),
)
COMMANDS = (
    ("learn", "learn a pattern from a folder of pictures or a stack", _fill_learn),
    ("cluster", "sort pictures into kinds, without labels", _fill_cluster),
    ("align", "bring pictures into the frame of a learned pattern", _fill_align),
    ("stream", "write poses, classes or aligned images of a stack block by block", _fill_stream),
    ("explore", "make a page in which a model can be explored", _fill_explore),
    ("report", "make a page with options, remarks, curves and pictures", _fill_report),
    ("export", "write the pattern as SVG, PNG or CSV", _fill_export),
    ("info", "tell what a model file holds, or the versions in use", _fill_info),
    ("demo", "learn a handwritten digit, and sort a pile of digits", _fill_demo),
    ("reproduce", "run the paper's experiments, or go on with them", _fill_reproduce),
)
