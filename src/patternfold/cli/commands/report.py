"""``patternfold report``: a page on how a model was learned."""

from __future__ import annotations

import argparse

from patternfold.cli.console import Console
from patternfold.cli.models import read_model, read_new_images
from patternfold.cli.outputs import check_output


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, draw, write."""
    check_output(options.output, options.force)
    file = read_model(options.model)
    from patternfold.show.pages import report

    images = labels = names = mask = None
    if options.images is not None:
        found = read_new_images(file, options.images, options.skip_unreadable, console)
        images, labels, names, mask = found.images, found.labels, found.names, found.mask
    elif file.examples is not None and not hasattr(file.model, "classes_"):
        images, names = file.examples.images, file.examples.names
    title = options.title or options.model.name
    shown = {"names": names, "sample_mask": mask, "title": title}
    page = report(file.model, options.output, images, labels, **shown)
    values = {"page": str(options.output), "bytes": len(page.content)}
    console.result(values, f"{options.output}: open it in a browser")
    return 0
