"""DC programming: decompositions f = g − h and global minimisation with certificates."""

from patternfold.dc.algebra import DC, variables
from patternfold.dc.base import ByCurvature, ByParts, ByRules, Decomposition
from patternfold.dc.branch_and_bound import branch_and_bound
from patternfold.dc.curvature import by_curvature, hessian_bound
from patternfold.dc.cutting_plane import cutting_plane
from patternfold.dc.decompositions import Atom, frozen_error
from patternfold.dc.function import Function
from patternfold.dc.result import STATUS, Result
from patternfold.dc.vertices import Polytope

__all__ = [
    "DC",
    "STATUS",
    "Atom",
    "ByCurvature",
    "ByParts",
    "ByRules",
    "Decomposition",
    "Function",
    "Polytope",
    "Result",
    "branch_and_bound",
    "by_curvature",
    "cutting_plane",
    "frozen_error",
    "hessian_bound",
    "variables",
]
