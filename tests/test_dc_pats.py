"""PATS with its DC solvers, and what they refuse."""

import jax
import numpy as np
import pytest

import patternfold as pf
from patternfold import datasets
from patternfold.learning.select.points import Points
from patternfold.learning.select.refine import refine_frozen
from patternfold.learning.select.solvers import (
    SOLVERS,
    CuttingPlane,
    Dca,
    Search,
    as_solver,
    atom_problem,
)
from patternfold.model.atoms import AtomFamily
from patternfold.model.mothers import CustomMother

pytestmark = pytest.mark.usefixtures("compiled_well")  # a search runs for long

FAMILY = AtomFamily(pf.Gaussian(), pf.AtomDictionary())
DC_SOLVERS = [name for name in SOLVERS if name != "search"]


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Shifted patterns of two atoms, 8 images of 16×16."""
    truth = pf.Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]])
    rng = np.random.default_rng(0)
    return datasets.random_images(truth, 8, rng, "translation", shape=(16, 16))[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_learns(solver: str, images: np.ndarray) -> None:
    options = {"time_limit": 0.5} if solver != "search" else None
    model = pf.PATS(
        2,
        transformation="translation",
        solver=solver,
        solver_options=options,
        n_starts=1,
        random_state=0,
    )
    model.fit(images)
    # Two atoms explain the images exactly; corrections bring them there in float32.
    assert model.error_path_[-1] < 1e-4


def test_the_published_setting_uses_the_cutting_plane(images: np.ndarray) -> None:
    model = pf.PATS.paper(2, transformation="translation", random_state=0)
    assert model.get_params()["solver"] == "cutting-plane"
    path = model.fit(images).error_path_
    assert (np.diff(path) < 0).all()
    assert path[-1] < 0.05  # greedy choice misses the two true atoms by a little
    again = pf.PATS.paper(2, transformation="translation", random_state=0).fit(images)
    np.testing.assert_array_equal(path, again.error_path_)
    assert pf.PATS.paper(2, solver="search").get_params()["solver"] == "search"


@pytest.mark.exhaustive
def test_solvers_agree_on_an_atom(images: np.ndarray, rng: np.random.Generator) -> None:
    """One clear atom: every solver finds it, signed weights or not."""
    grid = pf.Grid(16, 16)
    atom = np.array([0.4, 0.1, -0.2, 0.35, 0.15])
    values = pf.Pattern([0.8], atom[None]).render((16, 16)).ravel().astype(np.float64)
    box = pf.AtomDictionary().parameters.with_bounds({"sigma_x": (0.1, 2), "sigma_y": (0.1, 2)})
    noise = 1e-3 * rng.normal(size=(2, len(values)))
    x, y = np.tile(grid.x, 2), np.tile(grid.y, 2)
    # The third time impostors outweigh: the best c is that of the bound.
    for weights in (np.ones(2), np.array([1.0, -0.3]), np.array([1.0, -1.5])):
        w = np.repeat(weights, len(values))
        v = np.concatenate([values + noise[0], 0.2 * values + noise[1]])
        points = Points(x, y, w * v, w, np.abs(w), max_coef=1.1)
        problem = atom_problem(points, pf.Gaussian(), box)
        ends = []
        components = (pf.Gaussian(), pf.AtomDictionary(), box)
        for solver in DC_SOLVERS:
            solve = as_solver(solver, {"time_limit": 0.5})
            gamma, coef = solve(points, *components, rng)
            assert box.contains(gamma[None])[0]
            ends.append(float(problem.values(np.append(gamma, coef)[None])[0]))
        gamma, coef = CuttingPlane(decomposition="rules")(points, *components, rng)
        ends.append(float(problem.values(np.append(gamma, coef)[None])[0]))
        (gamma,), (coef,), _ = refine_frozen(gamma[None], points, FAMILY, box, max_iter=10)
        ends.append(float(problem.values(np.append(gamma, coef)[None])[0]))
        assert abs(coef) <= 1.1 + 1e-6
        # With impostors the energy is signed, so that ends are compared with its size.
        assert np.ptp(ends) <= 1e-3 * np.abs(w * v**2).sum()
        assert max(ends) < problem.constant - 0.4 * np.abs(w * v**2).sum()


def ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 1 / (1 + x**4 + y**2)


def shrink(gamma: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x / gamma[0], y / gamma[0]


@pytest.mark.parametrize("solver", DC_SOLVERS)
def test_components_without_a_decomposition(solver: str, images: np.ndarray) -> None:
    """Refused before anything is learned, with a solver that can."""
    progress = []
    own = (
        {"mother": CustomMother(ridge)},
        {"dictionary": pf.CustomDictionary(shrink, pf.Box(["s"], [0.1], [1.0]))},
    )
    for components in own:
        model = pf.PATS(2, solver=solver, callback=progress.append, **components)
        with pytest.raises(ValueError, match=r"needs a DC decomposition.*Use solver='search'"):
            model.fit(images)
    assert not progress


@pytest.mark.usefixtures("as_users_run")
def test_bad_options_are_refused(images: np.ndarray) -> None:
    with pytest.raises(ValueError, match="cutting-plane"):
        pf.PATS(2, solver="cutting plane").fit(images)
    with pytest.raises(ValueError, match="max_iter"):
        pf.PATS(2, solver="dca", solver_options={"max_iters": 3}).fit(images)
    for options, message in (
        ({"time_limit": 0}, "must be a number above 0"),
        ({"max_iter": 2.5}, "must be an integer above 0"),
        ({"decomposition": "rule"}, "rules"),
    ):
        with pytest.raises(ValueError, match=message):
            pf.PATS(2, solver="cutting-plane", solver_options=options).fit(images)
    with pytest.raises(ValueError, match="solver_options"):
        pf.PATS(2, solver="dca", solver_options={"decomposition": "rules"}).fit(images)
    with pytest.raises(ValueError, match="'search' takes none"):
        pf.PATS(2, solver_options={"time_limit": 1.0}).fit(images)
    with pytest.raises(ValueError, match="give them to Dca itself"):
        pf.PATS(2, solver=Dca(), solver_options={"time_limit": 1.0}).fit(images)


@pytest.mark.usefixtures("as_users_run")
def test_solvers_are_names_or_objects(images: np.ndarray) -> None:
    assert as_solver("dca", {"time_limit": 2.0}) == Dca(time_limit=2.0)
    with pytest.raises(TypeError, match="a name or a solver object"):
        pf.PATS(2, solver=max).fit(images)
    options = {"transformation": "translation", "n_starts": 1, "random_state": 0}
    named = pf.PATS(1, solver="search", **options).fit(images)
    given = pf.PATS(1, solver=Search(), **options).fit(images)
    assert named.pattern_ == given.pattern_


def test_the_search_stands_alone(rng: np.random.Generator) -> None:
    """A clear atom is found from the points alone, without a word on the size of pixels."""
    grid, atom = pf.Grid(16, 16), [0.4, 0.1, -0.2, 0.35, 0.15]
    values = pf.Pattern([0.8], [atom]).render((16, 16)).ravel()
    ones = np.ones_like(values)
    points = Points(grid.x, grid.y, values, ones, ones)
    dictionary = pf.AtomDictionary()
    with jax.enable_x64(True):
        gamma, coef = Search()(points, pf.Gaussian(), dictionary, dictionary.parameters, rng)
    found = pf.Pattern([coef], gamma[None]).render((16, 16)).ravel()
    np.testing.assert_allclose(found, values, atol=1e-3 * values.max())  # 25 steps of descent
