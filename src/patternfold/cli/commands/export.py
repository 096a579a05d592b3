"""``patternfold export``: the pattern for other programs."""

from __future__ import annotations

import argparse

from patternfold.cli.console import Console
from patternfold.cli.models import read_model, require_pattern
from patternfold.cli.outputs import check_output


def run(options: argparse.Namespace, console: Console) -> int:
    """Read and write."""
    check_output(options.output, options.force)
    model = require_pattern(read_model(options.model), options.model).model
    from patternfold.show.export import export_pattern
    from patternfold.show.plotting.pattern import fine_shape

    shape = fine_shape(model.image_shape_, options.size)
    export_pattern(model.pattern_, options.output, shape)
    values = {"output": str(options.output), "atoms": model.pattern_.n_atoms}
    console.result(values, f"{options.output}: {model.pattern_.n_atoms} atoms")
    return 0
