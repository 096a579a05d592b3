"""PATS, Algorithm 1 of the paper: learn a pattern and all λ_i by selecting atoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from patternfold.learning.codecs import StateCodec
from patternfold.learning.effort import PAPER
from patternfold.learning.frame import fix_frame
from patternfold.learning.journal import recorded
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.project.locate import locate, locate_by_lines
from patternfold.learning.refit.coefficients import correct_coefficients
from patternfold.learning.refit.correct import correct_all, least_useful
from patternfold.learning.retune import retuned
from patternfold.learning.select.points import gather, pull_back
from patternfold.learning.select.refine import refine_frozen_on_pixels, refine_tangent
from patternfold.learning.state import ASKED_TO_STOP, INTERRUPTED, Callback, Reporter, State
from patternfold.model.pattern import Pattern
from patternfold.numerics.interrupts import check_interrupts

GATHERED_WIDTH = 1.35
"""Half the side of the square on which residuals are gathered. Pixels of images that are scaled
down and shifted lie well outside the window; leaving them out misjudges atoms at its border."""

PROJECTIONS = ("global", "local", "line-search", "fixed")
"""How the λ_i are updated after each atom."""

SCALE_ROUNDS = 2
"""Times that everything is corrected again at a new scale of the loss."""

ALWAYS_UP_TO, THEN_EVERY = 8, 3
"""Up to so many atoms λ is searched over the box, and all atoms are corrected, after every one;
then after every third."""


class Learned(NamedTuple):
    """The outcome of a run: where it ended, E after each atom, and why it stopped.

    ``trail`` holds the states after each atom, before everything settled.
    """

    state: State
    path: list[float]
    reason: str
    trail: tuple[State, ...] = ()


def learn(
    problem: Problem,
    settings: Settings,
    start: State,
    callback: Callback | None = None,
    stage: str = "learning",
    path: Sequence[float] = (),
    enough: Callable[[State], bool] | None = None,
) -> Learned:
    """Grow the pattern of ``start`` atom by atom: the repeat loop of Algorithm 1.

    ``path`` holds E after each atom that ``start`` has already; ``enough``, asked after each atom,
    tells whether it was the last one. Ctrl-C after the first atom ends
    the run with what there is; whoever called must look at the reason and end, too.
    """
    report = Reporter(callback, len(problem.observations), settings.n_atoms)
    rng = np.random.default_rng(settings.seed)
    codec = StateCodec(problem.empty, rng)
    state, path, trail = start, list(path), []
    reason = "the number of atoms was reached"
    rounding = (10 * np.finfo(problem.observations.dtype).eps) ** 2 * problem.energy
    try:
        check_interrupts()
        problem, state = retuned(problem, state)
        while state.pattern.n_atoms < settings.n_atoms:
            if state.error <= rounding:
                reason = "the images are matched to rounding"
                break
            new = recorded("atom", codec, step, problem, settings, state, rng)
            if new.error >= state.error:
                reason = "no further atom lowers the error"
                break
            improvement = (state.error - new.error) / state.error
            problem, state = retuned(problem, new)
            path.append(state.error)
            trail.append(state)
            if report(state.pattern.n_atoms, state.error / problem.energy, stage):
                reason = ASKED_TO_STOP
                break
            if improvement < settings.tol:
                reason = f"an atom lowered the error by less than tol={settings.tol:g}"
                break
            if enough is not None and enough(state):
                reason = "further atoms bring little"
                break
        if settings.refit == "all" and settings.settle and path and reason != ASKED_TO_STOP:
            for settled in settle(problem, settings, state, rng):
                state = settled
                path[-1] = state.error
                if report(state.pattern.n_atoms, state.error / problem.energy, "settling"):
                    reason = ASKED_TO_STOP
                    break
    except KeyboardInterrupt:
        if not state.pattern.n_atoms:
            raise
        reason = INTERRUPTED
    return Learned(state, path, reason, tuple(trail))


def step(problem: Problem, settings: Settings, state: State, rng: np.random.Generator) -> State:
    """Select an atom, add it, update the λ_i: the loop body of Algorithm 1."""
    gamma, coef = select_atom(problem, settings, state, rng)
    atoms = [(gamma, coef)]
    if settings.tangent_refinement:
        atoms.insert(0, refine_atom(problem, settings, state, gamma, coef))
    new, how = state, projection_after(settings, state.pattern.n_atoms + 1)
    for gamma, coef in atoms:
        pattern = state.pattern.add_atom(coef, gamma)
        new = update_parameters(problem, settings, how, pattern, state.lam)
        # Ê is an approximation and may mislead; the atom that minimises Ẽ lowers E for certain.
        if new.error < state.error or settings.stop_on_increase:
            break
    return correct(problem, settings, new) if correction_after(settings, new) else new


def select_atom(
    problem: Problem, settings: Settings, state: State, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Choose γ and c of the next atom by minimising Ẽ, line 8 of Algorithm 1."""
    images = problem.reweighted(*state[:2], problem.whole)
    distance = problem.by_squares().distance(state.pattern)
    solver, family = settings.solver, problem.family
    if solver.gathered:
        points = gather(images, state.lam, distance, problem.grid.pixel, GATHERED_WIDTH)
    else:
        points = pull_back(images, state.lam, distance)
    box, points = problem.atom_box, points._replace(max_coef=settings.max_coef)
    gamma, coef = solver(points, family.mother, family.dictionary, box, rng)
    if not solver.gathered or settings.refit == "all":
        return gamma, coef
    # Nothing later mends what gathering the pixels on nodes has blurred.
    return refine_frozen_on_pixels(
        gamma, images, state.lam, distance, box, settings.max_coef, max_iter=10
    )


def refine_atom(
    problem: Problem, settings: Settings, state: State, gamma: np.ndarray, coef: float
) -> tuple[np.ndarray, float]:
    """Improve the new atom on Ê, line 9 of Algorithm 1."""
    # What part of the pixels leaves open, the correction mends.
    sampling = problem.sparse if settings.refit == "all" else problem.whole
    distance = problem.by_squares().distance(state.pattern, sampling)
    images = problem.reweighted(*state[:2], sampling)
    where = (images, state.lam, distance, problem.atom_box)
    return refine_tangent(gamma, coef, *where, settings.max_coef)


def projection_after(settings: Settings, n_atoms: int) -> str:
    """How λ is updated after this atom; a global search may wait where the correction moves λ."""
    wait = may_wait(settings, n_atoms) and settings.projection == "global"
    return "local" if wait else settings.projection


def correction_after(settings: Settings, state: State) -> bool:
    """Whether all atoms are corrected after this one."""
    n_atoms = state.pattern.n_atoms
    due = n_atoms in (1, settings.n_atoms) or n_atoms % settings.correct_every == 0
    return due and not may_wait(settings, n_atoms)


def may_wait(settings: Settings, n_atoms: int) -> bool:
    """Tell atoms after which little changes: what they leave open is done after the next ones."""
    late = ALWAYS_UP_TO < n_atoms < settings.n_atoms and n_atoms % THEN_EVERY != 0
    return late and settings.refit == "all"


def update_parameters(
    problem: Problem, settings: Settings, how: str, pattern: Pattern, lam: np.ndarray
) -> State:
    """Project the images on the new manifold; an image keeps its λ if nothing better is found.

    So does the anchor in any case: the pattern's frame is its own.
    """
    if how == "fixed":
        return State(pattern, lam, problem.error(pattern, lam))
    terms = None if problem.terms is None else [problem.terms]
    where = (problem.observations, [pattern], problem.transformation)
    if how == "line-search":
        found = locate_by_lines(*where, PAPER, lam[:, None], terms)
    else:
        # A run that searches globally now and then has that code compiled anyway.
        scope = (how == "global", settings.projection == "global")
        found = locate(*where, settings.effort, lam[:, None], *scope, describe=False, terms=terms)
    if problem.anchor is not None:
        held = np.array(found.lam[:, 0])
        held[problem.anchor] = lam[problem.anchor]
        return State(pattern, held, problem.error(pattern, held))
    error = problem.total(found.square[:, 0].astype(np.float64))
    return State(pattern, found.lam[:, 0], error)


def correct(problem: Problem, settings: Settings, state: State) -> State:
    """Improve what was chosen before, as ``refit`` says; E never rises."""
    if settings.refit == "coefficients":
        images = problem.reweighted(*state[:2], problem.whole)
        pattern, error = correct_coefficients(*state[:2], images, problem.transformation)
        new = State(pattern, state.lam, error)
        if problem.terms is not None:
            new = new._replace(error=problem.error(pattern, state.lam))
    elif settings.refit == "all":
        # A few steps on part of the pixels will do while the pattern grows; the first atoms, on
        # which all others build, get some more.
        start = problem.equations(*state[:2], problem.sparse, settings.projection != "fixed")
        pattern, lam, _ = correct_all(start, max_iter=max(5, 15 // state.pattern.n_atoms))
        if settings.projection != "fixed":
            pattern, lam = fix_frame(problem, pattern, lam)
        new = polished(problem, settings, pattern, lam)
    else:
        return state
    return new if new.error < state.error else state


def correct_at_length(problem: Problem, settings: Settings, state: State) -> State:
    """Let all atoms and λ_i settle, on all pixels or amply many."""
    state = correct(problem, settings, state)
    # Many steps where each brings much, as towards an exact fit; few where they bring little.
    start = problem.equations(*state[:2], problem.ample, settings.projection != "fixed")
    # Under a loss outliers make up much of E, which no step lowers.
    tol = 1e-5 if problem.reweights else 5e-4
    pattern, lam, _ = correct_all(start, max_iter=40, tol=tol)
    if problem.anchor is not None and settings.projection != "fixed":
        pattern, lam = fix_frame(problem, pattern, lam)
    new = polished(problem, settings, pattern, lam)
    return min(state, new, key=lambda s: s.error)


def polished(problem: Problem, settings: Settings, pattern: Pattern, lam: np.ndarray) -> State:
    """λ_i improved on all pixels: part of them tells the atoms well, but single images less so."""
    how = "fixed" if settings.projection == "fixed" else "local"
    return update_parameters(problem, settings, how, pattern, lam)


def settle(problem: Problem, settings: Settings, state: State, rng: np.random.Generator) -> Any:
    """Correct everything at length, then exchange atoms as long as that lowers E.

    Yields each improved state. An exchange takes out the atom that is missed least and selects
    another in its place: a way out of where greedy selection has led.
    """
    codec, first = StateCodec(problem.empty, rng), (settings.projection, *state[:2])
    state = recorded("located", codec, update_parameters, problem, settings, *first)
    settled = recorded("settled", codec, correct_at_length, problem, settings, state)
    problem, state = retuned(problem, settled)
    for _ in range(SCALE_ROUNDS if problem.reweights else 0):
        problem, state = retuned(problem, correct_at_length(problem, settings, state))
    yield state
    for _ in range(settings.n_exchanges if state.pattern.n_atoms > 1 else 0):
        new = recorded("exchange", codec, exchanged, problem, settings, state, rng)
        if new.error > (1 - 1e-4) * state.error:
            break
        problem, state = retuned(problem, new)
        yield state


def exchanged(
    problem: Problem, settings: Settings, state: State, rng: np.random.Generator
) -> State:
    """Take out the atom that is missed least, select another, and correct everything."""
    least = least_useful(problem.equations(*state[:2], problem.sparse, False))
    others = state.pattern.take(np.arange(state.pattern.n_atoms) != least)
    reduced = State(others, state.lam, problem.error(others, state.lam))
    new = step(problem, settings, correct(problem, settings, reduced), rng)
    return correct_at_length(problem, settings, new)
