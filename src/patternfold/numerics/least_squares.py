"""One least-squares solver: damped Newton steps inside a box, for many small problems at once.

Every problem has its own damping and ends by itself. What costs time, values and derivatives, is
left to a function of all points, the *model*; the small systems are solved by elimination, all of
them at once, so that the whole loop runs on the device. With the Gauss-Newton matrix in place of
the Hessian this is Levenberg-Marquardt. Losses and priors belong into the model, not here.

`minimise` runs the loop inside compiled code; `begin` and `advance` are its parts. `descend` is the
loop for one problem whose model is a sum over chunks of images and that solves its own equations:
a new atom, or the correction of all atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from patternfold.model.box import Box

Points = Float[Array, "B a"]
Scalars = Float[Array, " B"]
Matrices = Float[Array, "B a a"]


@dataclass(frozen=True)
class Damping:
    """How a step is damped and when a problem is done.

    The damping μ multiplies the diagonal of the metric: 1 halves a step. ``tolerance`` is the
    share of its cost that the next step must promise for a problem to go on.
    """

    start: float = 1e-2
    least: float = 1e-7
    most: float = 1e7
    tolerance: float = 1e-6


SMALL = Damping()
"""For many problems of a few unknowns."""

LARGE = Damping(start=0.1, least=1e-10, most=1e8)
"""For one problem of many unknowns, whose curvatures differ more."""


class Model(NamedTuple):
    """The cost near a point of each problem, to second order.

    ``slope`` is half of the negative gradient. ``metric`` is positive, the Gauss-Newton matrix as
    a rule: its diagonal tells the parameters' units. ``hessian`` is half of the Hessian, which may
    have negative curvature; by default the metric stands for it. ``known`` is whatever else is to
    be known of the best point in the end.
    """

    cost: Scalars
    slope: Points
    metric: Matrices
    hessian: Matrices | None = None
    known: Any = None

    @classmethod
    def blank(cls, points: Points, hessian: bool = False) -> Model:
        """Return zeros in the shape of a model at these points."""
        n, dim = points.shape
        matrices = jnp.zeros((n, dim, dim), points.dtype)
        slope = jnp.zeros((n, dim), points.dtype)
        return cls(jnp.zeros(n, points.dtype), slope, matrices, matrices if hessian else None)


class Descent(NamedTuple):
    """Where each problem is: its best point, the model there, the next trial, and whether done."""

    point: Points
    model: Model
    trial: Points
    promised: Scalars
    damping: Scalars
    done: Bool[Array, " B"]


def minimise(
    model_at: Callable[..., Model],
    starts: Points,
    box: Box,
    max_iter: int | Array,
    rounding: Scalars | float = 0.0,
    rule: Damping = SMALL,
    damping: Scalars | None = None,
    like: Model | None = None,
    wanted: Bool[Array, " B"] | None = None,
) -> Descent:
    """Go downhill from every start, at most ``max_iter`` steps; no cost ever rises.

    A step is judged by the evaluation that the next one needs anyway. Decreases below ``rounding``
    are not waited for. For use inside compiled code.

    Parameters
    ----------
    model_at : callable
        The cost and its derivatives at one point of each problem.
    starts : array of shape (B, a)
        Points of the box to start from.
    box : Box
        The domain; periodic parameters wrap around.
    max_iter : int
        Most steps; may be traced.
    rounding : array of shape (B,) or float
        Rounding error of the costs.
    rule : Damping
        How steps are damped.
    damping : array of shape (B,), optional
        Where an earlier descent has left the damping.
    like : Model, optional
        Arrays of the shapes of a model: with them ``model_at`` is traced once, not twice.
    wanted : array of shape (B,), optional
        Which problems are asked; others stay at their starts, at infinite cost. ``model_at`` then
        takes a second argument that marks those under way, and may return anything for the rest.
    """

    def unfinished(carry: tuple[Array, Descent]) -> Array:
        count, state = carry
        return (count <= max_iter) & ~state.done.all()

    def turn(carry: tuple[Array, Descent]) -> tuple[Array, Descent]:
        count, state = carry
        asked = () if wanted is None else (~state.done,)
        model = jax.lax.optimization_barrier(model_at(state.trial, *asked))
        return count + 1, advance(state, model, box, rounding, rule)

    like = jax.eval_shape(model_at, starts) if like is None else like
    first = begin(starts, like, rule, damping)
    first = first if wanted is None else first._replace(done=~wanted)
    return jax.lax.while_loop(unfinished, turn, (jnp.asarray(0), first))[1]


def begin(
    starts: Points, model: Any, rule: Damping = SMALL, damping: Scalars | None = None
) -> Descent:
    """Return the state of all problems before their starts, the first trials, are evaluated.

    ``model`` tells the shapes of a model.
    """
    blank: Model = jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), model)
    cost = jnp.full_like(blank.cost, jnp.inf)
    if damping is None:
        damping = jnp.full_like(cost, rule.start)
    never = jnp.zeros(len(starts), bool)
    return Descent(starts, blank._replace(cost=cost), starts, cost, damping, never)


def advance(
    state: Descent,
    new: Model,
    box: Box,
    rounding: Scalars | float = 0.0,
    rule: Damping = SMALL,
) -> Descent:
    """Judge the trial by the model found there, and propose the next one."""
    better = (new.cost < state.model.cost) & ~state.done
    factor = _damping_factor(state.model.cost - new.cost, state.promised)
    # The first trial is the start itself: it tells nothing about the damping.
    factor = jnp.where(state.done | jnp.isinf(state.promised), 1, factor)
    point, model = _choose(better, (state.trial, new), (state.point, state.model))
    following = _with_next_trial(point, model, state.damping * factor, box, rounding, rule)
    return following._replace(done=following.done | state.done)


def _with_next_trial(
    point: Points,
    model: Model,
    damping: Scalars,
    box: Box,
    rounding: Scalars | float,
    rule: Damping,
) -> Descent:
    damping = jnp.maximum(damping, rule.least)
    step, promised = damped_step(box, point, model, damping)
    enough = rule.tolerance * jnp.abs(model.cost) + rounding
    done = (promised <= enough) | (damping > rule.most)
    return Descent(point, model, box.put_inside(point + step), promised, damping, done)


def held_at_bounds(box: Box, point: Any, slope: Any) -> Any:
    """Mark parameters that are on a bound and want to leave."""
    edge = 1e-6 * box.width
    low, high = np.add(box.lower, edge), np.subtract(box.upper, edge)
    xp = jnp if isinstance(point, jax.Array) else np
    low, high, free = (
        xp.asarray(np.asarray(v, bool if v is box.periodic else point.dtype)).reshape(
            (1,) * (point.ndim - 1) + (-1,)
        )
        for v in (low, high, box.periodic)
    )
    return (((point <= low) & (slope < 0)) | ((point >= high) & (slope > 0))) & ~free


def damped_step(box: Box, point: Points, model: Model, damping: Scalars) -> tuple[Points, Scalars]:
    """Solve (H + μ diag(metric)) δ = slope for each problem, over the parameters free to move.

    Returns δ and the decrease of the cost that it promises. Where the damped Hessian is not
    positive definite, the metric takes its place.
    """
    dtype = point.dtype
    held = held_at_bounds(box, point, model.slope)
    # In units of the box the parameters are comparable, and a small ridge keeps directions in
    # which nothing changes (a round pattern's angle) where they are.
    unit = jnp.where(held, 0, jnp.asarray(box.width, dtype)[None])
    slope, units = model.slope * unit, unit[:, :, None] * unit[:, None, :]
    metric = model.metric * units
    diagonal = jnp.einsum("bkk->bk", metric)
    ridge = 1e-6 * diagonal.max(axis=1, keepdims=True) + jnp.finfo(dtype).tiny
    extra = damping[:, None] * (diagonal + ridge) + 1e-3 * ridge
    extra = jnp.where(held, 1, extra)
    delta, _ = solve_definite(metric, extra, slope)
    curvature = metric
    if model.hessian is not None:
        hessian = model.hessian * units
        newton, definite = solve_definite(hessian, extra, slope)
        delta = jnp.where(definite[:, None], newton, delta)
        curvature = jnp.where(definite[:, None, None], hessian, metric)
    # At most a quarter of the box at a time: derivatives know only the neighbourhood.
    delta = delta * (0.25 / jnp.maximum(jnp.abs(delta).max(axis=1, keepdims=True), 0.25))
    curved = (delta * (curvature * delta[:, None, :]).sum(axis=2)).sum(axis=1)
    return unit * delta, 2 * (delta * slope).sum(axis=1) - curved


def inverse_definite(matrix: Matrices, extra: Points) -> Matrices:
    """Return (A + diag(extra))⁻¹ of positive definite matrices."""
    dim = extra.shape[1]
    eye = jnp.broadcast_to(jnp.eye(dim, dtype=extra.dtype)[None], (len(extra), dim, dim))
    return _eliminate(matrix, extra, eye)[0]


def solve_definite(
    matrix: Matrices, extra: Points, right: Points
) -> tuple[Points, Bool[Array, " B"]]:
    """Solve (A + diag(extra)) z = b for all problems, and tell which are positive definite."""
    solution, definite = _eliminate(matrix, extra, right[:, :, None])
    return solution[:, :, 0], definite


def _eliminate(
    matrix: Matrices, extra: Points, right: Float[Array, "B a r"]
) -> tuple[Float[Array, "B a r"], Bool[Array, " B"]]:
    """Solve (A + diag(extra)) Z = R by elimination, all problems at once.

    Also tells which matrices are positive definite; the solutions of others mean nothing, but are
    finite.
    """
    dim, dtype = right.shape[1], right.dtype
    least = 20 * float(jnp.finfo(dtype).eps)  # below this share of its diagonal a pivot is rounding
    matrix = matrix + extra[:, :, None] * jnp.eye(dim, dtype=dtype)[None]
    # Problems last: the few unknowns would leave vector units idle.
    table = jnp.moveaxis(jnp.concatenate([matrix, right], axis=2), 0, 2)
    size = jnp.abs(jnp.einsum("iib->ib", table[:, :dim]))
    place = jnp.arange(dim)[:, None, None]

    def eliminate(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        table, definite = carry
        row = jax.lax.dynamic_index_in_dim(table, i, 0, keepdims=False)
        column = jax.lax.dynamic_index_in_dim(table, i, 1, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(row, i, 0, keepdims=False)
        own = jax.lax.dynamic_index_in_dim(size, i, 0, keepdims=False)
        sound = pivot > least * own
        row = row / jnp.where(sound, pivot, own + jnp.finfo(dtype).tiny)[None]
        others = table - column[:, None] * row[None]
        return jnp.where(place == i, row[None], others), definite & sound

    start = (table, jnp.ones(len(right), bool))
    # A loop, since XLA would fuse unrolled steps by computing each anew for all that follow.
    table, definite = jax.lax.fori_loop(0, dim, eliminate, start)
    return jnp.moveaxis(table[:, dim:], 2, 0), definite


def descend(start: Any, max_iter: int, tol: float, rule: Damping = LARGE) -> Iterator[Any]:
    """Yield the points of a descent of one problem; the cost falls from each to the next.

    A point has a ``cost``, and ``step(damping)`` returns the point to which a damped step leads,
    with the decrease that was ``promised`` of it. Ends after ``max_iter`` steps, or when one lowers
    the cost, or has promised to, by less than ``tol`` of it: shorter ones would promise still less.
    """
    here, damping = start, rule.start
    for _ in range(max_iter):
        raised = FAILED
        while damping <= rule.most:
            trial = here.step(damping)
            gained = here.cost - trial.cost
            if gained > 0:
                break
            if trial.promised <= tol * here.cost:
                return
            # The more often a step fails, the farther off the damping is.
            damping, raised = raised * damping, 2 * raised
        else:
            return
        here = trial
        factor = float(_damping_factor(np.float64(gained), np.float64(trial.promised)))
        # Where less damping has just failed, it would fail again.
        damping = max(damping * (factor if raised == FAILED else max(factor, 1)), rule.least)
        yield here
        if gained <= tol * here.cost:
            return


FAILED = 4.0
"""Factor of the damping after a step that did not lower the cost."""


def _damping_factor(gained: Any, promised: Any) -> Any:
    """Less damping where the model kept its promise, more where it did not."""
    xp = jnp if isinstance(gained, jax.Array) else np
    share = gained / xp.maximum(promised, xp.finfo(promised.dtype).tiny)
    conditions = [share > 0.75, share > 0.25, share > 0]
    return xp.select(conditions, [xp.asarray(v, share.dtype) for v in (0.2, 0.6, 2.0)], FAILED)


def _choose(first: Bool[Array, " B"], new: Any, old: Any) -> Any:
    """Take the first of two trees of arrays where told so, problem by problem."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(first.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, new, old)
