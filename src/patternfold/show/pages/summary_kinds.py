"""What the report says of mixtures: groups and their sizes, images by fit, how parts merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from patternfold.estimators.remarks import remarks_on_kinds
from patternfold.show.pages.figures import INK, draw
from patternfold.show.pages.kinds import BETWEEN, Kinds, assigned_images, group_name
from patternfold.show.pages.kinds_view import tree_section
from patternfold.show.pages.tree import colour_of
from patternfold.show.plotting import PatternDisplay
from patternfold.show.plotting.canvas import axes_grid, literal, show_image

SMALL = 3
"""Images of a group below which a remark says that it may be no kind."""

MANY_BETWEEN = 0.1
"""Share of images between two groups from which a remark tells of them."""

COLUMNS, LONGEST_NAME = 12, 14
"""Pictures in a row, and letters of a name below one."""

Section = dict[str, str]


def describe_kinds(
    model: Any, X: Any, names: Sequence[str] | None, mask: Any
) -> tuple[list[tuple[str, str]], list[str], list[Section]]:
    """Return results, remarks and sections of a fitted `PatternMixture`."""
    kinds = None if X is None else assigned_images(model, X, names, mask)
    sections = [_groups_section(model)]
    if kinds is not None:
        sections += _gallery_sections(model, kinds)
    tree = tree_section(model)
    sections += [] if tree is None else [tree, _eigenvalue_section(model)]
    return _results(model), _remarks(model), [*sections, _path_section(model)]


def _results(model: Any) -> list[tuple[str, str]]:
    unsure = (model.labels_ >= 0) & (model.assignment_.confidence < BETWEEN)
    sizes = ", ".join(f"{share:.1%}" for share in model.proportions_)
    results = [
        ("images", str(len(model.labels_))),
        ("groups", str(len(model.patterns_))),
        ("their shares", sizes),
        ("parts", str(len(model.parts_))),
        ("images between two groups", f"{np.mean(unsure):.1%}"),
    ]
    if model.outliers:
        results.append(("images in no group", f"{model.outlier_share_:.1%}"))
    if model.gain and len(model.error_path_):
        results.append(("energy explained", f"{1 - model.error_path_[-1]:.1%}"))
    return [*results, ("learning ended", model.stop_reason_)]


def _remarks(model: Any) -> list[str]:
    found = model.assignment_
    remarks = [remark.text for remark in remarks_on_kinds(model)]
    count = np.bincount(model.labels_[model.labels_ >= 0], minlength=len(model.patterns_))
    small = [group_name(g) for g in np.flatnonzero(count < SMALL)]
    if small:
        remarks.append(
            f"Fewer than {SMALL} images each: {', '.join(small)}. They may be single strange "
            "images; outliers=True sets such images aside."
        )
    inside = model.labels_ >= 0
    unsure = inside & (found.confidence < BETWEEN)
    if inside.any() and unsure.sum() > MANY_BETWEEN * inside.sum():
        pairs = np.sort(np.stack([model.labels_[unsure], found.runner_up[unsure]]), axis=0)
        both, times = np.unique(pairs, axis=1, return_counts=True)
        a, b = both[:, times.argmax()]
        remarks.append(
            f"{unsure.sum() / inside.sum():.0%} of the images lie between two groups, most of "
            f"them between {group_name(a)} and {group_name(b)}: these may be one kind. Ask for "
            "fewer groups, or look at the images below."
        )
    return remarks


def _groups_section(model: Any) -> Section:
    return {
        "title": "The groups",
        "text": "The largest part of each, with the group's share of the images and the number "
        "of its parts.",
        "image": _patterns_figure(model),
    }


def _gallery_sections(model: Any, kinds: Kinds) -> list[Section]:
    """Return the images of each group by fit, those of none, and those between two groups."""
    sections = []
    for g in [*range(len(model.patterns_)), -1]:
        own = kinds.gallery(g, 2 * COLUMNS)
        if len(own):
            count = int((kinds.found.labels == g).sum())
            text = f"{count} of the {len(kinds.images)} images at hand"
            text += "" if len(own) == count else f", {len(own)} of them shown"
            text += ", from best to worst fit, with the share of their energy that is left over."
            below = [f"{kinds.left[i]:.3f}" for i in own]
            sections.append(
                {"title": group_name(g).capitalize(), "text": text}
                | {"image": _images_figure(kinds, own, below)}
            )
    own = kinds.between(2 * COLUMNS)
    if len(own):
        found = kinds.found
        below = [
            f"{found.labels[i] + 1} or {found.runner_up[i] + 1}: {found.confidence[i]:.0%}"
            for i in own
        ]
        text = f"Less than {BETWEEN:.0%} of each belongs to its group: the least certain first, "
        text += "with the two groups and how much of it belongs to the first."
        figure = _images_figure(kinds, own, below)
        sections.append({"title": "Between two groups", "text": text, "image": figure})
    return sections


def _eigenvalue_section(model: Any) -> Section:
    def fill(figure: Any) -> None:
        ax = figure.subplots()
        values, count = model.eigenvalues_, len(model.patterns_)
        colours = [colour_of(0) if k < count else INK for k in range(len(values))]
        ax.bar(np.arange(1, len(values) + 1), values, color=colours)
        ax.set(xlabel="number", ylabel="eigenvalue", ylim=(min(0, 1.1 * values.min()), 1.02))
        ax.spines[["top", "right"]].set_visible(False)

    return {
        "title": "How many groups there are",
        "text": "Eigenvalues of the graph of shared images: as many near 1 as there are groups "
        "that share nothing. A wide step after the groups taken (orange) says that their number "
        "is well told.",
        "image": draw((6.4, 2.4), fill),
    }


def _path_section(model: Any) -> Section:
    def fill(figure: Any) -> None:
        ax = figure.subplots()
        path = model.error_path_
        ax.plot(np.arange(1, len(path) + 1), path, marker="o", markersize=3)
        ax.set(xlabel="pass", ylabel="misfit", ylim=(0, None))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)

    return {
        "title": "Learning the parts",
        "text": "What the parts leave of the images after each pass over them.",
        "image": draw((6.4, 2.4), fill),
    }


def _patterns_figure(model: Any) -> str:
    count, columns = len(model.patterns_), min(6, len(model.patterns_))
    lines = -(-count // columns)

    def fill(figure: Any) -> None:
        axes = axes_grid(figure, lines, columns).ravel()
        for ax in axes[count:]:
            ax.set_axis_off()
        for g, (ax, pattern) in enumerate(zip(axes, model.patterns_, strict=False)):
            parts = int((model.part_labels_ == g).sum())
            of = f"{parts} part" if parts == 1 else f"{parts} parts"
            title = f"{group_name(g)}: {model.proportions_[g]:.1%}\n{of}"
            PatternDisplay(pattern, model.image_shape_).plot(ax, title=title, resolution=96)

    return draw((1.7 * columns + 0.2, 2.1 * lines), fill)


def _images_figure(kinds: Kinds, index: np.ndarray, below: list[str]) -> str:
    """Images in rows with their names above and a line or two below."""
    columns = COLUMNS
    lines = -(-len(index) // columns)

    def fill(figure: Any) -> None:
        axes = axes_grid(figure, lines, columns).ravel()
        for ax in axes[len(index) :]:
            ax.set_axis_off()
        for ax, i, text in zip(axes, index, below, strict=False):
            show_image(ax, np.nan_to_num(kinds.images[i]), _short(kinds.names[int(i)]))
            ax.title.set_fontsize(6)
            ax.set_xlabel(literal(text), fontsize=7)

    return draw((9, 1.15 * lines), fill)


def _short(name: str) -> str:
    """The end of a name, which tells files apart better than its beginning."""
    return literal(name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}")
