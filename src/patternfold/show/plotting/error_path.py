"""The error after each atom."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from patternfold.show.plotting.canvas import single_axes


class ErrorPathDisplay:
    """Curve of the normalised error Σ d²(u_i, M(p)) / Σ ‖u_i‖² against the number of atoms.

    Parameters
    ----------
    error_path : array of shape (K,)
        The error after each atom.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D

    Examples
    --------
    >>> from patternfold.show.plotting import ErrorPathDisplay
    >>> display = ErrorPathDisplay([0.5, 0.2, 0.1]).plot()
    >>> display.line_.get_xdata().tolist()
    [1, 2, 3]
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(self, error_path: Any):
        self.error_path = np.asarray(error_path, float)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> ErrorPathDisplay:
        """Draw the error path of a fitted estimator; options go to `plot`."""
        check_is_fitted(estimator)
        return cls(estimator.error_path_).plot(ax=ax, **options)

    def plot(
        self, ax: Any = None, *, log: bool = False, label: str | None = None, **line: Any
    ) -> ErrorPathDisplay:
        """Draw the curve, on a logarithmic scale with ``log``; ``line`` goes to matplotlib."""
        ax = single_axes(ax)
        style = {"marker": "o", "markersize": 3} | line
        atoms = np.arange(1, len(self.error_path) + 1)
        (self.line_,) = ax.plot(atoms, self.error_path, label=label, **style)
        ax.set(xlabel="atoms", ylabel="normalised error")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(0, None)
        ax.spines[["top", "right"]].set_visible(False)
        if label is not None:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
