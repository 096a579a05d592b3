"""The explorer: one page in which a learned pattern can be moved, taken apart and compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import as_images
from patternfold.learning.fitted import FittedManifolds, fitted_manifolds
from patternfold.persistence import Examples
from patternfold.show.pages.document import Page, as_json, render_page, script_of
from patternfold.show.pages.formulas import as_script
from patternfold.show.pages.kinds import assigned_images, is_mixture
from patternfold.show.pages.kinds_view import GROUPS, tree_section, view_of_kinds
from patternfold.show.pages.payload import Example, payload_of

SCRIPTS = ("render.js", "explorer.js", "atoms.js", "gallery.js")
MOST_EXAMPLES = 36
"""Images that are shown unless more are asked for."""

MOST_PIXELS = 9 * 2**20
"""Of all images of a page: at one byte each, in base64, they take 12 MiB of it."""

EFFORT = "normal"
"""Of the poses that pages show: the same as of `PATS.transform`."""


def explorer(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    names: Sequence[str] | None = None,
    examples: Examples | None = None,
    title: str | None = None,
    n_images: int = MOST_EXAMPLES,
) -> Page:
    """Build a page to explore a fitted model: sliders for λ, atoms, images beside projections.

    The browser draws the pattern from its atoms, exactly, where all components have a formula, as
    the built-in ones do; models with other components move through frames drawn beforehand.
    The page is one file, loads nothing and works from disk.

    Parameters
    ----------
    model : PATS, JPATS, AlignedViewsClassifier or PatternMixture
        A fitted model.
    X : array of shape (N, H, W) or (N, H·W), optional
        Images to show beside their projections; at most ``n_images``, evenly chosen, are kept.
    y : array of shape (N,), optional
        Classes of the images; by default, each is shown with the nearest pattern.
    names : sequence of str, optional
        Names of the images.
    examples : Examples, optional
        Images with known λ, as model files keep them, instead of ``X``.
    title : str, optional
        Heading of the page.
    n_images : int, default=36
        Most images; fewer where they would take more than 12 MB of the page.

    Returns
    -------
    Page
        With methods ``save`` and ``open_in_browser``; notebooks show it.

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold import PATS
    >>> images = np.eye(8, dtype=np.float32)[None]
    >>> model = PATS(1, transformation="translation", n_starts=1).fit(images)
    >>> page = explorer(model, images, title="A stroke")
    >>> "<h1>A stroke</h1>" in page.html
    True
    """
    check_is_fitted(model)
    if is_mixture(model):
        return _explorer_of_kinds(model, X, names, examples, title)
    view = fitted_manifolds(model)
    shown = _project(view, X, y, names, n_images) if X is not None else _kept(examples)
    return explorer_page(view, shown, title, facts(model, view))


def explorer_page(
    view: FittedManifolds, shown: Sequence[Example], title: str | None, facts: list[str]
) -> Page:
    """The page on manifolds and images whose λ are known."""
    count = len(view.patterns)
    heading = title or ("A learned pattern" if count == 1 else f"{count} learned patterns")
    payload = payload_of(view, shown)
    return render_page(
        "explorer.html",
        script_of(as_script(payload.pop("formulas")), SCRIPTS),
        title=heading,
        facts=facts,
        data=as_json(payload),
        tree=None,
    )


def _explorer_of_kinds(
    model: Any, X: Any, names: Any, examples: Examples | None, title: str | None
) -> Page:
    """The page of a mixture: its groups, their images by fit, and the merge tree."""
    if X is None and examples is not None and len(examples.names):
        X, names = examples.images, examples.names
    kinds = None if X is None else assigned_images(model, X, names).some()
    view, notes, shown, galleries = view_of_kinds(model, kinds)
    payload = payload_of(view, shown, GROUPS, notes, galleries)
    count = len(model.patterns_)
    heading = title or ("One group of images" if count == 1 else f"{count} groups of images")
    return render_page(
        "explorer.html",
        script_of(as_script(payload.pop("formulas")), SCRIPTS),
        title=heading,
        facts=kinds_facts(model),
        data=as_json(payload),
        tree=tree_section(model),
    )


def save_explorer(model: Any, path: str | Path, X: Any = None, **options: Any) -> Path:
    """Write the page of `explorer` to a file."""
    return explorer(model, X, **options).save(path)


def spread(n: int, most: int = MOST_EXAMPLES) -> np.ndarray:
    """Return up to ``most`` indices, evenly spread over n."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def _project(
    view: FittedManifolds, X: Any, y: Any, names: Sequence[str] | None, most: int
) -> list[Example]:
    rows, shape = as_images(X, view.image_shape, "X")
    for name, given in (("names", names), ("y", y)):
        if given is not None and len(given) != len(rows):
            raise ValueError(f"{name} has {len(given)} entries but there are {len(rows)} images.")
    chosen = spread(len(rows), max(1, min(most, MOST_PIXELS // rows.shape[1])))
    images = rows[chosen].reshape(-1, *shape)
    called = [f"image {i}" if names is None else str(names[i]) for i in chosen]
    lam, labels = poses(view, images, None if y is None else [y[i] for i in chosen])
    return [Example(*parts) for parts in zip(images, lam, called, labels, strict=True)]


def poses(view: FittedManifolds, images: np.ndarray, y: Any = None) -> tuple[np.ndarray, list[str]]:
    """Return λ of images on the nearest manifold, of their class if that is known, and its label.

    Classes that the model does not know keep their own name.
    """
    found = view.project(images, EFFORT)
    places, labels = found.distances.argmin(axis=1), []
    nearest, known = view.nearest(found.distances), view.class_names
    for i, m in enumerate(places if y is None else map(str, y)):
        if y is not None and m in known:
            places[i] = nearest[i, known.index(m)]
        labels.append(m if y is not None and m not in known else view.labels[places[i]])
    return found.parameters[np.arange(len(images)), places], labels


def _kept(examples: Examples | None) -> list[Example]:
    if examples is None:
        return []
    labels = examples.labels or [""] * len(examples.names)
    parts = zip(examples.images, examples.parameters, examples.names, labels, strict=True)
    return [Example(*part) for part in parts]


def facts(model: Any, view: FittedManifolds) -> list[str]:
    """Say in a few words what the model is."""
    height, width = view.image_shape
    atoms = sum(pattern.n_atoms for pattern in view.patterns)
    said = [_several(atoms, "atom"), f"images of {width}×{height} pixels"]
    learned = getattr(model, "parameters_", getattr(model, "cross_parameters_", None))
    if learned is not None:
        said.insert(0, f"learned from {_several(len(learned), 'image')}")
    count, n_classes = len(view.patterns), len(view.class_names)
    if count > 1:
        patterns = f" with {count} patterns" if count > n_classes else ""
        said.insert(0, f"{n_classes} classes{patterns}")
    kinds = (view.transformation, view.patterns[0].mother)
    return said + [_words(type(kind).__name__) for kind in kinds]


def kinds_facts(model: Any) -> list[str]:
    """Say in a few words what a mixture is."""
    height, width = model.image_shape_
    kinds = (model.transformation_, model.parts_[0].mother)
    return [
        f"{_several(len(model.patterns_), 'group')}, {_several(len(model.parts_), 'part')}",
        f"learned from {_several(len(model.labels_), 'image')}",
        f"images of {width}×{height} pixels",
        *(_words(type(kind).__name__) for kind in kinds),
    ]


def _several(count: int, what: str) -> str:
    """Say how many there are: "1 group", "3 groups"."""
    return f"{count} {what}{'s' * (count != 1)}"


def _words(name: str) -> str:
    """Turn a class name into words: "RotationTranslation" into "rotation, translation"."""
    parts = re.findall("[A-Z][a-z]*", name)
    joined = ", " if parts[-1] in ("Translation", "Scaling") else " "
    words = joined.join(part.lower() for part in parts)
    return words.replace("gaussian", "Gaussian")
