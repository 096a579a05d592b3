"""Draw a hand-made pattern and a sweep of its manifold: ``python -m patternfold.demo``."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from patternfold import manifold
from patternfold.grid import Grid
from patternfold.pattern import Pattern
from patternfold.transformations import RotationTranslationScaling

DEFAULT_OUTPUT = Path("demo-output") / "pattern.png"

# What the sweep shows of each parameter: its symbol, and how far it goes.
SWEEPS = {
    "theta": ("rotation θ", (-1.8, 1.8)),
    "tx": ("shift $t_x$", (-0.3, 0.3)),
    "ty": ("shift $t_y$", (-0.3, 0.3)),
    "sx": ("scale $s_x$", (0.55, 1.45)),
    "sy": ("scale $s_y$", (0.55, 1.45)),
}


def handmade_five() -> Pattern:
    """A digit 5 of eight strokes, each a Gaussian atom (ψ, τ_x, τ_y, σ_x, σ_y)."""
    strokes = [
        [0.00, 0.10, -0.60, 0.30, 0.10],
        [1.72, -0.23, -0.37, 0.24, 0.10],
        [-0.22, -0.03, -0.12, 0.25, 0.10],
        [0.75, 0.24, -0.02, 0.18, 0.10],
        [1.57, 0.35, 0.21, 0.20, 0.10],
        [-0.75, 0.22, 0.45, 0.18, 0.10],
        [0.00, -0.02, 0.56, 0.22, 0.10],
        [0.60, -0.27, 0.46, 0.14, 0.10],
    ]
    return Pattern([1.0, 1.0, 1.0, 0.75, 0.85, 0.75, 0.85, 0.8], strokes)


def sweep(pattern: Pattern, name: str, values: np.ndarray) -> np.ndarray:
    """Render the pattern along one parameter, the others at the identity: (count, 64, 64)."""
    transformation = RotationTranslationScaling()
    lam = np.tile(transformation.identity, (len(values), 1))
    lam[:, transformation.parameters.index(name)] = values
    return manifold.render(pattern, lam, transformation, (64, 64)).reshape(-1, 64, 64)


def draw(pattern: Pattern, count: int = 7) -> Any:
    """Draw the pattern with its atoms beside a sweep along each parameter."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.6, 4.9), layout="constrained", facecolor="white")
    halves: Any = figure.subfigures(1, 2, width_ratios=[1.0, 1.42], wspace=0.02)
    left, right = halves
    image = pattern.render((256, 256))
    peak = float(image.max())
    ax = left.subplots()
    _show(ax, image, peak)
    _draw_atoms(ax, pattern)
    left.suptitle(f"a pattern of {pattern.n_atoms} atoms", fontsize=11)
    rows = right.subplots(len(SWEEPS), count)
    for axes, (name, (label, span)) in zip(rows, SWEEPS.items(), strict=True):
        values = np.linspace(*span, count).round(2) + 0.0  # no "-0.00"
        for ax, value, view in zip(axes, values, sweep(pattern, name, values), strict=True):
            _show(ax, view, peak)
            ax.set_xlabel(f"{value:.2f}".replace("-", "−"), fontsize=7, labelpad=2)
        axes[0].set_ylabel(label, fontsize=9)
    right.suptitle("its manifold, along each parameter", fontsize=11)
    return figure


def _show(ax: Any, image: np.ndarray, peak: float) -> None:
    """Show an image in the pattern's coordinates, without ticks."""
    left, right, top, bottom = Grid(*image.shape).window
    ax.imshow(image, cmap="magma", vmin=0, vmax=peak, extent=(left, right, bottom, top))
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _draw_atoms(ax: Any, pattern: Pattern) -> None:
    """Outline each atom where its Gaussian has fallen to 1/e."""
    from matplotlib.patches import Ellipse

    for psi, x, y, width, height in pattern.gamma:
        outline = Ellipse((x, y), 2 * width, 2 * height, angle=np.degrees(psi))
        outline.set(fill=False, edgecolor="white", alpha=0.75, linewidth=0.9)
        ax.add_patch(outline)


def save_png(figure: Any, path: Path) -> None:
    """Save with a palette of 128 colours, a third of the usual size."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(128).save(path, "PNG", optimize=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the figure and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m patternfold.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="file to write")
    options = parser.parse_args(arguments)
    try:
        figure = draw(handmade_five())
    except ModuleNotFoundError as error:
        print(f"{error}. Install the plots: pip install 'patternfold[plots]'", file=sys.stderr)
        return 1
    save_png(figure, options.output)
    print(f"Pattern and manifold drawn in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
