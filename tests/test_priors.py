"""Priors on λ: given or learned, checked, in the objective and in files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learning_problems import SHAPE

import patternfold as pf
from patternfold import JPATS, PATS, AlignedViewsClassifier, Pattern, Prior, load, project
from patternfold.learning.terms import Penalty
from patternfold.model import manifold
from patternfold.model.prior import as_prior, fit_prior
from patternfold.model.transformations import as_transformation
from patternfold.persistence import save
from patternfold.show.pages.payload import payload_of

pytestmark = pytest.mark.usefixtures("small_chunks")

FAMILY = as_transformation("similarity")
NOISE = 0.1


@pytest.fixture(scope="module")
def bar():
    """A bar: turned by half, it looks the same."""
    return Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.12]])


@pytest.fixture(scope="module")
def images(bar):
    rng = np.random.default_rng(0)
    lam = np.column_stack(
        [
            rng.normal(0.3, 0.1, 16),
            *(rng.normal(0, 0.05, 16) for _ in range(2)),
            np.exp(rng.normal(0, 0.1, 16)),
        ]
    )
    rendered = manifold.render(bar, lam, FAMILY, SHAPE).reshape(-1, *SHAPE)
    return (rendered + NOISE * rng.standard_normal(rendered.shape)).astype(np.float32), lam


class Prudent(pf.Similarity):
    """A family that brings a prior along."""

    def default_prior(self):
        return {"s": (1.0, 0.1)}


def test_families_bring_priors_along():
    own = as_prior(None, Prudent())
    assert own is not None
    assert own.known() == {"s": (1.0, 0.1)}
    named = as_prior({"s": (1.2, 0.2), "tx": (0, 0.1)}, Prudent())
    assert named is not None
    assert named.known() == {"s": (1.2, 0.2), "tx": (0.0, 0.1)}
    together = Prudent() + pf.Bend()
    assert together.prior_kinds()[:4] == FAMILY.prior_kinds()
    assert together.default_prior() == {"s": (1.0, 0.1)}


def test_kinds_follow_from_the_family():
    assert FAMILY.prior_kinds() == ("von-mises", "gaussian", "gaussian", "log")
    narrow = FAMILY.with_bounds({"theta": (-0.5, 0.5)})
    assert narrow.prior_kinds()[0] == "von-mises"  # an angle, if not a whole circle
    custom = pf.CustomTransformation(
        lambda lam, x, y: (x, y - lam[0] * x**2), pf.Box(["k"], [-1], [1]), identity=[0.0]
    )
    assert custom.prior_kinds() == ("gaussian",)
    assert FAMILY.default_prior() is None


@pytest.mark.usefixtures("x64")
def test_costs_are_log_densities(rng):
    """−2σ² log p, less its value at the mode, and the slopes by autodiff."""
    prior = as_prior({"theta": (0.5, 0.4), "tx": (0.1, 0.2), "s": (1.1, 0.3)}, FAMILY)
    penalty = Penalty.of(prior, FAMILY, 0.7, np.float64)
    lam = jnp.asarray(FAMILY.parameters.sample(rng, 5))
    cost, slope, curvature = penalty(lam)
    theta, tx, _, s = np.asarray(lam).T
    expected = 2 * (1 - np.cos(theta - 0.5)) / 0.4**2
    expected = expected + ((tx - 0.1) / 0.2) ** 2 + (np.log(s / 1.1) / 0.3) ** 2
    np.testing.assert_allclose(cost, 0.7 * expected, rtol=1e-12)
    by_autodiff = jax.grad(lambda lam: penalty(lam)[0].sum())(lam)
    np.testing.assert_allclose(slope, -by_autodiff / 2, rtol=1e-10, atol=1e-12)
    assert (np.asarray(curvature)[:, [0, 1, 3]] > 0).all()
    assert (np.asarray(curvature)[:, 2] == 0).all()


def test_fitted_densities_are_those_drawn_from(rng):
    truth = as_prior({"theta": (2.9, 0.3), "tx": (0.1, 0.1), "s": (0.9, 0.1)}, FAMILY)
    lam = truth.sample(FAMILY, rng, 2000)
    found = fit_prior(lam, np.ones(len(lam)), FAMILY)
    for name in ("theta", "tx", "s"):
        k = FAMILY.parameters.index(name)
        assert abs(found.mean[k] - truth.mean[k]) < 0.1 * truth.std[k]
        assert abs(found.std[k] / truth.std[k] - 1) < 0.1  # 2000 draws: 2 %
    uniform = fit_prior(FAMILY.parameters.sample(rng, 2000), np.ones(2000), FAMILY)
    assert uniform.std[0] > 3  # no direction is more likely than another
    alike = fit_prior(np.tile(FAMILY.identity, (5, 1)), np.ones(5), FAMILY)
    assert min(alike.std) >= 0.02  # a floor


def test_a_prior_settles_what_images_leave_open(bar, images):
    pictures, lam = images
    found = project(bar, pictures, FAMILY, effort="quick", prior={"theta": (0.3 + np.pi, 0.3)})
    turned = np.angle(np.exp(1j * (found.parameters[:, 0] - lam[:, 0] - np.pi)))
    assert np.abs(turned).max() < 0.5
    free = project(bar, pictures, FAMILY, effort="quick")
    assert (found.distances**2 >= free.distances**2 * (1 - 1e-4)).all()  # λ costs something


def test_a_tight_prior_holds_and_a_wide_one_does_nothing(bar, images):
    pictures, _ = images
    free = project(bar, pictures, FAMILY, effort="quick")
    held = project(bar, pictures, FAMILY, effort="quick", prior={"s": (1.3, 1e-4)})
    np.testing.assert_allclose(held.parameters[:, 3], 1.3, atol=0.01)
    wide = project(bar, pictures, FAMILY, effort="quick", prior={"s": (1.0, 1e3)})
    np.testing.assert_allclose(wide.distances, free.distances, rtol=1e-4)


def test_bad_priors_are_refused(bar, images):
    pictures, _ = images

    def refused(match, prior, error=ValueError, **options):
        with pytest.raises(error, match=match):
            project(bar, pictures, FAMILY, effort="quick", prior=prior, **options)

    refused("prior='phi' is not known", {"phi": (0, 1)})
    refused("standard deviation must be above 0", {"tx": (0, 0)})
    refused("contradicts the bounds", {"tx": (3.0, 0.1)})
    refused("whose mean must be above 0", {"s": (0.0, 0.1)})
    refused(r"prior\['tx'\]=1 must be a pair \(mean, std\)", {"tx": 1})
    refused("must be a dict", 3, TypeError)
    refused("PATS\\(prior='learned'\\) learns it", "learned")
    refused("holds 2 priors for 1 patterns", [None, None])
    with pytest.raises(ValueError, match="prior='lerned' must be 'learned'"):
        PATS(1, prior="lerned").fit(pictures)
    in_units = as_prior({"theta": ("0deg", "10deg")}, FAMILY)
    assert in_units is not None
    assert np.isclose(in_units.std[0], np.deg2rad(10))


@pytest.fixture(scope="module")
def model(images):
    options = {"n_starts": 1, "n_exchanges": 0, "random_state": 0}
    return PATS(1, transformation="similarity", prior="learned", **options).fit(images[0])


def test_learned(model, images):
    prior, lam = model.prior_, images[1]
    assert isinstance(prior, Prior)
    # The frame is that of the images' mean; the spread is theirs.
    assert abs(prior.std[1] - lam[:, 1].std()) < 0.5 * lam[:, 1].std()
    assert prior.noise is not None
    assert 0.3 * NOISE**2 < prior.noise < 3 * NOISE**2


def test_files_and_pages_know_it(model, tmp_path, images):
    model.save(tmp_path / "model.ptm")
    loaded = load(tmp_path / "model.ptm")
    assert loaded.prior == "learned"
    np.testing.assert_allclose(loaded.prior_.std, model.prior_.std)
    np.testing.assert_allclose(
        loaded.distances(images[0], "quick"), model.distances(images[0], "quick"), rtol=1e-5
    )
    from patternfold.learning.fitted import fitted_manifolds

    described = payload_of(fitted_manifolds(loaded), [])["priors"]
    assert described[0][3][0] == "log"
    assert "prior" in model.report().html


@pytest.mark.parametrize("kind", [JPATS, AlignedViewsClassifier])
def test_by_class(kind, images, tmp_path):
    pictures = np.concatenate([images[0], images[0].transpose(0, 2, 1)])
    labels = np.repeat([0, 1], len(images[0]))
    narrow = {"transformation": "similarity", "bounds": {"theta": (-1.0, 1.0)}}
    more = {"n_tuning": 1} if kind is JPATS else {}
    model = kind(1, **narrow, **more, prior="learned", loss="huber").fit(pictures, labels)
    holder = getattr(model, "views_", model)
    assert len(holder.prior_) == 2
    assert holder.loss_.scale > 0
    assert model.score(pictures, labels) == 1
    save(model, tmp_path / "model.ptm")
    again = load(tmp_path / "model.ptm")
    np.testing.assert_allclose(
        again.decision_function(pictures), model.decision_function(pictures), rtol=1e-3
    )


def test_patterns_searched_for_together(bar, images, monkeypatch):
    """As on accelerators: every row has the loss and the prior of its pattern."""
    other = Pattern([1.0], [[0.0, 0.1, 0.0, 0.3, 0.3]])
    priors = [as_prior({"theta": (0.3, 0.2)}, FAMILY), as_prior({"s": (1.1, 0.1)}, FAMILY)]
    options = {
        "prior": [prior.with_noise(NOISE**2) for prior in priors],
        "loss": pf.Huber(scale=NOISE),
        "effort": "quick",
    }
    one_by_one = project([bar, other], images[0], FAMILY, **options)
    monkeypatch.setattr("patternfold.learning.project.locate.ONE_BY_ONE", ())
    together = project([bar, other], images[0], FAMILY, **options)
    np.testing.assert_allclose(together.distances, one_by_one.distances, rtol=1e-3)
