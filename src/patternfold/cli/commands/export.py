"""``patternfold export``: the pattern for other programs."""

from __future__ import annotations

import argparse

from patternfold.cli.console import Console
from patternfold.cli.models import read_model, require_pattern
from patternfold.cli.outputs import check_output


def run(options: argparse.Namespace, console: Console) -> int:
    """Read and write."""
    check_output(options.output, options.force)
    file = require_pattern(read_model(options.model), options.model)
    model, prepared = file.model, file.preparation or {}
    from patternfold.show.export import export_pattern
    from patternfold.show.plotting.pattern import fine_shape

    shape = fine_shape(model.image_shape_, options.size)
    # Things darker than their background were inverted to learn them: they are shown as they were.
    as_given = "light" if prepared.get("background") == "light" else "dark"
    export_pattern(model.pattern_, options.output, shape, options.background or as_given)
    values = {"output": str(options.output), "atoms": model.pattern_.n_atoms}
    console.result(values, f"{options.output}: {model.pattern_.n_atoms} atoms")
    return 0
