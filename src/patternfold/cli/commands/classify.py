"""``patternfold classify``: train a classifier on folders of pictures, and use it."""

from __future__ import annotations

import argparse
from importlib import import_module

from patternfold.cli.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """Train or predict."""
    module = import_module(f"patternfold.cli.commands.classify_{options.action}")
    return module.run(options, console)
