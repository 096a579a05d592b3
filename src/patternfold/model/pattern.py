"""The representative pattern p = Σ_j c_j φ_γj."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import numpy as np

from patternfold._validation import as_floats, as_parameters
from patternfold.model.atoms import AtomFamily, Atoms, evaluate, evaluate_field, make_atoms
from patternfold.model.dictionaries import AbstractDictionary, as_dictionary
from patternfold.model.grid import Grid, as_grid
from patternfold.model.mothers import AbstractMother, as_mother
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision, working_dtype

MOST_ATOMS = 4096
"""Atoms of a pattern; learned ones have a few dozen."""

_evaluate = compiled(evaluate, hot=True)
_evaluate_field = compiled(evaluate_field, hot=True)


# Not an equinox module: compiled code takes its atoms, and attributes of modules are slow.
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Pattern:
    """A pattern p(x, y) = Σ_j c_j φ(b(γ_j, x, y)), defined everywhere in the plane.

    Patterns never change; `add_atom` and the other editing methods return a new one that
    shares what it can.

    Parameters
    ----------
    coef : array of shape (K,)
        Coefficients c_j.
    gamma : array of shape (K, s)
        Atom parameters γ_j, for the built-in dictionary (ψ, τ_x, τ_y, σ_x, σ_y).
    mother : str or mother function, default="gaussian"
        φ.
    dictionary : str or dictionary, optional
        b; the paper's rotation, translation and anisotropic scaling by default.

    Examples
    --------
    >>> bump = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.25]])
    >>> bump.render((3, 3)).round(3).tolist()
    [[0.0, 0.001, 0.0], [0.135, 0.798, 0.135], [0.0, 0.001, 0.0]]
    """

    coef: np.ndarray
    gamma: np.ndarray
    mother: AbstractMother
    dictionary: AbstractDictionary

    def __init__(
        self,
        coef: Any = (),
        gamma: Any = None,
        mother: str | AbstractMother = "gaussian",
        dictionary: str | AbstractDictionary | None = None,
    ):
        put = object.__setattr__
        put(self, "mother", as_mother(mother))
        put(self, "dictionary", as_dictionary(dictionary))
        names = self.dictionary.parameters.names
        coef = as_floats("coef", coef).astype(np.float64)
        if coef.ndim != 1:
            raise ValueError(f"coef has shape {coef.shape}; expected (K,), one value per atom.")
        if gamma is None or np.size(gamma) == 0:
            gamma = np.zeros((0, len(names)))
        gamma = as_parameters("gamma", gamma, names).astype(np.float64)
        if len(coef) != len(gamma):
            raise ValueError(
                f"coef has {len(coef)} values but gamma has {len(gamma)} rows; "
                "each atom needs one of both."
            )
        if len(coef) > MOST_ATOMS:
            raise ValueError(
                f"coef has {len(coef)} values; a pattern has at most {MOST_ATOMS} atoms. Leave out "
                "those with the smallest coefficients."
            )
        self.dictionary.check(gamma)
        coef.flags.writeable = gamma.flags.writeable = False
        put(self, "coef", coef)
        put(self, "gamma", gamma)

    @cached_property
    def family(self) -> AtomFamily:
        """What the atoms are made of."""
        return AtomFamily(self.mother, self.dictionary)

    @property
    def n_atoms(self) -> int:
        """Number of atoms K."""
        return len(self.coef)

    def __len__(self) -> int:
        """Return the number of atoms K."""
        return self.n_atoms

    def __call__(self, x: Any, y: Any) -> np.ndarray:
        """Evaluate p at points (x, y) of any shape."""
        x, y = self._points(x, y)
        with precision(x.dtype):
            values = _evaluate(self.atoms(x.dtype), x.ravel(), y.ravel())
        return np.asarray(values).reshape(x.shape)

    def gradient(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate (∂p/∂x, ∂p/∂y) at points (x, y) of any shape."""
        x, y = self._points(x, y)
        with precision(x.dtype):
            _, along_x, along_y = _evaluate_field(self.atoms(x.dtype), x.ravel(), y.ravel())
        return np.asarray(along_x).reshape(x.shape), np.asarray(along_y).reshape(x.shape)

    def render(self, shape: tuple[int, int] | Grid, dtype: Any = np.float64) -> np.ndarray:
        """Sample p at the pixel centres of an image of ``shape`` (H, W)."""
        grid = as_grid(shape)
        x, y = grid.x.astype(dtype), grid.y.astype(dtype)
        return self(x, y).reshape(grid.shape)

    def add_atom(self, coef: float, gamma: Any) -> Pattern:
        """Return p + c φ_γ."""
        gamma = as_parameters("gamma", gamma, self.dictionary.parameters.names)
        return self.replace(np.append(self.coef, coef), np.concatenate([self.gamma, gamma]))

    def take(self, atoms: Any) -> Pattern:
        """Return the pattern of some atoms only: a slice, indices or a mask."""
        return self.replace(self.coef[atoms], self.gamma[atoms])

    def replace(self, coef: Any, gamma: Any) -> Pattern:
        """Return a pattern with other atoms of the same kind."""
        return Pattern(coef, gamma, self.mother, self.dictionary)

    def atoms(self, dtype: Any) -> Atoms:
        """Return the atoms for compiled code."""
        return make_atoms(self.coef, self.gamma, self.family, dtype)

    def __eq__(self, other: object) -> bool:
        """Compare atoms, mother function and dictionary."""
        return (
            isinstance(other, Pattern)
            and np.array_equal(self.coef, other.coef)
            and np.array_equal(self.gamma, other.gamma)
            and bool(self.mother == other.mother)
            and bool(self.dictionary == other.dictionary)
        )

    def __hash__(self) -> int:
        """Hash the atoms."""
        # Adding 0 makes 0 of -0, which is equal to it and must hash alike.
        return hash(((self.coef + 0.0).tobytes(), (self.gamma + 0.0).tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy through the constructor, so that the arrays stay read-only."""
        return (Pattern, (self.coef, self.gamma, self.mother, self.dictionary))

    def __repr__(self) -> str:
        """Describe the pattern in one line and its first atoms in a table."""
        mother = eqx.tree_pformat(self.mother, width=1000)  # on one line
        head = f"Pattern of {self.n_atoms} atom{'s' * (self.n_atoms != 1)}, mother={mother}"
        if not self.n_atoms:
            return head
        names = ("coef", *self.dictionary.parameters.names)
        rows = np.column_stack([self.coef, self.gamma])
        lines = ["  ".join(f"{name:>8}" for name in names)]
        lines += ["  ".join(f"{value:8.4f}" for value in row) for row in rows[:8]]
        if len(rows) > 8:
            lines.append(f"... and {len(rows) - 8} more")
        return "\n  ".join([head, *lines])

    @staticmethod
    def _points(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        x, y = as_floats("x", x), as_floats("y", y)
        dtype = working_dtype(x, y)
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError as error:
            raise ValueError(
                f"x has shape {x.shape} but y has shape {y.shape}; give both the same shape."
            ) from error
        x, y = np.broadcast_arrays(x.astype(dtype), y.astype(dtype))
        return x, y
