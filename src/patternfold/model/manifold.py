"""The pattern transformation manifold: U_λ(p), its tangents and the tangent distance.

All functions take one row of λ per image, work in chunks of bounded memory, follow the dtype of
λ (or of the images) and return NumPy arrays; `render` may leave its images on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold._validation import as_images, as_parameters
from patternfold.model.atoms import Atoms, evaluate, evaluate_field
from patternfold.model.grid import Grid, as_grid
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation, as_transformation
from patternfold.numerics.chunks import map_chunks
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision, working_dtype


def render(
    pattern: Pattern,
    lam: Any,
    transformation: str | AbstractTransformation,
    shape: tuple[int, int] | Grid,
    check: bool = True,
    device: bool = False,
) -> Any:
    """Render U_λ(p) for a batch of λ, eq. manifoldModel.

    Parameters
    ----------
    pattern : Pattern
        The pattern p.
    lam : array of shape (N, d)
        One λ per image.
    transformation : str or transformation
        The family a(λ, x, y).
    shape : (H, W) or Grid
        Size of the images.
    check : bool, default=True
        Refuse λ outside the box Λ.
    device : bool, default=False
        Leave the images on the device, as one JAX array, instead of handing them back.

    Returns
    -------
    array of shape (N, H·W)

    Examples
    --------
    >>> p = Pattern([1.0], [[0.0, 0.0, 0.0, 0.3, 0.3]])
    >>> render(p, [[0.5, 0.0]], "translation", (1, 4)).round(3).tolist()
    [[0.0, 0.002, 0.398, 0.398]]
    """
    job = _Job(pattern, lam, transformation, shape, check)
    return job.on_device(_render) if device else job.run(_render, images=4)[0]


def field(
    pattern: Pattern,
    lam: Any,
    transformation: str | AbstractTransformation,
    shape: tuple[int, int] | Grid,
    check: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Render p, ∂p/∂x' and ∂p/∂y' at the transformed pixels, in one pass over the atoms.

    Everything else on the manifold follows from these three images. Parameters as in `render`;
    each of the three arrays has shape (N, H·W).

    Examples
    --------
    >>> p = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.5]])
    >>> value, along_x, along_y = field(p, [[0.0, 0.0]], "translation", (1, 4))
    >>> value.round(3).tolist(), along_x.round(3).tolist()
    ([[0.084, 0.621, 0.621, 0.084]], [[0.505, 1.243, -1.243, -0.505]])
    """
    job = _Job(pattern, lam, transformation, shape, check)
    value, along_x, along_y = job.run(_field, images=6)
    return value, along_x, along_y


def tangents(
    pattern: Pattern,
    lam: Any,
    transformation: str | AbstractTransformation,
    shape: tuple[int, int] | Grid,
    check: bool = True,
) -> np.ndarray:
    """Tangent vectors T_k = ∂U_λ(p)/∂λ_k = p_x' ∂x'/∂λ_k + p_y' ∂y'/∂λ_k, appendix B.

    Parameters as in `render`.

    Returns
    -------
    array of shape (N, d, H·W)

    Examples
    --------
    >>> p = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.5]])
    >>> along_tx, along_ty = tangents(p, [[0.0, 0.0]], "translation", (1, 4))[0]
    >>> along_tx.round(3).tolist()
    [-0.505, -1.243, 1.243, 0.505]
    """
    job = _Job(pattern, lam, transformation, shape, check)
    return job.run(_tangents, images=6 + 3 * job.dim)[0]


def tangent_distance(
    pattern: Pattern,
    images: Any,
    lam: Any,
    transformation: str | AbstractTransformation,
    image_shape: tuple[int, int] | None = None,
    check: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Distance of images to the manifold's tangent space at λ, appendix B.

    .. math:: z^* = (T^T T)^{-1} T^T w, \quad d = \|w - T z^*\|, \quad w = u - U_λ(p)

    Solved by QR of T and the singular values of R, never by TᵀT: directions in which the
    pattern does not move (a round pattern under rotation) get z* = 0.

    Parameters
    ----------
    pattern : Pattern
        The pattern p.
    images : array of shape (N, H, W) or (N, H·W)
        u_i.
    lam : array of shape (N, d)
        Where the tangent space is taken, one λ per image.
    transformation : str or transformation
        The family a(λ, x, y).
    image_shape : (H, W), optional
        Shape of flattened images.
    check : bool, default=True
        Refuse λ outside the box Λ.

    Returns
    -------
    distances : array of shape (N,)
    z : array of shape (N, d)
        Coefficients z* of the projection: the first-order step in λ towards the image.

    Examples
    --------
    >>> p = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.3]])
    >>> image = render(p, [[0.02, 0.01]], "translation", (16, 16)).reshape(1, 16, 16)
    >>> distances, z = tangent_distance(p, image, [[0.0, 0.0]], "translation")
    >>> z.round(2).tolist(), bool(distances[0] < 0.01 * np.linalg.norm(image))
    ([[0.02, 0.01]], True)
    """
    rows, shape = as_images(images, image_shape)
    job = _Job(pattern, lam, transformation, Grid(*shape), check, rows)
    distances, z = job.run(_tangent_distance, images=8 + 4 * job.dim)
    return distances, z


class _Job:
    """Checked inputs of a function above, ready to run in chunks."""

    def __init__(
        self,
        pattern: Pattern,
        lam: Any,
        transformation: str | AbstractTransformation,
        shape: tuple[int, int] | Grid,
        check: bool,
        images: np.ndarray | None = None,
    ):
        self.pattern = pattern
        self.transformation = as_transformation(transformation)
        box = self.transformation.parameters
        self.dim = box.dim
        lam = as_parameters("lam", lam, box.names)
        if check:
            box.require_inside(lam, "lam")
        grid = as_grid(shape)
        self.dtype = working_dtype(lam) if images is None else working_dtype(images)
        self.rows = (lam.astype(self.dtype),)
        if images is not None:
            if len(images) != len(lam):
                raise ValueError(
                    f"lam has {len(lam)} rows but there are {len(images)} images; "
                    "give one row of lam for each image."
                )
            self.rows += (images.astype(self.dtype, copy=False),)
        self.x, self.y = grid.x.astype(self.dtype), grid.y.astype(self.dtype)

    def on_device(self, kernel: Any) -> Any:
        """Run a kernel on all rows at once, and leave its result where it is."""
        with precision(self.dtype):
            atoms = self.pattern.atoms(self.dtype)
            return kernel(atoms, self.transformation, *self.rows, self.x, self.y)

    def run(self, kernel: Any, images: int) -> tuple[np.ndarray, ...]:
        """Run a kernel that holds about ``images`` images in memory for each row."""
        with precision(self.dtype):
            atoms = self.pattern.atoms(self.dtype)

            def chunk(*rows: np.ndarray) -> Any:
                return kernel(atoms, self.transformation, *rows, self.x, self.y)

            return map_chunks(chunk, self.rows, images * len(self.x) * self.dtype.itemsize)


Batch = Float[Array, "N n"]


def warped(
    transformation: AbstractTransformation,
    lam: Float[Array, " d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Array, ...]:
    """Pattern coordinates a_λ(x, y) of every pixel of an image, and by what its atoms are widened.

    That is one number, and is left out by families that widen nothing.
    """
    place, spread = transformation.coordinates(lam, x, y), transformation.spread(lam)
    return place if spread is None else (*place, spread[None])


def warped_pixels(
    transformation: AbstractTransformation,
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Array, ...]:
    """The same of every image: two arrays (N, n), and maybe one (N, 1)."""
    return jax.vmap(partial(warped, transformation), in_axes=(0, None, None))(lam, x, y)


def tangent_vectors(
    transformation: AbstractTransformation,
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    *slopes: Batch,
) -> Float[Array, "N d n"]:
    """T from the slopes of p at the warped pixels, by the chain rule."""
    along_x, along_y, *by_spread = slopes
    dx, dy = jax.vmap(transformation.derivatives, in_axes=(0, None, None))(lam, x, y)
    vectors = along_x[:, None, :] * dx + along_y[:, None, :] * dy
    for image in by_spread:
        ds = jax.vmap(partial(spread_slopes, transformation))(lam)
        vectors = vectors + ds[:, :, None] * image[:, None, :]
    return vectors


def spread_slopes(
    transformation: AbstractTransformation, lam: Float[Array, " d"]
) -> Float[Array, " d"]:
    """Derivatives of the spread in λ."""
    return jax.jacfwd(lambda row: jnp.asarray(transformation.spread(row)))(lam)


def tangent_products(
    transformation: AbstractTransformation,
    lam: Float[Array, " d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
    slopes: Sequence[Float[Array, " n"]],
    w: Float[Array, " n"],
) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
    """Return TᵀT and Tᵀw of an image, given the slopes of p at its warped pixels."""
    along_x, along_y, *by_spread = slopes
    metric, along_w = transformation.tangent_products(lam, x, y, along_x, along_y, w)
    for image in by_spread:
        ds = spread_slopes(transformation, lam)
        cross = transformation.tangent_products(lam, x, y, along_x, along_y, image)[1]
        mixed = cross[:, None] * ds[None, :]
        metric = metric + mixed + mixed.T + (image @ image) * ds[:, None] * ds[None, :]
        along_w = along_w + (image @ w) * ds
    return metric, along_w


@partial(compiled, hot=True)
def _render(
    atoms: Atoms,
    transformation: AbstractTransformation,
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> Batch:
    return evaluate(atoms, *warped_pixels(transformation, lam, x, y))


@partial(compiled, hot=True)
def _field(
    atoms: Atoms,
    transformation: AbstractTransformation,
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Batch, Batch, Batch]:
    value, along_x, along_y, *_ = evaluate_field(atoms, *warped_pixels(transformation, lam, x, y))
    return value, along_x, along_y


@partial(compiled, hot=True)
def _tangents(
    atoms: Atoms,
    transformation: AbstractTransformation,
    lam: Float[Array, "N d"],
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> Float[Array, "N d n"]:
    _, *slopes = evaluate_field(atoms, *warped_pixels(transformation, lam, x, y))
    return tangent_vectors(transformation, lam, x, y, *slopes)


@partial(compiled, hot=True)
def _tangent_distance(
    atoms: Atoms,
    transformation: AbstractTransformation,
    lam: Float[Array, "N d"],
    images: Batch,
    x: Float[Array, " n"],
    y: Float[Array, " n"],
) -> tuple[Float[Array, " N"], Float[Array, "N d"]]:
    value, *slopes = evaluate_field(atoms, *warped_pixels(transformation, lam, x, y))
    vectors = tangent_vectors(transformation, lam, x, y, *slopes)
    return jax.vmap(project_on_tangents)(vectors, images - value)


def project_on_tangents(
    vectors: Float[Array, "d n"], w: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, " d"]]:
    """Return ‖w − T z*‖ and z* of least norm, with T's columns in ``vectors``."""
    q, r = jnp.linalg.qr(vectors.T)
    left, singular, right = jnp.linalg.svd(r, full_matrices=False)
    # Directions this far below the strongest are rounding of the field, not motion.
    kept = singular > jnp.finfo(w.dtype).eps ** 0.75 * singular[:1]
    along = left.T @ (q.T @ w)
    z = right.T @ jnp.where(kept, along / jnp.where(kept, singular, 1), 0)
    return jnp.linalg.norm(w - vectors.T @ z), z
