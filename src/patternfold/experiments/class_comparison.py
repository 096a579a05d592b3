"""All classifiers on repeated splits: Figs. 9 and 10 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from patternfold.datasets import Split
from patternfold.experiments import drawing
from patternfold.experiments.base import Outcome, Picture
from patternfold.experiments.class_claims import aligned_claim, best_claim, early_end, trade_claim
from patternfold.experiments.class_errors import Errors, errors_of, rows_of
from patternfold.experiments.class_steps import (
    JPATS,
    JPATS_PRINTED,
    LDA,
    LLA,
    NETWORK,
    OURS,
    PATS,
    PATS_GLOBAL,
    SAS,
    SLLE,
    SMP,
    SMP_REGISTERED,
    VIEWS,
    Configuration,
    Found,
    do_all,
)
from patternfold.experiments.classification import unpack
from patternfold.experiments.context import Context
from patternfold.experiments.options import Options

STYLES: dict[str, dict[str, Any]] = {
    OURS: {"color": "#d1495b", "marker": "o"},
    VIEWS: {"color": "#8c1c2e", "marker": "D"},
    JPATS: {"color": "#003d5b", "marker": "s"},
    JPATS_PRINTED: {"color": "#003d5b", "marker": "s", "linestyle": ":"},
    PATS: drawing.STYLES[drawing.PATS],
    PATS_GLOBAL: drawing.STYLES[drawing.PATS] | {"linestyle": ":"},
    SMP: drawing.STYLES[drawing.SMP],
    SMP_REGISTERED: {"color": "#edae49", "marker": "^", "linestyle": ":"},
    SAS: {"color": "#6a994e", "marker": "v"},
    LLA: {"color": "#555555", "linestyle": "--"},
    SLLE: {"color": "#999999", "linestyle": "--"},
    LDA: {"color": "#6a4c93", "linestyle": "-."},
    NETWORK: {"color": "#b08bc9", "linestyle": "-."},
}


def outcome(
    context: Context,
    splits: Sequence[Split],
    options: Options,
    what: str,
    notes: Sequence[str],
) -> Outcome:
    """Compare all methods on all splits."""
    settings: Configuration = context.configuration
    found = do_all(context, splits, options)
    errors = errors_of(found, settings)
    ended = early_end(found, settings)
    claims = [
        best_claim(errors, what, ended),
        aligned_claim(errors, what, ended),
        trade_claim(found, errors, what, ended),
    ]
    return Outcome(rows_of(errors), pictures(splits[0], found, errors, settings), claims, notes)


def pictures(
    split: Split, found: Found, errors: Errors, settings: Configuration
) -> dict[str, Picture]:
    """Draw an image of each class, the patterns of the first split, and the errors."""
    shape, labels = split.X.shape[1:], np.unique(split.y)
    keys = {OURS: f"ours-{settings.n_atoms}-0", JPATS: "JPATS-0", PATS: "PATS-0"}
    keys |= {SMP: "SMP-0", SAS: "SAS-0"}
    rows = {"images": [split.X[split.y == label][0] for label in labels]}
    rows |= {name: [p.render(shape) for p in unpack(found[key])] for name, key in keys.items()}
    lines, levels = {}, {}
    for method, (counts, table) in errors.items():
        mean = np.nanmean(table, axis=0)
        if counts:
            lines[method] = counts, mean.tolist()
        else:
            levels[method] = float(mean[0])
    figure = drawing.draw_curves(
        lines,
        "atoms per class",
        "misclassified test images (%)",
        levels=levels,
        styles=STYLES,
        size=(8.4, 4.8),
    )
    (ax,) = figure.axes
    ax.set_xticks(list(settings.counts))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    text = f"{settings.n_repeats} split{'s' * (settings.n_repeats > 1)}"
    return {
        "patterns": Picture(
            drawing.draw_rows(rows), "An image of each class, and the patterns learned"
        ),
        "error": Picture(figure, f"Misclassified test images, mean of {text}"),
    }
