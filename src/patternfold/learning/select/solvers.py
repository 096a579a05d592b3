"""Solvers of line 8 of Algorithm 1: the atom (γ, c) that minimises Ẽ.

``search``, the default, is our own, in `patternfold.learning.select.search`. The others follow the
paper's scheme: a preliminary search locates a good region, and DC programming goes on in it
(section IV-C).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from patternfold._validation import lookup, unknown_name
from patternfold.dc.base import ByRules, Decomposition
from patternfold.dc.branch_and_bound import branch_and_bound
from patternfold.dc.curvature import by_curvature
from patternfold.dc.cutting_plane import cutting_plane
from patternfold.dc.dca import dca_by_regions
from patternfold.dc.decompositions import VARIABLES, frozen_error, unsupported
from patternfold.dc.function import Function
from patternfold.dc.preliminary import narrow, particle_swarm
from patternfold.dc.result import Result
from patternfold.learning.select.points import Points
from patternfold.learning.select.search import search_atom
from patternfold.model.atoms import AtomFamily
from patternfold.model.box import Box
from patternfold.model.dictionaries import AbstractDictionary
from patternfold.model.mothers import AbstractMother

REGION = 0.08
"""Share of each variable's interval that the preliminary search leaves to the DC block."""

BOXES = 256
"""Boxes over which the Hessian is bounded for the decomposition: more are tighter and slower."""


DECOMPOSITIONS: dict[str, Callable[[Function], Decomposition]] = {
    "curvature": lambda function: by_curvature(function, BOXES),
    "rules": ByRules,
}
"""Decompositions for the cutting plane: our tighter one, and that of the paper's appendices."""


@dataclass(frozen=True)
class AbstractSolver(ABC):
    """Finds the atom (γ, c) that minimises Ẽ. Its fields are its options, plain values."""

    name: ClassVar[str] = ""
    """The name under which it stands in `SOLVERS`."""

    gathered: ClassVar[bool] = False
    """Whether it takes residuals gathered on the nodes of a square grid, instead of all pixels."""

    def check(self, mother: AbstractMother, dictionary: AbstractDictionary) -> None:
        """Refuse components that the solver cannot serve, and name a solver that can."""
        return None

    @abstractmethod
    def __call__(
        self,
        points: Points,
        mother: AbstractMother,
        dictionary: AbstractDictionary,
        box: Box,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, float]:
        """Return γ, inside the box, and c of the next atom.

        Parameters
        ----------
        points : Points
            Residuals and weights of all pixels in the pattern's frame, see `pull_back`, or of the
            nodes of a grid, see `gather`. Weights may have either sign; ``points.max_coef`` is
            the bound of ``|c|``.
        mother : mother function
            φ.
        dictionary : dictionary
            The map b(γ, x, y).
        box : Box
            Γ, with widths that the pixels can show.
        rng : Generator
            Random numbers, where it needs some.
        """

    def options(self) -> dict[str, Any]:
        """Return what the constructor needs to make this solver again."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Search(AbstractSolver):
    """Our own global search: all positions of many shapes at once, the best improved locally."""

    name: ClassVar[str] = "search"
    gathered: ClassVar[bool] = True

    def __call__(
        self,
        points: Points,
        mother: AbstractMother,
        dictionary: AbstractDictionary,
        box: Box,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, float]:
        """Search on the nodes."""
        return search_atom(points, AtomFamily(mother, dictionary), box, rng)


@dataclass(frozen=True)
class DCSolver(AbstractSolver):
    """DC programming from where a particle swarm has led, section IV-C."""

    def __post_init__(self) -> None:
        """Refuse limits that are not above zero."""
        for name in ("max_iter", "time_limit", "tol"):
            value = getattr(self, name)
            kind, word = (Integral, "an integer") if name == "max_iter" else (Real, "a number")
            if not isinstance(value, kind) or not float(value) > 0:
                raise ValueError(f"{name}={value!r} must be {word} above 0.")

    def check(self, mother: AbstractMother, dictionary: AbstractDictionary) -> None:
        """Refuse components without a DC decomposition."""
        reason = unsupported(mother, dictionary)
        if reason is not None:
            raise ValueError(
                f"solver={self.name!r} needs a DC decomposition: {reason}. Use solver='search', "
                "which takes any mother function and dictionary."
            )

    def __call__(
        self,
        points: Points,
        mother: AbstractMother,
        dictionary: AbstractDictionary,
        box: Box,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, float]:
        """Let swarms find a region, and `solve` the problem in it."""
        function = atom_problem(points, mother, box)
        # A swarm is trapped now and then; two of them hardly ever both.
        swarms = [particle_swarm(function, rng) for _ in range(2)]
        found = min(swarms, key=lambda swarm: swarm.value)
        point = self.solve(function, found.point).point
        return box.put_inside(point[:-1]), float(point[-1])

    @abstractmethod
    def solve(self, function: Function, start: np.ndarray) -> Result:
        """Minimise Ẽ from a good start."""


@dataclass(frozen=True)
class CuttingPlane(DCSolver):
    """The paper's solver: 40 to 60 cuts in a region around the start."""

    name: ClassVar[str] = "cutting-plane"
    max_iter: int = 60
    time_limit: float = 30.0
    tol: float = 1e-3
    decomposition: str = "curvature"

    def __post_init__(self) -> None:
        """Refuse unknown decompositions, too."""
        super().__post_init__()
        lookup("decomposition", self.decomposition, DECOMPOSITIONS)

    def solve(self, function: Function, start: np.ndarray) -> Result:
        """Cut in a region around the start."""
        region = function.on(narrow(function.box, start, REGION))
        return cutting_plane(
            DECOMPOSITIONS[self.decomposition](region),
            start=start,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            tol=self.tol,
        )


@dataclass(frozen=True)
class BranchAndBound(DCSolver):
    """Boxes in a region around the start, halved where the bound is lowest."""

    name: ClassVar[str] = "branch-and-bound"
    max_iter: int = 100_000
    time_limit: float = 10.0
    tol: float = 1e-3

    def solve(self, function: Function, start: np.ndarray) -> Result:
        """Branch in a region around the start."""
        region = function.on(narrow(function.box, start, REGION))
        return branch_and_bound(region, start=start, **self.options())


@dataclass(frozen=True)
class Dca(DCSolver):
    """The DC algorithm, with a decomposition made anew around each point."""

    name: ClassVar[str] = "dca"
    max_iter: int = 100
    time_limit: float = 10.0
    tol: float = 1e-6

    def solve(self, function: Function, start: np.ndarray) -> Result:
        """Go downhill, region by region."""
        return dca_by_regions(function, start, **self.options())


SOLVERS: dict[str, type[AbstractSolver]] = {
    "search": Search,
    "cutting-plane": CuttingPlane,
    "branch-and-bound": BranchAndBound,
    "dca": Dca,
}
"""Solvers by name: estimators, files and the command line know those that stand here."""


def as_solver(
    solver: str | AbstractSolver, options: Mapping[str, Any] | None = None
) -> AbstractSolver:
    """Return a solver from its name and options, or the object itself."""
    if isinstance(solver, AbstractSolver):
        if options:
            raise ValueError(
                f"solver_options={dict(options)} are for solvers given by name; give them to "
                f"{type(solver).__name__} itself."
            )
        return solver
    if not isinstance(solver, str):
        raise TypeError(f"solver={solver!r} must be a name or a solver object.")
    kind = lookup("solver", solver, SOLVERS)
    known = [f.name for f in fields(kind)]
    for name in options or {}:
        if not known:
            raise ValueError(f"solver_options has {name!r}, but solver={solver!r} takes none.")
        if name not in known:
            raise unknown_name("solver_options", name, known)
    return kind(**(options or {}))


def atom_problem(points: Points, mother: AbstractMother, box: Box) -> Function:
    """Ẽ over (γ, c).

    Mothers with a decomposition look the same after half a turn, which is the interval of ψ. c is
    bounded by C and by what it takes to reach twice the largest residual.
    """
    weights = np.asarray(points.weights, np.float64)
    some = weights != 0
    largest = np.abs(points.weighted[some] / weights[some]).max(initial=0.0)
    at_origin = float(mother(jnp.zeros(()), jnp.zeros(())))
    reach = min(max(2.0 * float(largest) / at_origin, 1e-12), points.max_coef)
    both = Box(
        VARIABLES,
        [-np.pi / 2, *box.lower[1:], -reach],
        [np.pi / 2, *box.upper[1:], reach],
        periodic=["psi"],
    )
    return frozen_error(*points[:4], both, mother)
