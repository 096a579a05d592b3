"""The loss of Student's t: outlying pixels count next to nothing."""

from __future__ import annotations

from typing import ClassVar, SupportsFloat

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from patternfold.model.losses.base import AbstractLoss, Values, positive, scale_of


class StudentT(AbstractLoss):
    r"""The loss of residuals with Student's distribution, :math:`ρ(r) = ν s^2 \log(1 + r^2/ν s^2)`.

    Parameters
    ----------
    df : float, default=2
        Degrees of freedom ν: the fewer, the sooner a residual counts as an outlier. With 2, a fifth
        of the pixels may be wrong; with 4, estimates from noise alone are better by some percent.
    scale : float, optional
        s in the unit of the images, by default estimated from the residuals.

    Examples
    --------
    The weight of a residual, by its square in units of s²:

    >>> import jax.numpy as jnp
    >>> from patternfold import StudentT
    >>> loss = StudentT(df=2)
    >>> [round(float(weight), 2) for weight in loss.pixels(jnp.array([1.0, 16.0]))[1]]
    [0.67, 0.11]
    """

    df: float = eqx.field(static=True)
    scale: float | None = eqx.field(static=True)

    is_elementary: ClassVar[bool] = True

    def __init__(self, df: SupportsFloat = 2.0, scale: SupportsFloat | None = None):
        self.df = positive("df", df, "2")
        self.scale = scale_of(scale)

    def pixels(self, z: Values) -> tuple[Values, Values]:
        """Return h = ν log(1 + z/ν) and h' = 1/(1 + z/ν)."""
        share = z / self.df
        return self.df * jnp.log1p(share), 1 / (1 + share)

    def images(self, t: Values) -> tuple[Values, Values]:
        """Return H = √ν arctan(t/√ν) and H' = 1/(1 + t²/ν): strangers cost no more than so much."""
        root = float(np.sqrt(self.df))
        return root * jnp.arctan(t / root), 1 / (1 + t**2 / self.df)
