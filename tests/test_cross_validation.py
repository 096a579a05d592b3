"""α and the bound of c by cross-validation."""

from dataclasses import replace

import numpy as np
import pytest

import patternfold as pf
from patternfold.estimators import joint_options
from patternfold.learning import validation
from patternfold.learning.joint import JointProblem, JointState
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.jpats import JointLearned
from patternfold.learning.observations import Observations
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.schedules import SigmoidAlpha
from patternfold.learning.state import INTERRUPTED
from patternfold.model.atoms import AtomFamily
from patternfold.model.grid import Grid

SMALL = {
    "transformation": "translation",
    "tangent_refinement": False,
    "refit": "coefficients",
    "projection": "fixed",
    "n_exchanges": 0,
    "n_joint": 2,
    "n_tuning": 0,
    "random_state": 0,
}


@pytest.fixture
def images(rng):
    return rng.random((9, 6, 6), np.float32), np.array([0, 1, 0, 1, 0, 1, 0, 1, 0])


@pytest.mark.usefixtures("least_effort")
def test_the_best_is_taken(images, monkeypatch):
    X, y = (some[:8] for some in images)  # all folds of one shape
    alphas = (SigmoidAlpha(), SigmoidAlpha(0.001, 0.02))
    monkeypatch.setattr(validation, "ALPHAS", alphas)
    monkeypatch.setattr(validation, "N_FOLDS", 2)
    monkeypatch.setattr(joint_options, "SHARES", (0.5,))
    chosen = pf.JPATS(2, alpha="cv", **SMALL).fit(X, y)
    best = min(chosen.cv_trials_, key=lambda trial: trial.error)
    assert [trial.alpha for trial in chosen.cv_trials_[:2]] == list(alphas)
    assert [trial.share for trial in chosen.cv_trials_] == [1, 1, 0.5]
    assert best.error < max(trial.error for trial in chosen.cv_trials_) <= 1
    peak = float(X.max(axis=(1, 2)).mean() / np.sqrt(2 / np.pi))
    known = pf.JPATS(2, alpha=best.alpha, max_coef=best.share * peak, **SMALL).fit(X, y)
    for ours, theirs in zip(chosen.patterns_, known.patterns_, strict=True):
        np.testing.assert_allclose(theirs.coef, ours.coef, rtol=1e-4)
    assert known.cv_trials_ == []


@pytest.fixture
def problem(images):
    X, y = images
    weights = np.arange(1.0, 10.0)
    observations = Observations.put(X.reshape(9, -1), Grid(6, 6), weights)
    family = AtomFamily(pf.Gaussian(), pf.AtomDictionary())
    return JointProblem(Problem(observations, pf.Translation(), family), y, 2, ("a", "b"))


def test_every_image_is_held_out_once(problem, monkeypatch):
    """Its weight counts then; nothing is learned from it in that turn."""
    learned, held = [], []
    empty = (problem.all.empty,) * 2

    def learn(rest, settings, reference):
        learned.append(rest.all.weights)
        return JointLearned(JointState(empty, np.zeros(0), np.zeros(0)), [], "done")

    def classify(fold, patterns, effort):
        held.append(fold.all.weights)
        squares = np.ones((len(fold.labels), 2))
        squares[np.arange(len(squares)), 0] = 0  # whatever it is, it is of the first class
        return JointState(patterns, np.zeros(0), squares)

    monkeypatch.setattr(validation, "learn_jointly", learn)
    monkeypatch.setattr(validation, "cross_project", classify)
    settings = JointSettings(Settings(), (2, 2))
    trials = validation.cross_validated(problem, settings, "centroid")
    assert len(learned) == len(held) == 6 * 3
    np.testing.assert_array_equal(np.sort(np.concatenate(held[:3])), np.arange(1, 10))
    for some, others in zip(learned, held, strict=True):
        assert sorted([*some, *others]) == list(range(1, 10))
    assert [trial.error for trial in trials] == [pytest.approx(20 / 45)] * 6
    assert validation.best_of(trials) == trials[0]
    assert len(validation.cross_validated(problem, settings, "centroid", ())) == 4


def test_interruption_ends_it(problem, monkeypatch):
    stopped = JointLearned(JointState((), np.zeros(0), np.zeros(0)), [], INTERRUPTED)
    monkeypatch.setattr(validation, "learn_jointly", lambda *args: stopped)
    with pytest.raises(KeyboardInterrupt):
        validation.cross_validated(problem, JointSettings(Settings(), (2, 2)), "centroid")


def test_classes_of_one_image(problem):
    alone = replace(problem, labels=np.array([0] * 8 + [1]))
    with pytest.raises(ValueError, match="class b has 1"):
        validation.make_folds(alone, 0)
    folds = validation.make_folds(problem, 0)
    assert [np.bincount(folds[problem.own(m)]).tolist() for m in (0, 1)] == [[2, 2, 1], [2, 1, 1]]
