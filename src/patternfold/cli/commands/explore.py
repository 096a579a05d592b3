"""``patternfold explore``: the explorer page of a model."""

from __future__ import annotations

import argparse
import webbrowser

from patternfold.cli.console import Console
from patternfold.cli.models import read_model, read_new_images
from patternfold.cli.outputs import check_output


def run(options: argparse.Namespace, console: Console) -> int:
    """Read, build, write."""
    check_output(options.output, options.force)
    file = read_model(options.model)
    from patternfold.show.pages import explorer

    title = options.title or options.model.name
    if options.images is None:
        page = explorer(file.model, examples=file.examples, title=title)
        shown = 0 if file.examples is None else len(file.examples.names)
    else:
        found = read_new_images(file, options.images, options.skip_unreadable, console)
        shown = min(len(found), options.show)
        page = explorer(
            file.model,
            found.images,
            found.labels,
            names=found.names,
            title=title,
            n_images=options.show,
        )
    page.save(options.output)
    values = {"page": str(options.output), "bytes": len(page.content), "images": shown}
    console.result(values, f"{options.output}: open it in a browser")
    if options.open:
        webbrowser.open(options.output.resolve().as_uri())
    return 0
