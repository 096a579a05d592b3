"""JPATS, Algorithm 2 of the paper: learn the patterns of several classes jointly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from patternfold.learning.codecs import PatternsCodec
from patternfold.learning.joint import JointProblem, JointState, Margins, cross_project
from patternfold.learning.joint_atoms import select_jointly
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.joint_start import first_state
from patternfold.learning.journal import recorded
from patternfold.learning.refit.tuning import tune
from patternfold.learning.schedules import margin_scale
from patternfold.learning.several import in_parts
from patternfold.learning.state import ASKED_TO_STOP, INTERRUPTED, STOPPED, Callback, Reporter
from patternfold.learning.terms import Terms
from patternfold.numerics.threads import one_blas_thread


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


def _room(settings: JointSettings, state: JointState) -> bool:
    """Tell whether some pattern may still get an atom."""
    counts = (p.n_atoms for p in state.patterns)
    return any(n < most for n, most in zip(counts, settings.n_atoms, strict=True))


def _tell(
    report: Reporter, problem: JointProblem, state: JointState, errors: Errors, stage: str
) -> bool:
    share = errors.classification / problem.all.weights.sum()
    return report(max(p.n_atoms for p in state.patterns), share, stage)
