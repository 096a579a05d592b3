"""A redundant sampling of the dictionary manifold: what matching pursuit chooses atoms from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold.model.atoms import AtomFamily, evaluate_each
from patternfold.model.dictionaries import AbstractDictionary, AtomDictionary
from patternfold.model.dictionaries.atom import shapes_at_origin
from patternfold.model.grid import Grid, as_grid
from patternfold.model.mothers import AbstractMother, as_mother
from patternfold.model.pattern import Pattern
from patternfold.numerics.chunks import map_chunks
from patternfold.numerics.precision import precision

DTYPE = np.dtype(np.float32)
"""Of rendered atoms; a sampled dictionary is an approximation anyway."""


NARROW, WIDE = 1.5, 0.8
"""The narrowest width in pixels, and the widest in units of half the longer side."""


@dataclass(frozen=True)
class SampledDictionary:
    """Atoms φ_γ for D values of γ, sampled on a grid and scaled to unit norm.

    Rendered atoms are made chunk by chunk and never kept, so that D may be large.

    Attributes
    ----------
    gamma : array of shape (D, s)
        Atom parameters γ.
    grid : Grid
        Where atoms are sampled.
    mother : mother function
        φ.
    dictionary : dictionary
        The map b(γ, x, y).
    norms : array of shape (D,)
        ‖φ_γ‖ on the grid, before scaling.
    """

    gamma: np.ndarray
    grid: Grid
    mother: AbstractMother
    dictionary: AbstractDictionary
    norms: np.ndarray

    def __len__(self) -> int:
        """Return the number of atoms D."""
        return len(self.gamma)

    def products(self, images: np.ndarray) -> np.ndarray:
        """⟨φ_γ, u_i⟩ of all atoms with all images, shape (D, N)."""
        columns = images.astype(DTYPE, copy=False).T
        (found,) = self._map(lambda atoms: atoms @ columns, slice(None))
        return found / self.norms[:, None]

    def atoms(self, index: slice | np.ndarray | list[int]) -> np.ndarray:
        """Some atoms, rendered with unit norm, shape (number, n)."""
        (found,) = self._map(lambda atoms: atoms, index)
        return found / self.norms[index, None]

    def pattern(self, coef: np.ndarray, index: list[int]) -> Pattern:
        """Σ_j c_j φ_γj for coefficients of atoms with unit norm."""
        scaled = np.asarray(coef, np.float64) / self.norms[index]
        return Pattern(scaled, self.gamma[index], self.mother, self.dictionary)

    def _map(self, function: Callable[[np.ndarray], np.ndarray], index: Any) -> Any:
        return map_atoms(function, self.gamma[index], self.grid, self.mother, self.dictionary)


def sampled_dictionary(
    shape: tuple[int, int] | Grid,
    *,
    step: float = 1.0,
    n_widths: int = 5,
    n_angles: int = 8,
    mother: str | AbstractMother = "gaussian",
) -> SampledDictionary:
    """Sample the dictionary manifold D on a grid of γ.

    Widths run in geometric steps from 1.5 pixels to 0.8 of half the longer side, in all pairs,
    angles in even steps; the centres of atoms lie closer the narrower they are.

    Parameters
    ----------
    shape : (H, W) or Grid
        Shape of the images.
    step : float, default=1
        Distance between centres in units of an atom's smaller width.
    n_widths, n_angles : int, default=5 and 8
        Number of widths σ and of angles ψ.
    mother : str or mother function, default="gaussian"
        φ.

    Examples
    --------
    >>> atoms = sampled_dictionary((16, 16), n_widths=2, n_angles=2)
    >>> len(atoms)
    372
    """
    for name, value in (("n_widths", n_widths), ("n_angles", n_angles)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name}={value!r} must be an integer of at least 1.")
    if not step > 0:
        raise ValueError(
            f"step={step!r} must be positive: the distance between the centres of atoms."
        )
    grid, function, dictionary = as_grid(shape), as_mother(mother), AtomDictionary()
    radial = function.is_radial
    shapes = _shapes(grid, dictionary, n_widths, n_angles, radial)
    gamma = np.concatenate([_moved(shape, grid, step) for shape in shapes])
    (norms,) = map_atoms(
        lambda atoms: np.linalg.norm(atoms, axis=1), gamma, grid, function, dictionary
    )
    # A narrow atom between the pixels of a tiny image may vanish on the grid.
    seen = norms > 1e-3 * norms.max()
    return SampledDictionary(gamma[seen], grid, function, dictionary, norms[seen])


def map_atoms(
    function: Callable[[np.ndarray], np.ndarray],
    gamma: np.ndarray,
    grid: Grid,
    mother: AbstractMother,
    dictionary: AbstractDictionary,
) -> tuple[np.ndarray, ...]:
    """Apply a function to chunks of rendered atoms, rows of pixels, and collect its rows."""
    x, y = grid.x.astype(DTYPE), grid.y.astype(DTYPE)

    def on_chunk(rows: np.ndarray) -> np.ndarray:
        return function(np.asarray(evaluate_each(AtomFamily(mother, dictionary), rows, x, y)))

    with precision(DTYPE):
        return map_chunks(on_chunk, (gamma.astype(DTYPE),), DTYPE.itemsize * grid.n_pixels)


def _shapes(
    grid: Grid, dictionary: AtomDictionary, n_widths: int, n_angles: int, radial: bool
) -> np.ndarray:
    """γ at the origin: all pairs of widths, at all angles that look different."""
    lower, upper = dictionary.parameters.lower[3], dictionary.parameters.upper[3]
    narrow = min(max(lower, NARROW * grid.pixel), upper)
    widths = np.geomspace(narrow, max(narrow, min(upper, WIDE)), n_widths)
    return shapes_at_origin(widths, n_angles, radial)


def _moved(shape: np.ndarray, grid: Grid, step: float) -> np.ndarray:
    """γ of one shape at all its centres."""
    spacing = step * min(shape[3], shape[4])
    x, y = (_centres(pixels, spacing) for pixels in (grid.columns, grid.rows))
    moved = np.tile(shape, (len(x) * len(y), 1))
    moved[:, 1], moved[:, 2] = np.tile(x, len(y)), np.repeat(y, len(x))
    return moved


def _centres(pixels: np.ndarray, spacing: float) -> np.ndarray:
    """Centres between the outermost pixels, one of them in the middle."""
    count = int(pixels[-1] / spacing)
    return spacing * np.arange(-count, count + 1)
