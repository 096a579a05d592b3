"""What the report says of classifiers: patterns side by side, curves, confusions."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from patternfold._validation import as_images
from patternfold.learning.fitted import FittedManifolds
from patternfold.show.pages.figures import draw
from patternfold.show.plotting import PatternDisplay
from patternfold.show.plotting.canvas import axes_grid, literal, show_image

MANY_CLASSES = 24
"""Classes beyond which the table of confusions is drawn small, in colours without numbers."""

OFTEN = 0.1
"""Share of a class's images from which a confusion is worth a remark."""

LINE = 0.18
"""Inches that each further line of a title takes, in letters of 9 points."""


def class_results(model: Any, view: FittedManifolds) -> list[tuple[str, str]]:
    """Return the classes, their atoms and how learning went."""
    results = [
        ("classes", ", ".join(view.class_names)),
        *_pattern_counts(view),
        ("atoms", ", ".join(str(pattern.n_atoms) for pattern in view.patterns)),
    ]
    if hasattr(model, "error_path_") and len(model.error_path_):
        wrong, error = model.error_path_[-1]
        results += [
            ("misclassified while learning", f"{wrong:.1%}"),
            ("normalised error", f"{error:.4f}"),
        ]
    for label, prior in zip(view.labels, view.priors or (), strict=False):
        results.append((f"prior of {label}", str(prior)))
    if hasattr(model, "symmetry_") and all(pattern.n_atoms for pattern in view.patterns):
        results.append(("symmetry", "; ".join(found.name for found in model.symmetry_)))
    if hasattr(model, "stop_reason_"):
        results.append(("learning ended", model.stop_reason_))
    return results


def _pattern_counts(view: FittedManifolds) -> list[tuple[str, str]]:
    """Patterns of each class, where some class has several."""
    if len(view.patterns) == len(view.class_names):
        return []
    counts = np.bincount(view.class_of, minlength=len(view.class_names))
    return [("patterns of each class", ", ".join(map(str, counts.tolist())))]


def class_sections(model: Any, view: FittedManifolds) -> list[dict[str, str]]:
    """Return the patterns and, for `JPATS`, the curves of learning."""
    sections = [
        {
            "title": "The patterns",
            "text": "One for each class."
            if len(view.patterns) == len(view.class_names)
            else "An image is of the class of the nearest one.",
            "image": _patterns_figure(view),
        }
    ]
    if hasattr(model, "error_path_") and len(model.error_path_) > 1:
        sections.append(
            {
                "title": "Learning",
                "text": "Share of misclassified training images, and normalised error, after the "
                "start and after each accepted iteration.",
                "image": _path_figure(model.error_path_),
            }
        )
    return sections


def judged_sections(
    model: Any, view: FittedManifolds, X: Any, y: Any, mask: Any = None
) -> tuple[list[tuple[str, str]], list[str], list[dict[str, str]]]:
    """Classify images of known classes; return results, remarks and sections."""
    rows, shape = as_images(X, view.image_shape, "X")
    images, true = rows.reshape(-1, *shape), np.array([str(label) for label in y])
    found = np.array([str(label) for label in model.predict(images, sample_mask=mask)])
    results = [("right in the images given", f"{(true == found).mean():.1%} of {len(true)}")]
    sections = [
        {
            "title": "Confusions",
            "text": "True classes in rows, found classes in columns.",
            "image": _confusion_figure(true, found),
        }
    ]
    wrong = np.flatnonzero(true != found)
    if len(wrong):
        sections.append(
            {
                "title": "Misclassified images",
                "text": f"{len(wrong)} of {len(true)}, the first ones shown: true class, then "
                "found class.",
                "image": _wrong_figure(images, true, found, wrong[:8]),
            }
        )
    return results, _confused(true, found), sections


def _confused(true: np.ndarray, found: np.ndarray) -> list[str]:
    remarks = []
    for label in np.unique(true):
        own = found[true == label]
        names, counts = np.unique(own[own != label], return_counts=True)
        for name, count in zip(names, counts, strict=True):
            if count / len(own) > OFTEN:
                remarks.append(
                    f"{count / len(own):.0%} of class {label} are taken for {name}: more atoms, "
                    "more training images or narrower bounds may tell them apart."
                )
    return remarks


def _patterns_figure(view: FittedManifolds) -> str:
    columns = min(6, len(view.patterns))
    lines = -(-len(view.patterns) // columns)

    def fill(figure: Any) -> None:
        axes = axes_grid(figure, lines, columns).ravel()
        for ax in axes[len(view.patterns) :]:
            ax.set_axis_off()
        for ax, pattern, label in zip(axes, view.patterns, view.labels, strict=False):
            PatternDisplay(pattern, view.image_shape).plot(
                ax, title=_lines(label), resolution=96, centred=True
            )
            ax.set_anchor("S")  # what is left of the height is above, for long names

    longest = max(_lines(label).count("\n") for label in view.labels)
    return draw((1.7 * columns + 0.2, (1.9 + LINE * longest) * lines), fill)


def _path_figure(path: np.ndarray) -> str:
    def fill(figure: Any) -> None:
        ax = figure.subplots()
        for values, label in zip(path.T, ("misclassified", "normalised error"), strict=True):
            ax.plot(values, marker="o", markersize=3, label=label)
        ax.set(xlabel="iteration", ylim=(0, None))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)

    return draw((6.4, 2.8), fill)


def _confusion_figure(true: np.ndarray, found: np.ndarray) -> str:
    from sklearn.metrics import ConfusionMatrixDisplay

    names = sorted({*true.tolist(), *found.tolist()})
    few = len(names) <= MANY_CLASSES
    size = 2.4 + (0.5 if few else 0.12) * len(names)

    def fill(figure: Any) -> None:
        ax = figure.subplots()
        shown = [_lines(name, 40) for name in names]
        ConfusionMatrixDisplay.from_predictions(
            true,
            found,
            labels=names,
            display_labels=shown,
            ax=ax,
            colorbar=False,
            cmap="Oranges",
            include_values=few,
        )
        ax.tick_params(labelsize=9 if few else 5)
        ax.set(xlabel="found", ylabel="true")
        ax.set_xticks(range(len(names)), shown, rotation=45, ha="right", rotation_mode="anchor")

    return draw((size, size), fill)


def _lines(label: str, width: int = 16) -> str:
    """A name in full, broken into lines."""
    return "\n".join(literal(line) for line in textwrap.wrap(label, width) or [""])


def _wrong_figure(
    images: np.ndarray, true: np.ndarray, found: np.ndarray, wrong: np.ndarray
) -> str:
    titles = [f"{_lines(str(true[i]))}\n{_lines(f'→ {found[i]}')}" for i in wrong]

    def fill(figure: Any) -> None:
        axes = axes_grid(figure, 1, len(wrong))[0]
        for ax, i, title in zip(axes, wrong, titles, strict=True):
            show_image(ax, images[i], title)
            ax.set_anchor("S")

    # Two lines have room; each further one asks for its own.
    further = max(title.count("\n") for title in titles) - 1
    return draw((1.3 * len(wrong) + 0.2, 1.9 + LINE * further), fill)
