"""DC programming: decompositions f = g − h and global minimisation with certificates."""

from patternfold.dc.algebra import DC, variables
from patternfold.dc.base import ByCurvature, ByParts, ByRules, Decomposition
from patternfold.dc.blocks import Restricted, minimise_blocks
from patternfold.dc.branch_and_bound import branch_and_bound
from patternfold.dc.curvature import by_curvature, hessian_bound
from patternfold.dc.cutting_plane import cutting_plane
from patternfold.dc.dca import cccp, dca, dca_by_regions
from patternfold.dc.decompositions import Atom, frozen_error
from patternfold.dc.function import Function
from patternfold.dc.preliminary import (
    coarse_grid,
    differential_evolution,
    narrow,
    particle_swarm,
)
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
    "Restricted",
    "Result",
    "branch_and_bound",
    "by_curvature",
    "cccp",
    "coarse_grid",
    "cutting_plane",
    "dca",
    "dca_by_regions",
    "differential_evolution",
    "frozen_error",
    "hessian_bound",
    "minimise_blocks",
    "narrow",
    "particle_swarm",
    "variables",
]
