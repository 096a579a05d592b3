"""The report: results and remarks, pictures and curves, then the options, in one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from patternfold.estimators.remarks import Evidence, remarks_on
from patternfold.learning.fitted import FittedManifolds, fitted_manifolds
from patternfold.show.pages import figures
from patternfold.show.pages.document import Page, render_page
from patternfold.show.pages.explorer import facts, kinds_facts, spread
from patternfold.show.pages.kinds import is_mixture
from patternfold.show.pages.summary_classes import class_results, class_sections, judged_sections
from patternfold.show.pages.summary_kinds import describe_kinds

WORST, MOST_ON_SHEET = 6, 24
"""Images that are shown as fitting worst, and as they were prepared."""


def report(
    model: Any,
    path: str | Path | None = None,
    X: Any = None,
    y: Any = None,
    *,
    names: Sequence[str] | None = None,
    sample_mask: Any = None,
    title: str | None = None,
) -> Page:
    """Describe a fitted model: results, remarks, pictures and curves, and its options.

    Parameters
    ----------
    model : PATS, JPATS, AlignedViewsClassifier or PatternMixture
        A fitted model.
    path : path, optional
        Where to write the page.
    X : array of shape (N, H, W) or (N, H·W), optional
        Images, to show their alignment and those that fit worst.
    y : array of shape (N,), optional
        Their classes; with them a classifier is judged.
    names : sequence of str, optional
        Names of the images, such as those of their files.
    sample_mask : array of shape (N, H, W), (N, H·W) or (H, W), optional
        True where a pixel counts.
    title : str, optional
        Heading of the page.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold import PATS
    >>> images = np.eye(8, dtype=np.float32)[None]
    >>> model = PATS(1, transformation="translation", n_starts=1).fit(images)
    >>> page = report(model, X=images, names=["first"], title="A stroke")
    >>> "<h1>A stroke</h1>" in page.html
    True
    """
    check_is_fitted(model)
    view = fitted_manifolds(model)
    if is_mixture(model):
        results, remarks, sections = describe_kinds(model, X, names, sample_mask)
        heading, about = "groups of images", kinds_facts(model)
    elif hasattr(model, "pattern_"):
        results, remarks, sections = _describe_pattern(model, view, X, names, sample_mask)
        heading, about = "a learned pattern", facts(model, view)
    else:
        results, remarks, sections = _describe_classes(model, view, X, y, sample_mask)
        heading, about = "a classifier", facts(model, view)
    page = render_page(
        "report.html",
        title=title or f"Report on {heading}",
        facts=about,
        remarks=remarks,
        options=_options(model),
        results=results,
        sections=sections,
    )
    if path is not None:
        page.save(path)
    return page


Parts = tuple[list[tuple[str, str]], list[str], list[dict[str, str]]]


def _describe_pattern(
    model: Any, view: FittedManifolds, X: Any, names: Sequence[str] | None, mask: Any
) -> Parts:
    evidence = None if X is None else model.examine(X, sample_mask=mask, names=names)
    remarks = [remark.text for remark in remarks_on(model, evidence)]
    learned, path = _sections(model, view)
    seen = [] if evidence is None else _image_sections(evidence)
    sheet = [] if evidence is None else [_sheet_section(evidence)]
    return _results(model, evidence), remarks, [*seen, *learned, *sheet, *path]


def _describe_classes(model: Any, view: FittedManifolds, X: Any, y: Any, mask: Any) -> Parts:
    results, sections = class_results(model, view), class_sections(model, view)
    if X is None or y is None:
        return results, [], sections
    judged, remarks, more = judged_sections(model, view, X, y, mask)
    return results + judged, remarks, sections + more


def _options(model: Any) -> list[tuple[str, str]]:
    """Return the options that differ from their defaults, with their values."""
    defaults = type(model)().get_params(deep=False)
    rows = []
    for name, value in model.get_params(deep=False).items():
        if repr(value) == repr(defaults[name]):
            continue
        text = repr(value).split("\n")[0]
        rows.append((name, text if len(text) < 80 else text[:77] + "..."))
    return rows


def _results(model: Any, evidence: Evidence | None) -> list[tuple[str, str]]:
    results = [
        ("images", str(len(model.parameters_))),
        ("atoms", str(model.pattern_.n_atoms)),
    ]
    if len(model.error_path_):
        error = model.error_path_[-1]
        results += [("normalised error", f"{error:.4f}"), ("energy explained", f"{1 - error:.1%}")]
    if model.loss_.scale is not None:
        results.append(("scale of ordinary residuals", f"{model.loss_.scale:.3g}"))
    if model.prior_ is not None:
        results.append(("prior", str(model.prior_)))
    if model.pattern_.n_atoms:
        results.append(("symmetry", model.symmetry_.name))
    return [*results, *_seen(evidence), ("learning ended", model.stop_reason_)]


def _seen(evidence: Evidence | None) -> list[tuple[str, str]]:
    """Results on images: their error beside that of doing nothing."""
    if evidence is None:
        return []
    shown = f"{evidence.error:.4f}; of their mean, unaligned: {evidence.baseline:.4f}"
    results = [(f"error of the {len(evidence.rows)} images shown", shown)]
    if evidence.spread_ratio is not None:
        results.append(("spread after alignment", f"{evidence.spread_ratio:.0%} of that before"))
    return results


Section = dict[str, str]


def _sections(model: Any, view: FittedManifolds) -> tuple[list[Section], list[Section]]:
    """Return what was learned, and how."""
    learned = [
        {
            "title": "The pattern",
            "text": "Left as it is, right with the outline of each atom where it has fallen as at "
            "distance σ: orange atoms add, blue ones subtract.",
            "image": figures.pattern_figure(view, 0),
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
        *_symmetry_section(model),
    ]
    path = [
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
    ]
    return learned, path


def _symmetry_section(model: Any) -> list[Section]:
    if not model.pattern_.n_atoms:
        return []
    found = model.symmetry_
    if found.order == 1 and not found.mirror:
        # Without a symmetry nothing can lack it: an asymmetry of 0 would read as the opposite.
        shares = f"A symmetry may lack up to {found.tolerance:.2%} of the pattern's energy"
    else:
        shares = f"{found.asymmetry:.2%} of its energy lacks it; up to {found.tolerance:.2%} may"
    return [
        {
            "title": "Symmetry",
            "text": "Correlation of the pattern with itself, turned and mirrored about its centre: "
            f"{found.name}, confidence {found.confidence:.2f}. {shares}, "
            "from noise and too few atoms.",
            "image": figures.symmetry_figure(found),
        }
    ]


def _sheet_section(evidence: Evidence) -> Section:
    chosen = spread(len(evidence.rows), MOST_ON_SHEET)
    shape = evidence.model.image_shape_
    images, mask = (
        None if part is None else part[chosen].reshape(-1, *shape)
        for part in (evidence.rows, evidence.mask)
    )
    names = [evidence.name(int(i)) for i in chosen]
    return {
        "title": "Prepared pictures",
        "text": "As they are compared with the pattern. Hatched pixels do not count.",
        "image": figures.sheet_figure(images, mask, names),
    }


def _image_sections(evidence: Evidence) -> list[Section]:
    if not evidence.model.transformation_.has_inverse:
        return []
    images, aligned = evidence.images, evidence.aligned_images
    worst = evidence.worst(WORST)
    listed = ", ".join(f"{evidence.name(i)} ({evidence.misfit[i] ** 2:.3f})" for i in worst)
    sections = [
        {
            "title": "Alignment",
            "text": f"Some of the {len(images)} images, and the mean and spread of all.",
            "image": figures.alignment_figure(images, aligned),
        }
    ]
    if worst:
        sections.append(
            {
                "title": "Images that fit worst",
                "text": f"With the share of their energy that is not explained: {listed}.",
                "image": figures.alignment_figure(images[worst], aligned[worst]),
            }
        )
    return sections
