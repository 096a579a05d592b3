"""Commands and their options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from patternfold._version import __version__
from patternfold.cli import names
from patternfold.cli.arguments import Parser
from patternfold.cli.clusters import add_cluster
from patternfold.cli.configuration import apply_configuration
from patternfold.cli.values import atoms as number_of_atoms
from patternfold.cli.values import bound, count, positive, prior, share, size
from patternfold.experiments.registry import ENTRIES

SOURCE = (
    "folder of pictures (sub-folders are classes), multi-page TIFF, MRC stack, STAR file, .npy, "
    ".npz, a pattern such as '*.tif', or several of these"
)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, and the configuration file it names."""
    parser, commands = build()
    known, _ = _config_option().parse_known_args(arguments)
    if known.config is not None:
        apply_configuration(known.config, parser, commands)
    return parser.parse_args(arguments)


def build() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser and those of its commands, by name."""
    parser = Parser(
        prog="patternfold",
        description="Learn a visual pattern from unaligned pictures, and how each was transformed.",
        epilog="Exit codes: 0 success, 1 failure, 2 wrong usage. 'patternfold COMMAND --help' "
        "lists the options of a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"patternfold {__version__}")
    group = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands = {}
    for name, text, fill in COMMANDS:
        commands[name] = _add_command(group, name, text, fill)
    classify = group.add_parser("classify", help=CLASSIFY, description=_sentence(CLASSIFY))
    actions = classify.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text, fill in ACTIONS:
        commands[f"classify {name}"] = _add_command(actions, name, text, fill)
    return parser, commands


def _add_command(group: Any, name: str, text: str, fill: Any) -> argparse.ArgumentParser:
    command = group.add_parser(name, help=text, description=_sentence(text), allow_abbrev=False)
    fill(command)
    _add_common(command)
    return command


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _config_option() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", type=Path)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("on every command")
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")
    group.add_argument(
        "--quiet", action="store_true", help="no progress, no notes; remarks and warnings stay"
    )
    group.add_argument(
        "--config", type=Path, metavar="FILE", help="TOML file with options, in a table per command"
    )


def _add_output(parser: argparse.ArgumentParser, text: str, metavar: str = "FILE") -> None:
    parser.add_argument("-o", "--output", type=Path, required=True, metavar=metavar, help=text)
    parser.add_argument("--force", action="store_true", help="overwrite what is there")


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, nargs="+", metavar="FOLDER|FILE", help=SOURCE)


def _add_preparation(parser: argparse.ArgumentParser) -> None:
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
    _add_skip(group)


def _add_skip(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--skip-unreadable", action="store_true", help="leave out files that can't be read"
    )


def _fill_learn(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_output(parser, "model file to write, for example model.ptm")
    group = _add_learning(parser, None, "auto, or 20 with --paper")
    _add_name(group, "dictionary", names.dictionaries(), "how atoms are made", "atoms")
    _add_name(group, "solver", names.solvers(), "how atoms are found", None, "search")
    group.add_argument("--paper", action="store_true", help="the published algorithm, unimproved")
    _add_preparation(parser)
    _add_scaling(parser)


def _add_scaling(parser: argparse.ArgumentParser) -> None:
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


def _fill_stream(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    parser.add_argument(
        "stack",
        metavar="STACK",
        help=".npy, zarr, HDF5, TIFF, MRC or STAR file, file.h5::name, or a folder of pictures",
    )
    _add_output(parser, "poses.csv, poses.parquet, x.npy or x.zarr")
    parser.add_argument(
        "--what",
        choices=("poses", "parameters", "distances", "aligned", "classes", "probabilities"),
        default="poses",
        help="what to write (default: poses); aligned images go to .npy or .zarr",
    )
    known = names.efforts()
    parser.add_argument(
        "--effort",
        choices=known,
        metavar="LEVEL",
        help=f"how hard to search for poses: {', '.join(known)} (default: the model's)",
    )
    parser.add_argument("--resume", action="store_true", help="go on behind what is written")
    add_cluster(parser)


def _fill_cluster(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_output(parser, "model file to write, for example model.ptm; the table is beside it, .csv")
    group = _add_learning(parser, None, "8 for each part")
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
    _add_preparation(parser)


def _fill_train(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_output(parser, "model file to write, for example model.ptm")
    group = _add_learning(parser, 12)
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
        "--outliers", action="store_true", help="with jpats: tell images that fit no class"
    )
    group.add_argument(
        "--holdout", type=share, default=0.2, help="share of images to judge by (default: 0.2)"
    )
    _add_preparation(parser)


def _fill_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file of a classifier")
    _add_source(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="CSV table to write (default: print it)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_effort(parser, "quick")
    _add_skip(parser)


def _add_learning(
    parser: argparse.ArgumentParser, atoms: int | None, usual: str = ""
) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--atoms",
        type=number_of_atoms,
        default=atoms,
        help=f"atoms per pattern, or 'auto' for as many as help (default: {atoms or usual})",
    )
    _add_name(
        group,
        "transformation",
        names.Sums(names.transformations()),
        "how the pictures differ, also a sum such as similarity+bend",
        None,
        "similarity; with --paper the paper's, rotation-translation-scaling",
    )
    _add_name(group, "mother", names.mothers(), "shape of the atoms", "gaussian")
    group.add_argument(
        "--bound",
        type=bound,
        action="append",
        default=[],
        metavar="NAME=LOW:HIGH",
        help="interval of a parameter: theta=-30deg:30deg, tx=-5px:5px (pixels of the pictures as "
        "they are), s=0.8:1.2; may be repeated",
    )
    for name, what in (("gain", "contrast"), ("offset", "background level")):
        group.add_argument(
            f"--no-{name}",
            dest=name,
            action="store_false",
            help=f"all pictures have one {what}; by default each has its own",
        )
    _add_name(group, "loss", names.losses(), "what residuals cost", "squared")
    group.add_argument(
        "--prior",
        type=prior,
        action="append",
        default=[],
        metavar="NAME=MEAN:STD",
        help="which values of a parameter are likely: theta=0deg:10deg, s=1:0.1; may be repeated; "
        "or 'learned', from the pictures",
    )
    group.add_argument("--seed", type=count, default=0, help="of random numbers (default: 0)")
    group.add_argument(
        "--examples",
        type=count,
        default=36,
        help="training images to keep in the file for pictures (default: 36)",
    )
    return group


def _add_effort(parser: argparse.ArgumentParser, default: str) -> None:
    known = names.efforts()
    text = f"how hard to search for poses: {', '.join(known)} (default: {default})"
    parser.add_argument("--effort", choices=known, default=default, metavar="LEVEL", help=text)


def _add_name(
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


def _fill_align(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    _add_source(parser)
    _add_output(
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
    _add_effort(parser, "normal")
    _add_skip(parser)


def _fill_explore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    _add_output(parser, "page to write, for example page.html")
    parser.add_argument("--images", type=Path, metavar="FOLDER|FILE", help="show these images")
    parser.add_argument("--show", type=positive, default=36, help="how many of them (default: 36)")
    parser.add_argument("--title", help="heading of the page (default: the file's name)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    _add_skip(parser)


def _fill_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    _add_output(parser, "page to write, for example report.html")
    parser.add_argument("--images", type=Path, metavar="FOLDER|FILE", help="show their alignment")
    parser.add_argument("--title", help="heading of the page (default: the file's name)")
    _add_skip(parser)


def _fill_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model file")
    _add_output(parser, "pattern.svg, pattern.png, or pattern.csv with the atoms")
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
