"""Options from a TOML file: a table per command, keys as on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from patternfold.cli.arguments import near


def apply_configuration(
    path: Path, parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser]
) -> None:
    """Make the file's values the defaults of each command; the command line still wins."""
    import tomllib

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        parser.error(f"the configuration file {path} can't be read: {error}")
    classify = tables.pop("classify", {})
    nested = classify if isinstance(classify, dict) else {"": classify}
    for name, table in {**tables, **{f"classify {k}": v for k, v in nested.items()}}.items():
        if name not in commands or not isinstance(table, dict):
            parser.error(
                f"{path}: [{name}] is not a table of a command.{near(name, commands)} "
                f"Known: {', '.join(commands)}"
            )
        for key, value in table.items():
            _set_default(commands[name], f"{path}: [{name}] {key}", key, value)


def _set_default(parser: argparse.ArgumentParser, where: str, key: str, value: Any) -> None:
    named = f"--{key.replace('_', '-')}"
    actions = [action for action in parser._actions if named in action.option_strings]
    if not actions or named in ("--help", "--config"):
        known = [s.removeprefix("--") for a in parser._actions for s in a.option_strings]
        parser.error(f"{where} is not an option.{near(key, known)}")
    (action,) = actions
    action.default = _convert(parser, where, action, value)
    action.required = False


def _convert(
    parser: argparse.ArgumentParser, where: str, action: argparse.Action, value: Any
) -> Any:
    """Read a value as argparse would read its text."""

    def refuse(expected: str) -> NoReturn:
        parser.error(f"{where} = {value!r} must be {expected}")

    if isinstance(action, argparse._StoreTrueAction | argparse._StoreFalseAction):
        # A switch that is set gives its constant.
        return action.const is value if isinstance(value, bool) else refuse("true or false")
    if isinstance(action, argparse._AppendAction):
        values = value if isinstance(value, list) else [value]
        return [_convert_one(parser, where, action, str(v)) for v in values]
    if isinstance(value, (bool, list, dict)):
        refuse("a single value")
    return _convert_one(parser, where, action, str(value))


def _convert_one(
    parser: argparse.ArgumentParser, where: str, action: argparse.Action, text: str
) -> Any:
    try:
        value = action.type(text) if callable(action.type) else text
    except (argparse.ArgumentTypeError, ValueError, TypeError) as error:
        parser.error(f"{where} = {text!r} can't be used: {error}")
    if action.choices is not None and value not in action.choices:
        known = ", ".join(str(choice) for choice in action.choices)
        hint = near(text, [str(choice) for choice in action.choices])
        parser.error(f"{where} = {text!r} must be one of {known}.{hint}")
    return value
