"""The manifold: what each transformation parameter does to the pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from patternfold.model import manifold
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.show.plotting.canvas import axes_grid, show_image
from patternfold.show.plotting.pattern import fine_shape


class ManifoldDisplay:
    """Sweeps along each parameter of Λ through a point of the manifold, the identity by default.

    Parameters
    ----------
    frames : array of shape (d, S, H, W)
        S transformed patterns for each of the d parameters.
    values : array of shape (d, S)
        The value of the parameter in each of them.
    names : sequence of str
        The parameters.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from patternfold import Pattern
    >>> from patternfold.show.plotting import ManifoldDisplay
    >>> bump = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.25]])
    >>> ManifoldDisplay.from_pattern(bump, "similarity", (16, 16), n_steps=5).axes_.shape
    (4, 5)
    """

    axes_: np.ndarray
    figure_: Any

    def __init__(self, frames: np.ndarray, values: np.ndarray, names: Any):
        self.frames, self.values, self.names = frames, values, tuple(names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_steps: int = 7,
        through: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> ManifoldDisplay:
        """Sweep the manifold of a fitted `PATS` over its box Λ; options go to `plot`."""
        check_is_fitted(estimator)
        return cls.from_pattern(
            estimator.pattern_,
            estimator.transformation_,
            fine_shape(estimator.image_shape_, 64),
            n_steps=n_steps,
            through=through,
            ax=ax,
            **options,
        )

    @classmethod
    def from_pattern(
        cls,
        pattern: Pattern,
        transformation: str | AbstractTransformation,
        shape: tuple[int, int] = (64, 64),
        *,
        n_steps: int = 7,
        through: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> ManifoldDisplay:
        """Sweep each parameter over its interval, the others as in ``through``."""
        family = as_transformation(transformation)
        lam, values = sweep(family, n_steps, through)
        frames = manifold.render(pattern, lam.reshape(-1, lam.shape[-1]), family, shape)
        display = cls(frames.reshape(*values.shape, *shape), values, family.parameters.names)
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, *, cmap: str = "gray") -> ManifoldDisplay:
        """Draw one row of pictures per parameter."""
        axes = axes_grid(ax, *self.values.shape)
        limits = {"vmin": min(0.0, float(self.frames.min())), "vmax": float(self.frames.max())}
        for line, frames, values, name in zip(
            axes, self.frames, self.values, self.names, strict=True
        ):
            for place, frame, value in zip(line, frames, values, strict=True):
                show_image(place, frame, f"{value:.2f}", cmap, **limits)
            line[0].set_ylabel(name, fontsize=9)
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self


def sweep(
    family: AbstractTransformation, n_steps: int, through: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return λ of shape (d, S, d), one parameter moving in each row, and its values (d, S)."""
    box = family.parameters
    centre = family.identity if through is None else np.asarray(through, float)
    base = box.put_inside(centre)
    values = np.linspace(box.lower, box.upper, n_steps, axis=1)
    lam = np.tile(base, (box.dim, n_steps, 1))
    for k in range(box.dim):
        lam[k, :, k] = values[k]
    return lam, values
