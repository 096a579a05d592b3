"""Solvers: certified optima of known problems and of Ẽ on real residuals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dc_problems import ATOM, BOX, problem

from patternfold import Box
from patternfold.dc import (
    STATUS,
    ByCurvature,
    ByParts,
    ByRules,
    Decomposition,
    Function,
    Restricted,
    Result,
    branch_and_bound,
    by_curvature,
    cccp,
    coarse_grid,
    cutting_plane,
    dca,
    differential_evolution,
    minimise_blocks,
    narrow,
    particle_swarm,
)
from patternfold.dc.dca import convex_step
from patternfold.dc.elementary import sin, square
from patternfold.dc.preliminary import grid_points

pytestmark = pytest.mark.usefixtures("compiled_well")  # a search runs for long


def wave(x: Any) -> Any:
    return sin(x[0]) + sin(x[0] * (10 / 3))


def camel(x: Any) -> Any:
    a, b = square(x[0]), square(x[1])
    return 4 * a - 2.1 * square(a) + a * square(a) * (1 / 3) + x[0] * x[1] - 4 * b + 4 * square(b)


def bumps(x: Any) -> Any:
    """Styblinski and Tang's function, 2^s minima."""
    terms = [0.5 * square(square(v)) - 8 * square(v) + 2.5 * v for v in x]
    return sum(terms[1:], terms[0])


def bumps3(x: Any) -> Any:
    return bumps([x[i] for i in range(3)])


def bumps4(x: Any) -> Any:
    return bumps([x[i] for i in range(4)])


def cube(dim: int, half: float) -> Box:
    return Box([f"x{i}" for i in range(dim)], [-half] * dim, [half] * dim)


KNOWN: dict[str, tuple[Callable[..., Any], Box, float, list[float]]] = {
    "wave": (wave, Box(["x"], [2.7], [7.5]), -1.899599, [5.145735]),
    "camel": (camel, Box(["x", "y"], [-2.0, -1.0], [2.0, 1.0]), -1.031628, [0.0898, -0.7126]),
    "bumps3": (bumps3, cube(3, 5.0), -117.498497, [-2.903534] * 3),
    "bumps4": (bumps4, cube(4, 5.0), -156.664663, [-2.903534] * 4),
}

SOLVERS: dict[str, Callable[[Function], Result]] = {
    "cutting plane": lambda f: cutting_plane(ByRules(f), max_iter=3000),
    "branch and bound": branch_and_bound,
    "branch and bound by parts": lambda f: branch_and_bound(ByRules(f)),
}


def assert_certified(found: Result, function: Function, n_sample: int = 20_000) -> None:
    """The gap is closed, and no point of a dense sample lies below the bound."""
    assert found.status == "certified"
    assert found.gap <= 1e-3
    assert function.box.contains(found.point[None])[0]
    assert function.values(found.point[None])[0] == pytest.approx(found.value, rel=1e-12)
    sample = function.box.sample(np.random.default_rng(1), n_sample)
    assert function.values(sample).min() >= found.lower_bound
    assert found.lower_bound <= found.value
    bounds = np.array(found.history)
    if len(bounds):
        assert (np.diff(bounds[:, 0]) <= 0).all()  # values fall, bounds rise
        assert (np.diff(bounds[:, 1]) >= 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KNOWN)
def test_known_optima(name: str, solver: str) -> None:
    formula, box, value, point = KNOWN[name]
    function = Function(formula, box)
    found = SOLVERS[solver](function)
    assert_certified(found, function)
    assert found.lower_bound <= value + 1e-6 * abs(value)  # the printed digits
    assert found.value == pytest.approx(value, rel=1e-3)
    if name != "camel":  # which has two
        assert found.point == pytest.approx(point, abs=0.15)


@pytest.mark.parametrize("free", [["tau_x"], ["psi"], ["tau_x", "tau_y"], ["sigma_x", "sigma_y"]])
@pytest.mark.parametrize("solver", ["cutting plane", "branch and bound"])
def test_frozen_error_is_certified(free: list[str], solver: str) -> None:
    """One and two free parameters on real residuals, against a brute-force grid."""
    function = Restricted(problem(), free, ATOM)
    if solver == "cutting plane":
        found = cutting_plane(by_curvature(function, max_boxes=2048), max_iter=3000)
    else:
        found = branch_and_bound(function)
    assert_certified(found, function, 2000)
    grid = grid_points(function.box, 2000 if len(free) == 1 else 60)
    values = function.values(grid)
    assert values.min() >= found.lower_bound
    # The grid is as good as its spacing; it must not beat the solver by more than the gap.
    assert found.value <= values.min() * (1 + 1e-3)
    assert found.value < 0.98 * np.median(values)


def test_signed_weights_are_certified() -> None:
    function = Restricted(problem(signed=True), ["tau_x", "coef"], ATOM)
    found = branch_and_bound(function)
    assert_certified(found, function, 4000)
    plane = cutting_plane(by_curvature(function, 512), max_iter=2000)
    assert plane.lower_bound <= found.value
    assert found.lower_bound <= plane.value


def test_a_wrong_curvature_gives_a_wrong_certificate() -> None:
    """The checks above can fail: with too small a ρ the bound passes points of f."""
    function = Function(camel, KNOWN["camel"][1])
    wrong = cutting_plane(ByCurvature(function, [0.1, 0.1]), max_iter=300)
    sample = function.values(function.box.sample(np.random.default_rng(1), 20_000))
    assert wrong.lower_bound > sample.min() + 1e-3
    with pytest.raises(AssertionError):
        assert_certified(wrong, function)


@pytest.mark.parametrize("imq", [False, True], ids=["gaussian", "inverse-multiquadric"])
def test_six_variables(imq: bool) -> None:
    """Few cuts do not close the gap of the whole problem; bounds are sound all the same."""
    function = problem(narrow(BOX, ATOM, 0.15), imq)
    start = function.box.centre
    value = function.values(start[None])[0]
    pair = by_curvature(function, max_boxes=64)
    plane = cutting_plane(pair, start=start, max_iter=60)
    boxes = branch_and_bound(function, start=start, max_iter=10)
    local = dca(pair, start, max_iter=30)
    sample = function.values(function.box.sample(np.random.default_rng(0), 4000)).min()
    for found in (plane, boxes, local):
        assert found.status in {"max-iter", "converged"}
        assert found.value <= value
        assert found.lower_bound <= min(sample, local.value)
    assert plane.n_vertices > 1000
    assert boxes.lower_bound > 0.02 * boxes.value
    assert boxes.value < value


def test_limits_are_told() -> None:
    function = Function(bumps4, KNOWN["bumps4"][1])
    pair = ByRules(function)
    for found, status in (
        (cutting_plane(pair, max_iter=3), "max-iter"),
        (cutting_plane(pair, time_limit=0.0), "time-limit"),
        (cutting_plane(pair, max_vertices=40), "max-vertices"),
        (branch_and_bound(function, max_iter=2), "max-iter"),
        (branch_and_bound(function, time_limit=0.0), "time-limit"),
        (branch_and_bound(function, max_boxes=40), "max-boxes"),
        (dca(pair, np.ones(4), max_iter=1, tol=0), "max-iter"),
        (dca(pair, np.ones(4), time_limit=0.0), "time-limit"),
    ):
        assert found.status == status
        assert found.message == STATUS[status]
        assert found.gap > 1e-3


def test_a_convex_problem_needs_few_cuts() -> None:
    pair = ByParts(lambda x: ((x - 0.3) ** 2).sum() + 1, lambda x: 0 * x.sum(), cube(2, 1.0))
    found = cutting_plane(pair)
    assert found.status == "certified"
    assert found.point == pytest.approx([0.3, 0.3], abs=0.05)
    assert found.n_iter < 40


def known_pair() -> tuple[Function, Decomposition]:
    function = Function(bumps3, KNOWN["bumps3"][1])
    return function, ByRules(function)


def test_dca_descends_to_a_stationary_point() -> None:
    function, pair = known_pair()
    start = np.array([-1.0, -2.0, 1.0])
    found = dca(pair, start)
    values = np.array(found.history)[:, 0]
    assert (np.diff(values) <= 0).all()
    assert found.value < function.values(start[None])[0]
    # Steps end when f falls by less than 1e-7 of it: slopes are then some 1e-2.
    assert np.abs(function.gradients(found.point[None])[1]).max() < 0.05
    assert found.status == "converged"
    assert found.point == pytest.approx([-2.9035, -2.9035, 2.7468], abs=1e-2)


def test_dca_and_cccp_are_one_iteration_inside_the_box() -> None:
    """CCCP asks for ∇g(x⁺) = ∇h(x)."""
    _, pair = known_pair()
    x = np.array([-1.0, -2.0, 1.0])
    new = convex_step(pair, x)
    slopes = pair.g(new[None])[1][0], pair.h(x[None])[1][0]
    # The inner search stops at 1e-13 of its decrease.
    np.testing.assert_allclose(*slopes, rtol=1e-4)
    assert np.abs(new - x).max() > 0.1
    assert cccp is dca


def test_dca_stays_in_the_box() -> None:
    pair = ByParts(lambda x: (x**2).sum(), lambda x: 3 * x.sum(), cube(2, 1.0))
    found = dca(pair, np.zeros(2))
    np.testing.assert_allclose(found.point, 1.0, atol=1e-9)


def test_preliminary_searches_and_narrowing() -> None:
    function = Function(bumps3, KNOWN["bumps3"][1])
    grid = coarse_grid(function, 7)
    cells = grid_points(function.box, 7)
    assert len(cells) == 343
    assert grid.value == pytest.approx(function.values(cells).min())
    swarm = particle_swarm(function, np.random.default_rng(0), max_iter=60)
    evolved = differential_evolution(function, seed=0)
    for found in (swarm, evolved):
        assert found.value == pytest.approx(-117.4985, rel=1e-3)
        assert found.status == "searched"
    region = narrow(function.box, np.array([-4.9, 0.0, 4.0]), 0.2)
    np.testing.assert_allclose(region.width, 2.0)
    np.testing.assert_allclose(region.lower, [-5.0, -1.0, 3.0])
    # Global search, then DC: lower than the search alone.
    better = cutting_plane(
        ByRules(function.on(narrow(function.box, grid.point, 0.3))), start=grid.point
    )
    assert better.value < grid.value


def test_blocks_of_variables() -> None:
    function = Function(bumps4, KNOWN["bumps4"][1])
    found = minimise_blocks(
        function,
        [["x0", "x1"], ["x2", "x3"]],
        lambda part, start: cutting_plane(ByRules(part), start=start, max_iter=500),
        np.ones(4),
    )
    # The function is separable, so that its blocks find the global minimum.
    assert found.value == pytest.approx(-156.664663, rel=1e-3)
    assert found.status == "converged"
    assert found.lower_bound == -np.inf
