"""The report: how a model was made, what to look at, curves and pictures, in one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from patternfold._validation import as_images
from patternfold.report import figures
from patternfold.report.document import Page, render_page
from patternfold.report.explorer import facts
from patternfold.report.findings import findings
from patternfold.report.payload import view_of


def report(
    model: Any, path: str | Path | None = None, X: Any = None, *, title: str | None = None
) -> Page:
    """Describe a fitted model: options, remarks, curves and pictures.

    Parameters
    ----------
    model : PATS
        A fitted model.
    path : path, optional
        Where to write the page.
    X : array of shape (N, H, W) or (N, H·W), optional
        Images, to show their alignment and those that fit worst.
    title : str, optional
        Heading of the page.
    """
    view = view_of(model)
    remarks = findings(
        view.transformation.parameters, model.parameters_, model.error_path_, model.stop_reason_
    )
    sections = _sections(model, view)
    if X is not None:
        sections += _image_sections(model, X)
    page = render_page(
        "report.html",
        title=title or "Report on a learned pattern",
        facts=facts(model, view),
        remarks=remarks,
        options=_options(model),
        results=_results(model),
        sections=sections,
    )
    if path is not None:
        page.save(path)
    return page


def _options(model: Any) -> list[tuple[str, str, bool]]:
    """Return each option, its value, and whether it differs from the default."""
    defaults = type(model)().get_params(deep=False)
    rows = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value).split("\n")[0]
        shown = text if len(text) < 80 else text[:77] + "..."
        rows.append((name, shown, repr(value) != repr(defaults[name])))
    return rows


def _results(model: Any) -> list[tuple[str, str]]:
    return [
        ("images", str(len(model.parameters_))),
        ("atoms", str(model.pattern_.n_atoms)),
        ("normalised error", f"{model.error_path_[-1]:.4f}"),
        ("energy explained", f"{1 - model.error_path_[-1]:.1%}"),
        ("learning ended", model.stop_reason_),
    ]


def _sections(model: Any, view: Any) -> list[dict[str, str]]:
    return [
        {
            "title": "The pattern",
            "text": "Left as it is, right with the outline of each atom where it has fallen as at "
            "distance σ: orange atoms add, blue ones subtract.",
            "image": figures.pattern_figure(view, 0),
        },
        {
            "title": "Its growth",
            "text": "The first atoms, as they are in the final pattern.",
            "image": figures.growth_figure(view, 0),
        },
        {
            "title": "Error path",
            "text": "Normalised error after each atom. A curve that has become flat says that more "
            "atoms would not help.",
            "image": figures.error_figure(view),
        },
        {
            "title": "Transformations found",
            "text": "Where the training images lie in the box of parameters.",
            "image": figures.parameters_figure(view, model.parameters_),
        },
        {
            "title": "The manifold",
            "text": "What each parameter does to the pattern, the others left at the identity.",
            "image": figures.manifold_figure(view, 0),
        },
    ]


def _image_sections(model: Any, X: Any) -> list[dict[str, str]]:
    rows, shape = as_images(X, model.image_shape_, "X")
    images = rows.reshape(-1, *shape)
    aligned, distances = model.align(images), model.distances(images)
    norms = np.linalg.norm(rows, axis=1)
    worst = np.argsort(-distances)[: min(6, len(images))]
    listed = ", ".join(f"{i} ({distances[i]:.3g})" for i in worst)
    share = float((distances**2).sum() / (norms**2).sum())
    return [
        {
            "title": "Alignment",
            "text": f"Some of the {len(images)} images, and the mean and spread of all; their "
            f"normalised error is {share:.4f}.",
            "image": figures.alignment_figure(images, aligned),
        },
        {
            "title": "Images that fit worst",
            "text": f"Indices, with the distance to the manifold: {listed}.",
            "image": figures.alignment_figure(images[worst], aligned[worst]),
        },
    ]
