"""Probabilities of classes, from decisions and a temperature."""

import numpy as np
import pytest
from helpers import small_jpats
from scipy.special import softmax

from patternfold import load
from patternfold.estimators.probabilities import fit_temperature


def test_temperature_is_recovered(rng):
    decisions = rng.normal(size=(4000, 3))
    labels = np.array([rng.choice(3, p=row) for row in softmax(decisions / 0.5, axis=1)])
    assert fit_temperature(decisions, labels) == pytest.approx(0.5, rel=0.1)  # 4,000 draws
    assert fit_temperature(1e-6 * decisions, labels) == pytest.approx(5e-7, rel=0.1)


def test_few_images_make_nothing_certain():
    decisions = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    temperature = fit_temperature(decisions, np.array([0, 1, 0]))
    assert 0.6 < softmax(decisions / temperature, axis=1).max() < 0.8  # 2/3 to 3/4


def test_decisions_that_tell_nothing():
    chances = softmax(np.zeros((3, 2)) / fit_temperature(np.zeros((3, 2)), np.array([0, 1, 0])))
    assert np.isfinite(chances).all()


def test_probabilities_need_images_that_were_not_learned_from(tmp_path, monkeypatch):
    model, images, labels = small_jpats()
    decided = np.where(labels == "dot", 0.3, -0.2)
    monkeypatch.setattr(type(model), "decision_function", lambda self, X, effort, mask: decided)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as caught:
        model.predict_proba(images)
    assert "calibrate(X, y)" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="Did you mean 'dot'"):
        model.calibrate(images, np.repeat("dots", len(images)))
    chances = model.calibrate(images, labels).predict_proba(images)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (model.classes_[chances.argmax(axis=1)] == labels).all()
    model.save(tmp_path / "model.ptm")
    assert load(tmp_path / "model.ptm").temperature_ == model.temperature_
