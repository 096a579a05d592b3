"""Figures of the experiments: curves and rows of pictures, drawn alike everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from patternfold.show.plotting.canvas import pyplot, show_image

OURS, PATS, SMP, MP, LLA = "ours (default)", "PATS", "SMP", "MP", "locally linear"
STYLES: dict[str, dict[str, Any]] = {
    OURS: {"color": "#d1495b", "marker": "o"},
    PATS: {"color": "#00798c", "marker": "s"},
    SMP: {"color": "#edae49", "marker": "^"},
    MP: {"color": "#6a4c93", "marker": "v"},
    LLA: {"color": "#555555", "linestyle": "--"},
}
"""How lines of the same method look in every figure."""

Numbers = Sequence[float] | np.ndarray
Line = tuple[Numbers, Numbers]


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that no window shows."""
    pyplot()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def draw_curves(
    lines: Mapping[str, Line],
    xlabel: str,
    ylabel: str,
    *,
    levels: Mapping[str, float] | None = None,
    styles: Mapping[str, Mapping[str, Any]] = STYLES,
    log: bool = False,
    from_zero: bool = True,
    size: tuple[float, float] = (6.4, 3.8),
) -> Any:
    """Draw labelled curves, and horizontal lines for ``levels``."""
    figure = new_figure(*size)
    ax = figure.subplots()
    _plot(ax, lines, styles)
    for label, level in (levels or {}).items():
        ax.axhline(level, label=label, **({"linestyle": "--"} | dict(styles.get(label, {}))))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if log:
        ax.set_yscale("log")
    elif from_zero:
        ax.set_ylim(0, None)
    ax.legend(frameon=False, fontsize=9)
    return figure


def draw_panels(
    panels: Mapping[str, Mapping[str, Line]],
    xlabel: str,
    ylabel: str,
    styles: Mapping[str, Mapping[str, Any]] = STYLES,
) -> Any:
    """Draw curves in panels side by side, with one scale for all."""
    figure = new_figure(2.6 * len(panels) + 0.4, 3.2)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        _plot(ax, lines, styles)
        ax.set_xlabel(xlabel)
        ax.set_title(title, fontsize=10)
    axes[0].set_ylabel(ylabel)
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def _plot(ax: Any, lines: Mapping[str, Line], styles: Mapping[str, Mapping[str, Any]]) -> None:
    for label, (x, y) in lines.items():
        style = {"marker": ".", "markersize": 4} | dict(styles.get(label, {}))
        ax.plot(x, y, label=label, **style)
    whole = all(float(value).is_integer() for x, _ in lines.values() for value in x)
    ax.xaxis.get_major_locator().set_params(integer=whole)
    ax.ticklabel_format(axis="x", scilimits=(-3, 5))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def draw_rows(
    rows: Mapping[str, Sequence[np.ndarray]], size: float = 0.95, columns: Sequence[str] = ()
) -> Any:
    """Draw labelled rows of small pictures, with titles above the columns."""
    most = max(len(pictures) for pictures in rows.values())
    figure = new_figure(size * most + 1.5, size * len(rows) + 0.2 + 0.2 * bool(columns))
    grid = figure.subplots(len(rows), most, squeeze=False)
    for axes, (label, pictures) in zip(grid, rows.items(), strict=True):
        for ax in axes:
            ax.set_axis_off()
        for ax, picture in zip(axes, pictures, strict=False):
            ax.set_axis_on()
            show_image(ax, np.asarray(picture))
        axes[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
    for ax, title in zip(grid[0], columns, strict=False):
        ax.set_title(title, fontsize=9)
    return figure


def draw_pictures(pictures: Mapping[str, np.ndarray], size: float = 1.35) -> Any:
    """Draw one row of pictures with a title above each."""
    height, width = next(iter(pictures.values())).shape
    lines = 1 + max(title.count("\n") for title in pictures)
    figure = new_figure(size * len(pictures), size * height / width + 0.24 * lines)
    axes = figure.subplots(1, len(pictures), squeeze=False)[0]
    for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
        show_image(ax, np.asarray(picture), title)
    return figure
