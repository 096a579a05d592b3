"""The report: how a model was made, what to look at, curves and pictures, in one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import as_images
from patternfold.learning.fitted import FittedManifolds, fitted_manifolds
from patternfold.show.pages import figures
from patternfold.show.pages.document import Page, render_page
from patternfold.show.pages.explorer import facts
from patternfold.show.pages.findings import findings
from patternfold.show.pages.summary_classes import class_results, class_sections, judged_sections


def report(
    model: Any,
    path: str | Path | None = None,
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
) -> Page:
    """Describe a fitted model: options, remarks, curves and pictures.

    Parameters
    ----------
    model : PATS, JPATS or AlignedViewsClassifier
        A fitted model.
    path : path, optional
        Where to write the page.
    X : array of shape (N, H, W) or (N, H·W), optional
        Images, to show their alignment and those that fit worst.
    y : array of shape (N,), optional
        Their classes; with them a classifier is judged.
    title : str, optional
        Heading of the page.
    """
    check_is_fitted(model)
    view = fitted_manifolds(model)
    if hasattr(model, "pattern_"):
        results, remarks, sections = _describe_pattern(model, view, X)
    else:
        results, remarks, sections = _describe_classes(model, view, X, y)
    heading = "a learned pattern" if len(view.patterns) == 1 else "a classifier"
    page = render_page(
        "report.html",
        title=title or f"Report on {heading}",
        facts=facts(model, view),
        remarks=remarks,
        options=_options(model),
        results=results,
        sections=sections,
    )
    if path is not None:
        page.save(path)
    return page


Parts = tuple[list[tuple[str, str]], list[str], list[dict[str, str]]]


def _describe_pattern(model: Any, view: FittedManifolds, X: Any) -> Parts:
    box = view.transformation.parameters
    remarks = findings(box, model.parameters_, model.error_path_, model.stop_reason_)
    sections = _sections(model, view) + ([] if X is None else _image_sections(model, X))
    return _results(model), remarks, sections


def _describe_classes(model: Any, view: FittedManifolds, X: Any, y: Any) -> Parts:
    results, sections = class_results(model, view), class_sections(model, view)
    if X is None or y is None:
        return results, [], sections
    judged, remarks, more = judged_sections(model, view, X, y)
    return results + judged, remarks, sections + more


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
    results = [
        ("images", str(len(model.parameters_))),
        ("atoms", str(model.pattern_.n_atoms)),
    ]
    if len(model.error_path_):
        error = model.error_path_[-1]
        results += [("normalised error", f"{error:.4f}"), ("energy explained", f"{1 - error:.1%}")]
    return [*results, ("learning ended", model.stop_reason_)]


def _sections(model: Any, view: FittedManifolds) -> list[dict[str, str]]:
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
