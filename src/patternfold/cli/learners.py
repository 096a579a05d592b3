"""The estimator that ``patternfold learn`` fits."""

from __future__ import annotations

import argparse
from typing import Any


def new_learner(options: argparse.Namespace, bounds: Any, prior: Any, callback: Any) -> Any:
    """Return a `PATS` with the options of the command line; bounds and prior suit its images."""
    from patternfold import PATS

    make = PATS.paper if options.paper else PATS
    solver = {} if options.solver is None else {"solver": options.solver}
    return make(
        **solver,
        n_atoms=options.atoms,
        transformation=options.transformation,
        mother=options.mother,
        dictionary=options.dictionary,
        bounds=bounds,
        gain=options.gain,
        offset=options.offset,
        loss=options.loss,
        prior=prior,
        random_state=options.seed,
        callback=callback,
    )
