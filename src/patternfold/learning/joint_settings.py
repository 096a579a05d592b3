"""How JPATS runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from patternfold.learning.acceptance import Acceptance, no_worse
from patternfold.learning.joint import JointProblem
from patternfold.learning.problem import Settings
from patternfold.learning.schedules import (
    MODERATE_ALPHA,
    AlphaInUnits,
    AlphaSchedule,
    BetaSchedule,
    ConstantBeta,
    fit_beta,
)


@dataclass(frozen=True)
class JointSettings:
    """How JPATS runs; the estimator `JPATS` documents each of them.

    ``n_atoms`` and ``n_patterns`` are numbers by class; without the latter each class has one.
    """

    alone: Settings
    n_atoms: tuple[int, ...]
    n_patterns: tuple[int, ...] = ()
    n_joint: int = 4
    max_coef: float = 1.0
    alpha: AlphaSchedule = MODERATE_ALPHA
    beta: BetaSchedule | ConstantBeta = field(default_factory=lambda: BetaSchedule(fit_beta))
    n_base_updates: int = 1
    significance: float = 0.01
    acceptance: Acceptance = no_worse
    patience: int = 3
    n_tuning: int = 30

    @property
    def jointly(self) -> Settings:
        """How an atom is selected with signed weights: c has its box."""
        return replace(self.alone, max_coef=self.max_coef)

    @property
    def joint(self) -> bool:
        """Whether anything is done jointly; otherwise every class is learned as by PATS."""
        return self.n_joint > 0 or self.n_tuning > 0

    @property
    def everywhere(self) -> bool:
        """Whether λ^{m,r} are searched over all of Λ after each iteration."""
        return self.alone.projection == "global"

    def in_units_of(self, problem: JointProblem) -> JointSettings:
        """The same for images that are brighter or darker than the paper's, which have unit norm.

        α weighs images against squared distances, and β a squared distance, so that both depend on
        the unit of the images.
        """
        square = problem.all.energy / problem.all.weights.sum()
        alpha = AlphaInUnits(self.alpha, square)
        return replace(self, alpha=alpha, beta=self.beta.in_units(square))
