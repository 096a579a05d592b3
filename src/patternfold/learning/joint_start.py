"""Where JPATS begins: the first atoms of each pattern, learned alone, or none."""

from __future__ import annotations

from dataclasses import replace

from patternfold.learning.joint import (
    JointProblem,
    JointState,
    Margins,
    cross_project,
    first_projection,
    frozen_squares,
)
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.references import reference_patterns
from patternfold.learning.run import run
from patternfold.learning.several import pattern_names, settled
from patternfold.learning.state import (
    ASKED_TO_STOP,
    INTERRUPTED,
    STOPPED,
    Callback,
    State,
    telling_part,
)


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
    begun = [one.begun(own) for own in problem.classes]
    references = [reference_patterns(own, one, reference)[0] for own in begun]
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
