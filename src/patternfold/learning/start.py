"""How a run begins: reference patterns Ψ, the first λ_i, and the choice among several starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from patternfold.learning.axes import best_axes, has_axes
from patternfold.learning.choose import Choice, Corrected, HeldOut, split
from patternfold.learning.frame import fix_frame
from patternfold.learning.levels import Levels
from patternfold.learning.many import representatives, settle_on_all
from patternfold.learning.pats import Learned, learn
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.project.locate import locate
from patternfold.learning.references import reference_in, reference_patterns
from patternfold.learning.rehearsal import Rehearsal
from patternfold.learning.retune import retuned, with_terms
from patternfold.learning.state import (
    ASKED_TO_STOP,
    INTERRUPTED,
    STOPPED,
    Callback,
    Reporter,
    State,
)
from patternfold.learning.tidy import tidied
from patternfold.model.pattern import Pattern
from patternfold.numerics.compilation import warm_up
from patternfold.numerics.threads import one_blas_thread

RACE_ATOMS = 5
"""Atoms after which the starts are compared."""

CLEARLY = 0.01
"""Share of E by which a start must be ahead then: less tells little about the end."""


def run_at_length(
    problem: Problem,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern | State,
    callback: Callback | None = None,
) -> Learned:
    """Learn from a reference, or go on from an earlier state, and fix the frame of the result.

    Large images are learned from on averages over cells, and everything is corrected on all pixels
    at the end. Ctrl-C ends the run with what there is, as soon as there is an atom.
    """
    if len(problem.observations) == 1:
        problem, settings = _in_its_own_frame(problem, settings)
    with one_blas_thread():
        cells = settings.begun(problem)
        if cells is problem:
            learned = _run(problem, settings, reference, callback)
        else:
            levels = Levels(problem, cells)
            learned = _run(levels.coarse, settings, levels.down(reference), levels.told(callback))
            learned = levels.finish(settings, learned, callback)
        if learned.reason in STOPPED:  # who asked to stop does not want to wait for a better λ
            settings = replace(settings, projection="fixed")
        try:
            problem, state = retuned(problem, learned.state)
            learned = learned._replace(state=state)
            return learned._replace(state=tidied(problem, settings, learned.state, reference))
        except KeyboardInterrupt:
            return learned._replace(reason=INTERRUPTED)


def _in_its_own_frame(problem: Problem, settings: Settings) -> tuple[Problem, Settings]:
    """A single image: its λ is the identity, and there is nothing that tangents could tell."""
    still = replace(settings, projection="fixed", tangent_refinement=False)
    return replace(problem, anchor=0), still


def _run(
    problem: Problem,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern | State,
    callback: Callback | None,
) -> Learned:
    """Learn on the pixels of the problem, from all images or, where they are many, some first."""
    if settings.choose and (parts := split(problem, settings)) is not None:
        some, others = parts
        held = problem.stand_ins(others, problem.weights[others])
        where = some, problem.weights[some]
        energy = float((problem.weights * problem.observations.squares)[some].sum())
        choice = Choice(HeldOut(held, settings, energy))
        return _grow_on_some(problem, settings, reference, callback, *where, choice)
    if settings.choose:
        return _grow(problem, settings, reference, callback, Choice(Corrected(problem)))
    where = representatives(problem, settings)
    if where is None:
        return _grow(problem, settings, reference, callback)
    return _grow_on_some(problem, settings, reference, callback, *where)


def _grow(
    problem: Problem,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern | State,
    callback: Callback | None,
    choice: Choice | None = None,
) -> Learned:
    """Find where to start and learn; as many atoms as the choice says, if there is one."""
    if isinstance(reference, State):
        begun = Learned(reference, [], "", (reference,) if reference.pattern.n_atoms else ())
    else:
        begun = _begin(problem, settings, reference, callback)
    try:
        if begun.reason not in STOPPED and has_axes(problem, settings):
            begun = _with_axes(problem, settings, begun, callback)
        if begun.reason in STOPPED:
            return begun
        if choice is not None:
            return _grow_by_choice(problem, settings, begun, callback, choice)
    except KeyboardInterrupt:
        if not begun.state.pattern.n_atoms:
            raise
        return begun._replace(reason=INTERRUPTED)
    return learn(problem, settings, begun.state, callback, path=begun.path)


def _grow_by_choice(
    problem: Problem,
    settings: Settings,
    begun: Learned,
    callback: Callback | None,
    choice: Choice,
) -> Learned:
    """Learn until further atoms bring little, go back to as many as are worth it, and settle."""
    grown, growing = begun, replace(settings, settle=False)
    if not any([choice(state) for state in begun.trail]):
        grown = learn(problem, growing, begun.state, callback, path=begun.path, enough=choice)
    if grown.reason in STOPPED:
        return grown
    state, last = choice.chosen, choice.states[-1]
    kept = len(grown.path) + state.pattern.n_atoms - last.pattern.n_atoms
    settings = replace(settings, n_atoms=state.pattern.n_atoms)
    ended = learn(problem, settings, state, callback, path=grown.path[:kept])
    return ended if ended.reason in STOPPED else ended._replace(reason=choice.reason)


def _with_axes(
    problem: Problem, settings: Settings, begun: Learned, callback: Callback | None
) -> Learned:
    """Learn as many atoms as a race takes, and choose the axes along which images are stretched."""
    short = _short(settings)
    if begun.state.pattern.n_atoms < short.n_atoms:
        more = learn(problem, short, begun.state, callback, path=begun.path)
        begun = more._replace(trail=begun.trail + more.trail)
    if begun.reason in STOPPED or not begun.state.pattern.n_atoms:
        return begun
    problem, state = retuned(problem, begun.state)
    state = best_axes(problem, settings, state)
    path = [*begun.path[:-1], state.error] if begun.path else []
    return begun._replace(state=state, path=path, trail=(*begun.trail[:-1], state))


def _short(settings: Settings) -> Settings:
    """A run of a few atoms, which another one goes on from."""
    return replace(settings, n_atoms=min(settings.n_atoms, RACE_ATOMS), settle=False)


def _grow_on_some(
    problem: Problem,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern | State,
    callback: Callback | None,
    index: np.ndarray,
    weights: np.ndarray,
    choice: Choice | None = None,
) -> Learned:
    """Grow the pattern on some images and settle on all; E along the path is an estimate."""
    part, lam = problem.stand_ins(index, weights), Rehearsal(problem, settings).lam
    if isinstance(reference, State):
        lam = reference.lam.copy()
    reference = reference_in(problem, part, index, reference)
    grown = _grow(part, settings, reference, callback, choice)
    report = Reporter(callback, len(problem.observations), settings.n_atoms)
    pattern, lam[index], estimate = grown.state
    problem = replace(problem, terms=with_terms(part, *grown.state[:2]).terms)
    state, reason = State(pattern, lam, problem.energy), grown.reason
    try:
        for state in settle_on_all(problem, settings, pattern, lam):
            if reason in STOPPED:  # λ of all images is needed, and no more
                break
            if report(pattern.n_atoms, state.error / problem.energy, "settling on all images"):
                reason = ASKED_TO_STOP
    except KeyboardInterrupt:
        reason = INTERRUPTED
    known = state.lam is not lam  # else nothing is known of E on all images
    scale = state.error / estimate if estimate and known else 1.0
    return Learned(state, [scale * error for error in grown.path], reason)


def _begin(
    problem: Problem,
    settings: Settings,
    reference: str | int | np.ndarray | Pattern,
    callback: Callback | None,
) -> Learned:
    """Find where to start; meanwhile compile, beside it, what is needed next."""
    dtype, rehearsal = problem.observations.dtype, Rehearsal(problem, settings)
    with warm_up(rehearsal.project, dtype):
        references = reference_patterns(problem, settings, reference)
        rehearsal.refine()
    begun = None
    try:
        with warm_up(rehearsal.correct, dtype):
            begun = best_start(problem, settings, references, callback)
    except KeyboardInterrupt:
        if begun is None or not begun.state.pattern.n_atoms:
            raise
        return begun._replace(reason=INTERRUPTED)
    return begun


def best_start(
    problem: Problem,
    settings: Settings,
    references: list[Pattern],
    callback: Callback | None = None,
) -> Learned:
    """Run a few atoms from each reference and keep the run that has come furthest.

    The outcome depends on the first λ_i, the paper's open problem; most bad starts show early. An
    earlier reference gives way only to one that is clearly ahead. When somebody asks to stop, the
    race is over, and the reason says so.
    """
    starts = [start_from(problem, settings, reference) for reference in references]
    if len(starts) == 1:
        return Learned(starts[0], [], "")
    short = _short(settings)
    best, reason = None, ""
    for i, start in enumerate(starts, 1):
        try:
            run = learn(problem, short, start, callback, f"start {i} of {len(starts)}")
        except KeyboardInterrupt:
            if best is None:
                raise
            return best._replace(reason=INTERRUPTED)
        if best is None or _ahead(problem, run.state, best.state):
            best = run
        if run.reason in STOPPED:
            reason = run.reason
            break
    assert best is not None  # there is a reference
    return best._replace(reason=reason)


def _ahead(problem: Problem, new: State, best: State) -> bool:
    """Whether a run is clearly ahead of another: by E at the scales of that other one."""
    problem, best = retuned(problem, best)
    error = new.error if problem.terms is None else problem.error(*new[:2])
    return error < (1 - CLEARLY) * best.error


def start_from(problem: Problem, settings: Settings, reference: Pattern) -> State:
    """Project the images on M(Ψ) and begin with p_0 = 0, lines 3 and 4 of Algorithm 1."""
    where = (problem.observations, [reference], problem.transformation, settings.effort)
    lam = locate(*where, with_bank=True, describe=False).lam[:, 0]
    terms = with_terms(problem, reference, lam).terms
    if terms is not None:
        lam = locate(*where, lam[:, None], describe=False, terms=[terms]).lam[:, 0]
    if problem.anchor is not None:
        _, lam = fix_frame(problem, problem.empty, lam)
    return State(problem.empty, lam, problem.energy)
