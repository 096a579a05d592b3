"""Models chosen by scikit-learn's own tools: higher scores are better, labels are not needed."""

import numpy as np
import pytest
from helpers import class_images
from sklearn.model_selection import GridSearchCV

import patternfold as pf
from patternfold import datasets

pytestmark = pytest.mark.usefixtures("least_effort")

QUICK = {"n_starts": 1, "n_exchanges": 0, "random_state": 0}


def test_patterns_are_chosen_by_held_out_error(rng):
    bar = pf.Pattern([1.0, 0.8], [[0.3, 0.2, 0.0, 0.3, 0.12], [1.5, -0.2, 0.1, 0.3, 0.12]])
    images, _ = datasets.random_images(bar, 16, rng, "translation", shape=(16, 16), noise=1e-3)
    model = pf.PATS(transformation="translation", **QUICK)
    search = GridSearchCV(model, {"n_atoms": [1, 2]}, cv=2).fit(images)
    assert search.best_params_ == {"n_atoms": 2}
    held_out = search.cv_results_["mean_test_score"]
    assert 0.8 < search.best_score_ == held_out.max() < 1
    assert search.score(images) == search.best_estimator_.score(images)


@pytest.mark.exhaustive
def test_classifiers_are_chosen_by_accuracy():
    images, labels = class_images(8, (16, 16))
    learner = pf.PATS(transformation="translation", **QUICK)
    joint = pf.JPATS(transformation="translation", n_tuning=1, **QUICK)
    views = pf.AlignedViewsClassifier(manifold_learner=learner)
    for model, name in ((joint, "n_atoms"), (views, "manifold_learner__n_atoms")):
        search = GridSearchCV(model, {name: [1, 2]}, cv=2).fit(images, labels)
        assert search.best_params_[name] in (1, 2)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_score_ > 0.5
