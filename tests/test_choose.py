"""How many atoms: n_atoms="auto"."""

import numpy as np
import pytest
from learning_problems import SHAPE, make_problem

import patternfold as pf
from patternfold import datasets
from patternfold.learning.choose import Choice, Corrected, Judge, split
from patternfold.learning.problem import Settings
from patternfold.learning.state import State


class Told(Judge):
    """A judge that knows the errors beforehand."""

    what = "told"

    def __init__(self, errors):
        self.errors = iter(errors)

    def __call__(self, state):
        return next(self.errors)


def choose(errors):
    """Number of atoms that are grown and that are chosen, for a path of errors."""
    choice = Choice(Told(errors))
    for k in range(1, len(errors) + 1):
        gamma = np.tile([0.0, 0.0, 0.0, 0.2, 0.2], (k, 1))
        if choice(State(pf.Pattern(np.ones(k), gamma), np.zeros((1, 2)), 0.0)):
            break
    return len(choice.states), choice.chosen.pattern.n_atoms, choice.reason


class TestChoice:
    def test_a_fall_that_ends(self):
        grown, chosen, reason = choose([0.5, 0.3, 0.2, 0.1, 0.0999, 0.0998, 0.0997, 0.05])
        assert (grown, chosen) == (7, 4)
        assert reason.startswith("4 atoms were chosen: 3 more")

    def test_a_pause_is_no_end(self):
        assert choose([0.5, 0.3, 0.3, 0.2, 0.2, 0.2, 0.2])[:2] == (7, 4)

    def test_what_is_left_of_an_exact_fit_does_not_count(self):
        assert choose([0.5, 0.1, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8])[1] == 3

    def test_it_may_fall_to_the_end(self):
        grown, chosen, reason = choose([0.9, 0.8, 0.7, 0.6])
        assert grown == chosen == 4
        assert "the most" in reason


def test_one_image_in_four_is_held_out_whatever_the_order(rng):
    problem, *_ = make_problem(rng, 16, dtype=np.float32)
    own, others = split(problem, Settings())
    assert sorted([*own, *others]) == list(range(16))
    assert len(others) == 4
    order = rng.permutation(16)
    shuffled = split(problem.part(order), Settings())
    assert [set(order[part]) for part in shuffled] == [set(own), set(others)]
    assert split(make_problem(rng, 8, dtype=np.float32)[0], Settings()) is None
    assert split(problem, Settings(refit=None)) is None


def test_parameters_cost_more_where_pixels_are_few(rng):
    few, pattern, lam = make_problem(rng, 1, dtype=np.float32)
    many, *_ = make_problem(rng, 6, dtype=np.float32)
    ratios = [
        Corrected(problem)(State(pattern, np.tile(lam, (n, 1)), 0.1 * problem.energy)) / 0.1
        for problem, n in ((few, 1), (many, 6))
    ]
    assert ratios[0] > 1.2 > 1.1 > ratios[1] > 1


def noisy_images(rng, n_atoms=3):
    pattern = datasets.random_pattern(n_atoms, rng)
    images, _ = datasets.random_images(pattern, 12, rng, "similarity", shape=SHAPE)
    noise = np.sqrt((images**2).mean() / 10)  # 10 dB
    return images + noise * rng.normal(size=images.shape).astype(np.float32)


def test_noise_is_not_followed(rng, tmp_path):
    images = noisy_images(rng)
    model = pf.PATS("auto", transformation="similarity", random_state=0).fit(images)
    assert 3 <= model.pattern_.n_atoms <= 5
    assert model.n_iter_ == len(model.error_path_) == model.pattern_.n_atoms
    assert model.stop_reason_.startswith(f"{model.n_iter_} atoms were chosen: ")
    np.testing.assert_allclose(model.error_path_[-1], 1 / 11, rtol=0.1)  # the noise
    model.save(tmp_path / "model.ptm")
    again = pf.load(tmp_path / "model.ptm")
    assert (again.n_atoms, again.stop_reason_) == ("auto", model.stop_reason_)


def test_an_image_by_itself(rng):
    image = noisy_images(rng)[:1]
    model = pf.PATS("auto", transformation="similarity", random_state=0).fit(image)
    assert 2 <= model.pattern_.n_atoms <= 6
    assert "number of parameters" in model.stop_reason_


@pytest.mark.slow
def test_classes_have_numbers_of_their_own(rng):
    one, two = (datasets.random_pattern(n, rng) for n in (1, 3))
    images = [datasets.random_images(p, 6, rng, "translation", shape=SHAPE)[0] for p in (one, two)]
    model = pf.JPATS("auto", transformation="translation", n_joint=0, n_tuning=0, random_state=0)
    model.fit(np.concatenate(images), np.repeat(["one", "two"], 6))
    assert [p.n_atoms for p in model.patterns_] == [1, 3]


@pytest.mark.parametrize("n_atoms", ["many", 0])
def test_other_numbers_are_refused(n_atoms, rng):
    with pytest.raises(ValueError, match=r"n_atoms=.* of at least 1, or 'auto'"):
        pf.PATS(n_atoms).fit(noisy_images(rng))
