"""The parts of JPATS: margins, schedules, signed weights, joint correction."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

import patternfold as pf
from patternfold import datasets
from patternfold.estimators.joint_options import joint_settings
from patternfold.learning.acceptance import by_class, must_fall, must_not_rise, no_worse
from patternfold.learning.effort import LEARNING, Effort
from patternfold.learning.joint import (
    JointProblem,
    cross_project,
    first_projection,
    frozen_squares,
)
from patternfold.learning.joint_atoms import signed_problem
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.jpats import iterations
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.refit import tuning
from patternfold.learning.refit.tuning import SmoothError, held_out, steps_that_serve, tune
from patternfold.learning.schedules import (
    AlphaInUnits,
    BetaSchedule,
    ConstantAlpha,
    ConstantBeta,
    SigmoidAlpha,
    fit_beta,
    sigmoid_slopes,
)
from patternfold.model.atoms import AtomFamily
from patternfold.model.grid import Grid

TO_THE_END = Effort(max_iter=40, newton_after=40)


@pytest.fixture(scope="module")
def joint():
    """Noisy images of two similar patterns, and a state with rough patterns."""
    rng = np.random.default_rng(0)
    first = datasets.random_pattern(3, rng)
    second = first.replace(first.coef * [1, 1, -1], first.gamma)
    images = [
        datasets.random_images(p, 12, rng, "rotation-translation", shape=(20, 20), noise=0.1)[0]
        for p in (first, second)
    ]
    rows = np.concatenate(images).reshape(24, -1)
    family = pf.RotationTranslation()
    observations = Observations.put(rows, Grid(20, 20))
    whole = Problem(observations, family, AtomFamily(pf.Gaussian(), pf.AtomDictionary()))
    problem = JointProblem(whole, np.repeat([0, 1], 12), 2)
    patterns = tuple(p.take(np.arange(2)) for p in (first, second))
    patterns = (patterns[0], patterns[1].replace(0.9 * patterns[1].coef, patterns[1].gamma))
    return problem, cross_project(problem, patterns, LEARNING)


def test_margins_by_hand(joint):
    problem, state = joint
    state = replace(state, squares=np.array([[1.0, 2.0]] * 12 + [[1.0, 3.0]] * 12))
    margins = state.margins(problem.labels)
    assert list(margins.rival) == [1] * 12 + [0] * 12
    np.testing.assert_allclose(margins.f, [-1.0] * 12 + [2.0] * 12)
    assert state.errors(problem) == (12.0, 12 * 1.0 + 12 * 3.0)


def test_cross_projections_are_no_worse_than_frozen(joint):
    problem, state = joint
    frozen = frozen_squares(problem, state.patterns, state.lam)
    np.testing.assert_allclose(frozen, state.squares, rtol=1e-3)
    again = cross_project(problem, state.patterns, LEARNING, state.lam)
    assert (again.squares <= state.squares * (1 + 1e-4)).all()


def test_cross_projections_forget_a_wrong_start(joint):
    """Known λ^{m,r} in a wrong place are left behind where Λ is searched, and only there."""
    problem, state = joint
    wrong = np.zeros_like(state.lam)
    wrong[..., 0] = state.lam[..., 0] + np.pi
    near = cross_project(problem, state.patterns, LEARNING, wrong)
    found = cross_project(problem, state.patterns, LEARNING, wrong, everywhere=True)
    assert near.squares.mean() > 1.1 * state.squares.mean()
    # The search has a few candidates only: most images end where they did without the start.
    assert found.squares.mean() < 1.02 * state.squares.mean()


def test_first_projection_knows_own_poses_and_goes_on(joint):
    """No image ends farther from its own manifold than at the λ that learning it alone gave."""
    problem, state = joint
    at_the_end = cross_project(problem, state.patterns, TO_THE_END, state.lam)
    own = [at_the_end.lam[problem.own(m), m] for m in range(2)]
    found = first_projection(problem, state.patterns, LEARNING, own)
    known, squares = (s.own_squares(problem.labels) for s in (at_the_end, found))
    assert (squares <= known * (1 + 1e-4)).all()  # float32
    assert found.squares.sum() <= state.squares.sum() * (1 + 1e-4)


def test_alpha_schedules():
    alpha = SigmoidAlpha()
    values = [alpha(j) for j in range(1, 30)]
    assert values == sorted(values)
    assert 0.5 <= values[0] < 0.7
    assert values[-1] == pytest.approx(10)
    assert alpha(6) == pytest.approx(5.25)
    assert ConstantAlpha(2.0)(7) == 2.0
    assert alpha(6, 0.1) == alpha(6)
    assert SigmoidAlpha(relative=True)(6, 0.1) == pytest.approx(0.525)
    # By default it ends lower than in the paper, which all atoms together would overdo.
    estimator = pf.JPATS()
    estimator.classes_ = np.arange(2)
    assert joint_settings(estimator, 0).alpha(30) == pytest.approx(4)


def test_beta_is_the_logistic_fit(rng):
    f = rng.normal(size=4000)
    wrong = rng.uniform(size=4000) < 1 / (1 + np.exp(-3.0 * f))
    assert fit_beta(f, wrong) == pytest.approx(3.0, rel=0.1)
    # Where f tells without fail, the fit is held back.
    assert fit_beta(f, f > 0) < 500
    assert BetaSchedule(fit_beta, first=3.0).start(0.5) == 6.0
    assert ConstantBeta(7.0).start(0.5) == ConstantBeta(7.0)(f, wrong) == 7.0


def test_schedules_follow_the_unit_of_the_images(rng):
    f, wrong = rng.normal(size=50), rng.uniform(size=50) < 0.3
    for alpha in (SigmoidAlpha(), ConstantAlpha(2.0), SigmoidAlpha(relative=True)):
        assert AlphaInUnits(alpha, 9.0)(6, 9 * 0.1) == pytest.approx(9 * alpha(6, 0.1))
    for beta in (BetaSchedule(fit_beta), ConstantBeta(7.0)):
        scaled = beta.in_units(9.0)
        assert scaled.start(9 * 0.1) == pytest.approx(beta.start(0.1) / 9)
        assert scaled(9 * f, wrong) == pytest.approx(beta(f, wrong) / 9)


def test_eta_is_the_derivative_of_the_sigmoid(rng):
    f = rng.normal(size=5)
    step = 1e-6
    sigmoid = [1 / (1 + np.exp(-2.0 * (f + d))) for d in (-step, step)]
    np.testing.assert_allclose(
        sigmoid_slopes(f, 2.0), (sigmoid[1] - sigmoid[0]) / (2 * step), rtol=1e-6
    )


def test_signed_weights(joint):
    problem, state = joint
    margins = state.margins(problem.labels)
    pull = np.linspace(0.1, 2.4, 24)
    signed, lam = signed_problem(problem, state, 1, margins, pull)
    np.testing.assert_allclose(signed.weights[:12], 1 + pull[12:])
    np.testing.assert_allclose(signed.weights[12:24], -pull[:12])
    assert not signed.weights[24:].any()
    np.testing.assert_array_equal(lam[:12], state.lam[12:, 1])
    np.testing.assert_array_equal(lam[12:24], state.lam[:12, 1])


def test_iterations_never_raise_the_classification_error(joint):
    problem, state = joint
    alone = Settings(n_atoms=4, refit=None, projection="local")
    settings = JointSettings(alone, (4, 4), n_joint=2, max_coef=0.7)
    margins = state.margins(problem.labels)
    states = [state, *iterations(problem, settings, state, margins)]
    errors = [s.errors(problem) for s in states]
    assert len(errors) > 1
    assert all(b[0] <= a[0] for a, b in itertools.pairwise(errors))
    assert max(np.abs(p.coef[2:]).max() for p in states[-1].patterns) <= 0.7


def test_rejection_goes_on_with_the_next_alpha(joint):
    """Selection is tried as often as patience says, each time with a later α; then it ends."""
    problem, state = joint
    seen = []

    def alpha(j, scale):
        seen.append(j)
        return 0.1 * j

    alone = Settings(n_atoms=4, refit=None, projection="local", tangent_refinement=False)
    settings = JointSettings(
        alone, (4, 4), alpha=alpha, acceptance=lambda problem, state, new: None, patience=4
    )
    assert not list(iterations(problem, settings, state, state.margins(problem.labels)))
    assert seen == [1, 2, 3, 4]


def test_acceptance_by_hand(joint):
    problem, state = joint
    # One image of the first class is misclassified, then none, as the first manifold comes nearer;
    # the second one draws away from its own images.
    before = np.array([[3.0, 2.0]] + [[1.0, 2.0]] * 11 + [[3.0, 1.0]] * 12)
    after = np.array([[1.0, 2.0]] * 12 + [[3.0, 4.0]] * 12)
    moved = tuple(p.replace(1.1 * p.coef, p.gamma) for p in state.patterns)
    old, new = replace(state, squares=before), replace(state, patterns=moved, squares=after)
    for rule in (must_fall, must_not_rise, no_worse):
        assert rule(problem, old, new) is None
    best = by_class(problem, old, new)
    assert best is not None
    assert best.patterns == (moved[0], old.patterns[1])
    assert best.errors(problem) == (0.0, 24.0)
    assert by_class(problem, best, replace(best)) is None
    assert must_fall(problem, old, best) is must_not_rise(problem, old, best) is best
    closer = replace(best, squares=0.9 * best.squares)
    assert must_fall(problem, best, closer) is None
    assert must_not_rise(problem, closer, best) is best
    assert no_worse(problem, best, closer) is closer
    assert no_worse(problem, closer, best) is None


def test_joint_correction_lowers_the_smooth_error(joint, monkeypatch):
    problem, state = joint
    # As many steps as are allowed: how many serve other images is tested below.
    monkeypatch.setattr(tuning, "steps_that_serve", lambda start, held, most: most)
    alpha, beta = 10.0, 2 / np.abs(state.margins(problem.labels).f).mean()
    states = [state, *tune(problem, state, ConstantAlpha(alpha), LEARNING, 6)]
    errors = [SmoothError(problem, s, alpha, beta, LEARNING).cost for s in states]
    assert len(errors) >= 3
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.95 * errors[0]
    wrong = [s.errors(problem)[0] for s in states]
    assert wrong == sorted(wrong, reverse=True)


def test_some_steps_are_taken_whatever_images_held_out_tell(joint, monkeypatch):
    problem, state = joint
    monkeypatch.setattr(tuning, "steps_that_serve", lambda start, held, most: 0)
    assert list(tune(problem, state, ConstantAlpha(10.0), LEARNING, 6))
    assert not list(tune(problem, state, ConstantAlpha(10.0), LEARNING, 0))


def test_images_held_out_do_not_depend_on_the_order(joint, rng):
    problem, state = joint
    held = held_out(problem, state)
    assert [held[:12].sum(), held[12:].sum()] == [4, 4]
    order = rng.permutation(24)
    moved = replace(problem, all=problem.all.part(order), labels=problem.labels[order])
    turned = replace(state, lam=state.lam[order], squares=state.squares[order])
    np.testing.assert_array_equal(held_out(moved, turned), held[order])


def test_correction_goes_on_while_it_serves_images_held_out(joint, rng):
    """Classes that differ are told apart better; labels drawn at random cannot be learned."""
    problem, state = joint

    def steps(labels: np.ndarray) -> int:
        mixed = replace(problem, labels=labels)
        beta = 2 / np.abs(state.margins(labels).f).mean()
        start = SmoothError(mixed, state, 10.0, beta, LEARNING)
        return steps_that_serve(start, held_out(mixed, state), 6)

    assert steps(problem.labels) >= 1
    # By chance a step may serve; six, which lower J of the images that are seen, do not.
    assert max(steps(rng.permutation(problem.labels)) for _ in range(3)) <= 1


def test_step_of_the_joint_correction_is_downhill(joint):
    """The slope of the correction is that of J, checked by finite differences of J itself."""
    problem, state = joint
    labels = problem.labels
    state = cross_project(problem, state.patterns, TO_THE_END, state.lam)
    alpha, beta = 10.0, 2 / np.abs(state.margins(labels).f).mean()

    def error(c: np.ndarray) -> float:
        moved = state.patterns[0].replace(c, state.patterns[0].gamma)
        patterns = (moved, state.patterns[1])
        there = cross_project(problem, patterns, TO_THE_END, state.lam)
        return SmoothError(problem, there, alpha, beta, LEARNING).cost

    gradient = optimize.approx_fprime(state.patterns[0].coef, error, 1e-2)
    margins = state.margins(labels)
    pull = alpha * sigmoid_slopes(margins.f, beta)
    signed, lam = signed_problem(problem, state, 0, margins, pull)
    images = signed.observations.map(lambda chunk: chunk.images)
    residuals = images - pf.manifold.render(
        state.patterns[0], lam, pf.RotationTranslation(), (20, 20)
    )
    expected = []
    for gamma in state.patterns[0].gamma:
        atom = pf.Pattern([1.0], gamma[None])
        phi = pf.manifold.render(atom, lam, pf.RotationTranslation(), (20, 20))
        expected.append(-2 * (signed.weights[:, None] * residuals * phi).sum())
    np.testing.assert_allclose(gradient, expected, rtol=0.15)
    slope = SmoothError(problem, state, alpha, beta, LEARNING).equations[0][1]
    np.testing.assert_allclose(-2 * slope[5::6], expected, rtol=1e-4)  # float32
