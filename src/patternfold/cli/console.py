"""What the command line says: results to standard output, talk to standard error."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from patternfold._text import printable


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


class Failure(Exception):
    """A command can't do what it was asked; the message is for the user."""


class Console:
    """Speaks to people, or with ``json`` to programs: one object on standard output."""

    def __init__(self, json: bool = False, quiet: bool = False):
        self.json = json
        self.quiet = quiet

    def say(self, text: str) -> None:
        """Tell what is going on."""
        if not self.quiet:
            print(_lines(text), file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Tell what deserves attention, even when quiet."""
        print(f"patternfold: warning: {_lines(text)}", file=sys.stderr, flush=True)

    def say_remarks(self, remarks: Sequence[Any]) -> None:
        """Tell what is worth a second look, even when quiet; programs find it in the result."""
        for remark in remarks:
            print(f"patternfold: remark: {_lines(remark.text)}", file=sys.stderr, flush=True)

    def result(self, values: Mapping[str, Any], text: str) -> None:
        """Give the result: as an object for programs, as text for people."""
        said = json_module.dumps(values, allow_nan=False) if self.json else _lines(text)
        print(said, flush=True)

    def fail(self, text: str) -> int:
        """Say why a command failed and return the exit code."""
        print(f"patternfold: error: {_lines(text)}", file=sys.stderr, flush=True)
        if self.json:
            print(json_module.dumps({"error": text}), flush=True)
        return 1
