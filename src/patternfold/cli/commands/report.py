"""``patternfold report``: a page on how a model was learned."""

from __future__ import annotations

import argparse

from patternfold.cli.console import Console
from patternfold.cli.models import read_model, read_new_images, require_pattern
from patternfold.cli.outputs import check_output


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, draw, write."""
    check_output(options.output, options.force)
    file = require_pattern(read_model(options.model), options.model)
    images = None
    if options.images is not None:
        images = read_new_images(file, options.images, options.skip_unreadable, console).images
    page = file.model.report(options.output, images, title=options.title or options.model.name)
    values = {"page": str(options.output), "bytes": len(page.html.encode())}
    console.result(values, f"{options.output}: open it in a browser")
    return 0
