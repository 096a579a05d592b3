"""JPATS, Algorithm 2 of the paper: learn the patterns of several classes jointly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from patternfold.learning.acceptance import Acceptance, no_worse
from patternfold.learning.codecs import PatternsCodec
from patternfold.learning.joint import (
    JointProblem,
    JointState,
    Margins,
    cross_project,
    first_projection,
    frozen_squares,
)
from patternfold.learning.journal import recorded
from patternfold.learning.pats import refine_atom, select_atom
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.refit.tuning import tune
from patternfold.learning.run import run
from patternfold.learning.schedules import (
    AlphaInUnits,
    AlphaSchedule,
    BetaSchedule,
    ConstantBeta,
    SigmoidAlpha,
    fit_beta,
    margin_scale,
    sigmoid_slopes,
)
from patternfold.learning.several import in_parts, pattern_names, settled
from patternfold.learning.start import reference_patterns
from patternfold.learning.state import (
    ASKED_TO_STOP,
    INTERRUPTED,
    STOPPED,
    Callback,
    Reporter,
    State,
    telling_part,
)
from patternfold.learning.terms import Terms
from patternfold.model.pattern import Pattern
from patternfold.numerics.threads import one_blas_thread


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
    alpha: AlphaSchedule = field(default_factory=SigmoidAlpha)
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


class Errors(NamedTuple):
    """E_c, the weight of the misclassified images, and E_a."""

    classification: float
    approximation: float


class JointLearned(NamedTuple):
    """The outcome: where the run ended, the errors after each iteration, and why it stopped.

    ``terms`` are those of each pattern.
    """

    state: JointState
    path: list[Errors]
    reason: str
    terms: tuple[Terms | None, ...] | None = None


def learn_jointly(
    problem: JointProblem,
    settings: JointSettings,
    reference: str = "centroid",
    callback: Callback | None = None,
) -> JointLearned:
    """Grow the patterns of all classes: Algorithm 2, and a joint correction at the end.

    Ctrl-C once there are patterns ends the run with what there is.
    """
    report = Reporter(callback, len(problem.labels), max(settings.n_atoms))
    with one_blas_thread():
        problem = in_parts(problem, settings.n_patterns, settings.alone.seed)
        problem, state, margins, reason = first_state(problem, settings, reference, callback)
        settings = _by_pattern(settings, problem, state)
        path = [Errors(*state.errors(problem))]
        if reason in STOPPED:
            return JointLearned(state, path, reason, problem.terms)
        reason = "the number of atoms was reached"
        try:
            for new, stage in stages(problem, settings, state, margins):
                state = new
                path.append(Errors(*state.errors(problem)))
                if _tell(report, problem, state, path[-1], stage):
                    reason = ASKED_TO_STOP
                    break
            else:
                if _room(settings, state):
                    reason = "no further atoms lower the classification error"
        except KeyboardInterrupt:
            if not all(p.n_atoms for p in state.patterns):
                raise
            reason = INTERRUPTED
    return JointLearned(state, path, reason, problem.terms)


def _by_pattern(settings: JointSettings, problem: JointProblem, state: JointState) -> JointSettings:
    """With numbers of atoms by pattern: where chosen, as chosen and those selected jointly."""
    counts = tuple(settings.n_atoms[c] for c in problem.class_of)
    if settings.alone.choose:
        counts = tuple(p.n_atoms + settings.n_joint for p in state.patterns)
    return replace(settings, n_atoms=counts)


def stages(
    problem: JointProblem, settings: JointSettings, state: JointState, margins: Margins
) -> Iterator[tuple[JointState, str]]:
    """Yield every better state, with the name of the stage that has found it."""
    # A class that was learned alone may have ended before it had all its atoms; so be it.
    for selected in iterations(problem, settings, state, margins) if settings.n_joint else ():
        state = selected
        yield state, "joint selection"
    if not all(p.n_atoms for p in state.patterns):  # nothing to correct: no atom was accepted
        return
    for tuned in tune(problem, state, settings.alpha, settings.alone.effort, settings.n_tuning):
        yield tuned, "joint correction"


def first_state(
    problem: JointProblem,
    settings: JointSettings,
    reference: str,
    callback: Callback | None,
) -> tuple[JointProblem, JointState, Margins, str]:
    """Learn the first atoms of each pattern alone, and project every image on every manifold.

    Without such atoms the first λ_i^{m,r} come from reference patterns Ψ^m and p_0^m = 0: lines 3
    to 5 of Algorithm 2. So do the first r_i^m and f_0: to manifolds of nothing all images are
    equally far. The problem comes back with the loss and the prior of each pattern, and with its
    images. The last result tells why learning stopped, if somebody asked for it.
    """
    counts = [settings.n_atoms[c] - settings.n_joint for c in problem.class_of]
    if min(counts) <= 0 < max(counts):
        raise ValueError("n_joint must be below n_atoms of every class, or of none.")
    effort, reason = settings.alone.effort, ""
    if max(counts) > 0:
        first, reason = first_patterns(problem, settings, counts, reference, callback)
        patterns = tuple(state.pattern for state in first)
        own = [state.lam for state in first]
        problem = problem.with_terms(patterns, own)
        found = first_projection(problem, patterns, effort, own)
        if reason not in STOPPED:
            problem, found = settled(problem, settings.alone, found)
        return problem, found, found.margins(problem.labels), reason
    one = replace(settings.alone, n_starts=1)
    references = [reference_patterns(own, one, reference)[0] for own in problem.classes]
    found = cross_project(problem, tuple(references), effort)
    problem = problem.reassigned(found)
    own = [found.lam[problem.own(m), m] for m in range(problem.n_patterns)]
    problem = problem.with_terms(references, own)
    empty = (problem.all.empty,) * problem.n_patterns
    squares = frozen_squares(problem, empty, found.lam)
    state = JointState(empty, found.lam, squares, problem.owners)
    return problem, state, found.margins(problem.labels), reason


def first_patterns(
    problem: JointProblem,
    settings: JointSettings,
    counts: list[int],
    reference: str,
    callback: Callback | None,
) -> tuple[tuple[State, ...], str]:
    """Learn so many atoms of each pattern alone.

    Ctrl-C is raised unless every class has its patterns. When the callback asks to stop, those
    that are left get an atom each: a model needs all of them.
    """
    states, reason = [], ""
    classes = problem.names or tuple(f"class {c}" for c in range(problem.n_classes))
    names = pattern_names(classes, problem.class_of)
    for m, (own, count) in enumerate(zip(problem.classes, counts, strict=True)):
        alone = replace(settings.alone, n_atoms=count)
        if reason == ASKED_TO_STOP:
            alone = replace(alone, n_atoms=1, choose=False)
        tell = None if reason == ASKED_TO_STOP else telling_part(callback, m, names)
        learned = run(own, alone, reference, tell)
        states.append(learned.state)
        if learned.reason in STOPPED:
            reason = learned.reason
        if reason == INTERRUPTED and len(states) < problem.n_patterns:
            raise KeyboardInterrupt
    return tuple(states), reason


def iterations(
    problem: JointProblem, settings: JointSettings, state: JointState, margins: Margins
) -> Iterator[JointState]:
    """Yield each accepted state: the repeat loop of Algorithm 2.

    ``margins`` are those before the first iteration. Where the updates are rejected, atoms are
    selected anew with the next α and β; ``patience`` rejections in a row tell that E_c has
    converged.
    """
    rng = np.random.default_rng(settings.alone.seed)
    codec = PatternsCodec(problem.all.empty, rng)
    labels, effort = problem.labels, settings.alone.effort
    scale, rejected, j = margin_scale(margins.f, state.own_squares(labels)), 0, 0
    beta = settings.beta.start(scale)
    while rejected < settings.patience and _room(settings, state):
        j += 1
        alpha = settings.alpha(j, scale)
        how = (problem, settings, state, margins, alpha, beta, rng)
        patterns = recorded("joint atoms", codec, select_jointly, *how)
        new, accepted = state, None
        if patterns != state.patterns:
            new = cross_project(problem, patterns, effort, state.lam, settings.everywhere)
            accepted = settings.acceptance(problem, state, new)
        if margins.f.any():
            beta = settings.beta(margins.f, new.margins(labels).wrong)
        rejected = rejected + 1 if accepted is None else 0
        if accepted is not None:
            state, margins = accepted, accepted.margins(labels)
            problem = problem.reassigned(state)
            scale = margin_scale(margins.f, state.own_squares(labels))
            yield state


def select_jointly(
    problem: JointProblem,
    settings: JointSettings,
    state: JointState,
    margins: Margins,
    alpha: float,
    beta: float,
    rng: np.random.Generator,
) -> tuple[Pattern, ...]:
    """Choose one atom per pattern on the joint Ẽ, then on Ê: lines 9 to 11 of Algorithm 2.

    With r_i^m, λ_i^{m,r} and the pattern of each image fixed, both errors are sums over patterns,
    so that minimising them jointly is minimising them pattern by pattern. The base values f_0 are
    refreshed as often as ``n_base_updates`` says.
    """
    f, patterns = margins.f, state.patterns
    for _ in range(settings.n_base_updates):
        eta = sigmoid_slopes(f, beta)
        patterns = tuple(
            _with_atom(problem, settings, state, m, margins, alpha * eta, rng)
            for m in range(problem.n_patterns)
        )
        squares = frozen_squares(problem, patterns, state.lam)
        rows = np.arange(len(f))
        f = squares[rows, problem.pattern_of] - squares[rows, margins.rival]
    return patterns


def _with_atom(
    problem: JointProblem,
    settings: JointSettings,
    state: JointState,
    m: int,
    margins: Margins,
    pull: np.ndarray,
    rng: np.random.Generator,
) -> Pattern:
    """Return p^m with the atom that lowers the errors of its images, if it is significant."""
    pattern = state.patterns[m]
    if pattern.n_atoms >= settings.n_atoms[m] or not len(problem.own(m)):
        return pattern
    signed, lam = signed_problem(problem, state, m, margins, pull)
    here = State(pattern, lam, 0.0)
    gamma, coef = select_atom(signed, settings.jointly, here, rng)
    if settings.alone.tangent_refinement and coef:
        gamma, coef = refine_atom(signed, settings.jointly, here, gamma, coef)
    largest = np.abs(pattern.coef).max(initial=0.0)
    if not coef or abs(coef) < settings.significance * largest:
        return pattern
    return pattern.add_atom(coef, gamma)


def signed_problem(
    problem: JointProblem, state: JointState, m: int, margins: Margins, pull: np.ndarray
) -> tuple[Problem, np.ndarray]:
    """Images that bear on p^m with signed weights, and their λ: own ones and impostors R^m.

    Own images weigh w_i(1 + α η_i), impostors −w_i α η_i; ``pull`` is α η.
    """
    own, impostors = problem.own(m), margins.impostors(m)
    weights = problem.all.weights
    own_weights = weights[own] * (1 + pull[own])
    part, index = problem.signed(m, own_weights, impostors, -(weights * pull)[impostors])
    return part, state.lam[index, m]


def _room(settings: JointSettings, state: JointState) -> bool:
    """Tell whether some pattern may still get an atom."""
    counts = (p.n_atoms for p in state.patterns)
    return any(n < most for n, most in zip(counts, settings.n_atoms, strict=True))


def _tell(
    report: Reporter, problem: JointProblem, state: JointState, errors: Errors, stage: str
) -> bool:
    share = errors.classification / problem.all.weights.sum()
    return report(max(p.n_atoms for p in state.patterns), share, stage)
