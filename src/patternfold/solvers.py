"""Solvers: `patternfold.learning.select.solvers` by its public name."""

from patternfold.learning.select.points import Points
from patternfold.learning.select.solvers import (
    SOLVERS,
    AbstractSolver,
    BranchAndBound,
    CuttingPlane,
    Dca,
    Search,
    as_solver,
)

__all__ = [
    "SOLVERS",
    "AbstractSolver",
    "BranchAndBound",
    "CuttingPlane",
    "Dca",
    "Points",
    "Search",
    "as_solver",
]
