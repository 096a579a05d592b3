"""The parser of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from patternfold._version import __version__
from patternfold.cli.arguments import Parser
from patternfold.cli.command_options import ACTIONS, CLASSIFY, COMMANDS
from patternfold.cli.configuration import apply_configuration


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
