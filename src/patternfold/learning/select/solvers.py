"""Solvers of line 8 of Algorithm 1: the atom (γ, c) that minimises Ẽ, by DC programming.

The scheme is the paper's: a preliminary search locates a good region, and DC programming goes on
in it (section IV-C). ``search``, the default, stands in `patternfold.learning.select.search`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import jax.numpy as jnp
import numpy as np

from patternfold._validation import unknown_name
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


def _cutting_plane(
    function: Function, start: np.ndarray, decomposition: str = "curvature", **options: Any
) -> Result:
    """60 cuts in a region around the start: the paper makes 40 to 60."""
    limits: dict[str, Any] = {"max_iter": 60, "time_limit": 30.0} | options
    region = function.on(narrow(function.box, start, REGION))
    return cutting_plane(DECOMPOSITIONS[decomposition](region), start=start, **limits)


def _branch_and_bound(function: Function, start: np.ndarray, **options: Any) -> Result:
    limits: dict[str, Any] = {"time_limit": 10.0} | options
    region = function.on(narrow(function.box, start, REGION))
    return branch_and_bound(region, start=start, **limits)


def _dca(function: Function, start: np.ndarray, **options: Any) -> Result:
    limits: dict[str, Any] = {"time_limit": 10.0} | options
    return dca_by_regions(function, start, **limits)


DC_SOLVERS: dict[str, Callable[..., Result]] = {
    "cutting-plane": _cutting_plane,
    "branch-and-bound": _branch_and_bound,
    "dca": _dca,
}
"""Solvers by name: functions of Ẽ, a start, and limits as options."""

SOLVERS = ("search", *DC_SOLVERS)
LIMITS = ("max_iter", "time_limit", "tol")


def require_solvable(solver: str, mother: AbstractMother, dictionary: AbstractDictionary) -> None:
    """Refuse components that the solver cannot serve, and name one that can."""
    reason = None if solver not in DC_SOLVERS else unsupported(mother, dictionary)
    if reason is not None:
        raise ValueError(
            f"solver={solver!r} needs a DC decomposition: {reason}. Use solver='search', which "
            "takes any mother function and dictionary."
        )


def check_solver_options(solver: str, options: Mapping[str, Any] | None) -> None:
    """Refuse options that the solver does not know, and limits that are not above zero."""
    known = (*LIMITS, "decomposition") if solver == "cutting-plane" else LIMITS
    for name, value in (options or {}).items():
        if name not in known:
            raise unknown_name("solver_options", name, known)
        if name == "decomposition":
            if value not in DECOMPOSITIONS:
                raise unknown_name("decomposition", value, tuple(DECOMPOSITIONS))
            continue
        kind, word = (Integral, "an integer") if name == "max_iter" else (Real, "a number")
        if not isinstance(value, kind) or not float(value) > 0:
            raise ValueError(f"solver_options[{name!r}]={value!r} must be {word} above 0.")


def solve_atom(
    solver: str,
    points: Points,
    mother: AbstractMother,
    box: Box,
    rng: np.random.Generator,
    options: Mapping[str, Any] | None = None,
) -> tuple[np.ndarray, float]:
    """Return γ and c of the next atom.

    Parameters
    ----------
    solver : str
        A key of `DC_SOLVERS`.
    points : Points
        Residuals and weights of all pixels in the pattern's frame, see `pull_back`.
    mother : mother function
        φ.
    box : Box
        Γ.
    rng : Generator
        For the preliminary search.
    options : dict, optional
        Limits for the solver: ``max_iter``, ``time_limit`` (seconds per atom), ``tol``; for the
        cutting plane also the ``decomposition``.
    """
    function = atom_problem(points, mother, box)
    # A swarm is trapped now and then; two of them hardly ever both.
    swarms = [particle_swarm(function, rng) for _ in range(2)]
    found = min(swarms, key=lambda swarm: swarm.value)
    point = DC_SOLVERS[solver](function, found.point, **dict(options or {})).point
    return box.put_inside(point[:-1]), float(point[-1])


def atom_problem(points: Points, mother: AbstractMother, box: Box) -> Function:
    """Ẽ over (γ, c).

    Mothers with a decomposition look the same after half a turn, which is the interval of ψ. c is
    bounded by what it takes to reach twice the largest residual: where signed weights outweigh,
    Ẽ has no minimum without a bound.
    """
    weights = np.asarray(points.weights, np.float64)
    some = weights != 0
    largest = np.abs(points.weighted[some] / weights[some]).max(initial=0.0)
    at_origin = float(mother(jnp.zeros(()), jnp.zeros(())))
    reach = max(2.0 * float(largest) / at_origin, 1e-12)
    both = Box(
        VARIABLES,
        [-np.pi / 2, *box.lower[1:], -reach],
        [np.pi / 2, *box.upper[1:], reach],
        periodic=["psi"],
    )
    return frozen_error(*points[:4], both, mother)
