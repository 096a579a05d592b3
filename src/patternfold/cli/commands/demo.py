"""``patternfold demo``: the demonstration."""

from __future__ import annotations

import argparse

from patternfold.cli.cache import use_cache
from patternfold.cli.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """Learn a digit; write a picture, a model file and its explorer."""
    use_cache()
    from patternfold.cli.demo import demonstrate

    values, text = demonstrate(
        options.output, options.digit, options.images, options.atoms, options.seed, console.say
    )
    console.result(values, text)
    return 0
