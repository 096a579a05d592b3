"""``patternfold demo``: the demonstration."""

from __future__ import annotations

import argparse

from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console
from patternfold.cli.outputs import check_output
from patternfold.cli.progress import Progress


def run(options: argparse.Namespace, console: Console) -> int:
    """Learn a digit and sort a pile; write pictures, a model file and its explorer."""
    check_output(options.output, options.force, folder=True)
    use_cache()
    from patternfold.cli.demo import demonstrate

    progress = Progress(console, options.atoms)
    with progress.listening():
        values, text = demonstrate(
            options.output,
            options.digit,
            options.images,
            options.atoms,
            options.seed,
            console.say,
            progress,
            not options.no_kinds,
        )
    console.result(values, text)
    return 0
