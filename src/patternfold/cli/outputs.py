"""Files that commands write: checked before the work begins, never overwritten unasked."""

from __future__ import annotations

import os
from pathlib import Path

from patternfold._writing import LONGEST_NAME
from patternfold.cli.console import Failure


def check_output(path: Path, force: bool, folder: bool = False) -> None:
    """Refuse a place that can't be written, or that is taken."""
    parent = path.parent
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        # Asked whether it exists, Python says so up to 3.13, and that it does not from 3.14 on.
        raise Failure(f"{path} can't be written: its name is too long ({LONGEST_NAME} bytes fit).")
    if not parent.is_dir():
        raise Failure(f"{path} can't be written: the folder {parent} does not exist.")
    if not os.access(parent, os.W_OK):
        raise Failure(f"{path} can't be written: no permission to write to {parent}.")
    if path.is_dir() and not folder:
        raise Failure(f"{path} is a folder; name a file.")
    if path.exists() and not force:
        if folder and path.is_dir() and not any(path.iterdir()):
            return
        raise Failure(f"{path} exists already; --force overwrites it.")
