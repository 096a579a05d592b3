"""Matching pursuit, alone, simultaneous and supervised, against brute force."""

import numpy as np
import pytest
from helpers import class_patterns
from sklearn.linear_model import OrthogonalMatchingPursuit
from sklearn.utils.estimator_checks import parametrize_with_checks

from patternfold import Grid, Pattern, baselines, datasets
from patternfold.baselines.pursuit import separating_energy

SHAPE = (16, 16)
COARSE = {"step": 1.5, "n_widths": 3, "n_angles": 4}
FAMILY = "rotation-translation"


@pytest.fixture(scope="module")
def dictionary():
    return baselines.sampled_dictionary(SHAPE, **COARSE)


@pytest.fixture(scope="module")
def images():
    """Slightly different images of the same thing."""
    rng = np.random.default_rng(1)
    pattern = datasets.random_pattern(4, rng)
    clean = pattern.render(SHAPE)
    return (clean + 0.05 * rng.normal(size=(7, *SHAPE))).astype(np.float32)


@pytest.fixture(scope="module")
def classes():
    """Aligned images of a bar and a dot, and transformed ones, with their labels."""
    rng = np.random.default_rng(0)
    still = {"theta": (0.0, 0.0), "tx": (0.0, 0.0), "ty": (0.0, 0.0)}
    parts = [
        [datasets.random_images(p, 8, rng, FAMILY, b, SHAPE, noise=1e-3)[0] for b in (still, None)]
        for p in class_patterns()
    ]
    aligned, moved = (np.concatenate(part) for part in zip(*parts, strict=True))
    return aligned, moved, np.repeat(["bar", "dot"], 8)


def test_sampled_atoms_are_patterns_of_unit_norm(dictionary):
    atoms = dictionary.atoms(slice(None))
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1, rtol=1e-5)  # float32
    for i in (0, 57, len(dictionary) - 1):
        rendered = dictionary.pattern(np.ones(1), [i]).render(SHAPE)
        np.testing.assert_allclose(atoms[i], rendered.ravel(), atol=1e-5)
    lower, upper = dictionary.dictionary.parameters.lower, dictionary.dictionary.parameters.upper
    assert ((dictionary.gamma >= lower) & (dictionary.gamma <= upper)).all()
    assert len(np.unique(dictionary.gamma, axis=0)) == len(dictionary)


def test_finer_sampling_has_more_atoms():
    coarse, fine = (baselines.sampled_dictionary(SHAPE, step=s) for s in (2.0, 1.0))
    assert len(fine) > 3 * len(coarse)


def test_a_mother_without_symmetry_gets_all_angles_and_pairs():
    from patternfold import CustomMother

    with_symmetry = baselines.sampled_dictionary((8, 8), **COARSE)
    without = baselines.sampled_dictionary((8, 8), **COARSE, mother=CustomMother(lopsided))
    assert len(without) > len(with_symmetry)


def lopsided(x, y):
    import jax.numpy as jnp

    return (1 + 0.3 * x) * jnp.exp(-(x**2) - y**2)


def test_the_image_nearest_the_centroid_is_approximated(images):
    model = baselines.MatchingPursuit(1, **COARSE).fit(images)
    distances = [np.linalg.norm(image - images.mean(axis=0)) for image in images]
    assert model.reference_ == int(np.argmin(distances))


def test_first_atom_is_that_of_orthogonal_matching_pursuit(dictionary, images):
    model = baselines.MatchingPursuit(1, **COARSE).fit(images)
    atoms = dictionary.atoms(slice(None)).astype(np.float64)
    theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=1, fit_intercept=False)
    theirs.fit(atoms.T, images[model.reference_].ravel().astype(np.float64))
    best = int(np.abs(theirs.coef_).argmax())
    np.testing.assert_array_equal(model.pattern_.gamma[0], dictionary.gamma[best])
    expected = theirs.coef_[best] / dictionary.norms[best]
    np.testing.assert_allclose(model.pattern_.coef[0], expected, rtol=1e-4)  # float32 products


@pytest.mark.parametrize("n_images", [1, 7])
def test_pursuit_is_greedy_over_all_atoms(dictionary, images, n_images):
    """With residuals and products computed anew for each atom, in float64."""
    chosen = images[:n_images]
    model = baselines.SimultaneousMatchingPursuit(5, **COARSE).fit(chosen)
    atoms = dictionary.atoms(slice(None)).astype(np.float64)
    residuals = chosen.reshape(n_images, -1).astype(np.float64)
    energy = (residuals**2).sum()
    for k in range(5):
        products = residuals @ atoms.T
        best = int((products**2).sum(axis=0).argmax())
        np.testing.assert_array_equal(model.pattern_.gamma[k], dictionary.gamma[best])
        expected = products[:, best].mean() / dictionary.norms[best]
        np.testing.assert_allclose(model.pattern_.coef[k], expected, rtol=1e-3)
        residuals -= np.outer(products[:, best], atoms[best])
        left = (residuals**2).sum() / energy
        np.testing.assert_allclose(model.error_path_[k], left, rtol=1e-4)
    assert model.error_path_[-1] < 0.9 * model.error_path_[0]


def test_mp_and_smp_agree_on_a_single_image(images):
    alone = baselines.MatchingPursuit(4, **COARSE).fit(images[:1])
    together = baselines.SimultaneousMatchingPursuit(4, **COARSE).fit(images[:1])
    assert alone.pattern_ == together.pattern_


def test_a_shorter_run_gives_the_first_atoms(images):
    long, short = (baselines.SimultaneousMatchingPursuit(n, **COARSE).fit(images) for n in (4, 2))
    assert long.pattern_.take(slice(2)) == short.pattern_


def test_merit_of_an_atom_is_energy_and_scatter(rng):
    labels = np.array([0, 1, 2, 0, 1, 2, 2])
    products = rng.normal(size=(11, 7)).astype(np.float32)
    found = separating_energy(labels, 3, 2.0)(products)
    for c, merit in zip(products.astype(np.float64), found, strict=True):
        own = [c[labels == m] for m in range(3)]
        between = sum(len(v) * (v.mean() - c.mean()) ** 2 for v in own)
        within = sum(((v - v.mean()) ** 2).sum() for v in own)
        assert merit == pytest.approx((c**2).sum() + 2 * (between - within), rel=1e-4, abs=1e-4)


def test_supervised_selection_prefers_what_tells_classes_apart():
    """One blob in all images, and another in one class only."""
    common = Pattern([1.0], [[0.0, -0.4, 0.0, 0.2, 0.2]]).render(SHAPE)
    special = Pattern([1.2], [[0.0, 0.5, 0.3, 0.2, 0.2]]).render(SHAPE)
    rng = np.random.default_rng(0)
    clean = np.stack([common, common + special]).repeat(6, axis=0)
    X, y = clean + 0.01 * rng.normal(size=clean.shape), np.repeat([0, 1], 6)
    first = {}
    for separation in (0.0, 2.0):
        model = baselines.SupervisedAtomSelection(1, separation=separation, **COARSE).fit(X, y)
        first[separation] = model.patterns_[0].gamma[0]
        np.testing.assert_array_equal(model.patterns_[1].gamma, model.patterns_[0].gamma)
    assert first[0.0][1] < 0 < first[2.0][1]


@pytest.mark.parametrize(
    "method",
    [baselines.SimultaneousMatchingPursuitClassifier, baselines.SupervisedAtomSelection],
)
def test_moved_images_are_classified_by_the_nearest_manifold(method, classes):
    aligned, moved, y = classes
    model = method(4, transformation=FAMILY, n_widths=4, n_angles=6).fit(aligned, y)
    distances = model.distances(moved)
    assert distances.shape == (16, 2)
    np.testing.assert_array_equal(model.predict(moved), model.classes_[distances.argmin(axis=1)])
    assert model.score(moved, y) >= 15 / 16
    shorter = baselines.with_first_atoms(model, 1)
    assert [p.n_atoms for p in shorter.patterns_] == [1, 1]
    assert [p.n_atoms for p in model.patterns_] == [4, 4]
    # A pattern of one atom is farther from most images.
    assert shorter.distances(moved).min(axis=1).mean() > distances.min(axis=1).mean()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (baselines.MatchingPursuit(0), "n_atoms=0 must be an integer of at least 1"),
        (baselines.SimultaneousMatchingPursuit(2, step=0.0), r"step=0.0 must be positive"),
        (baselines.SimultaneousMatchingPursuit(2, n_widths=0), "n_widths=0 must be an integer"),
        (baselines.MatchingPursuit(2, n_angles=-1), "n_angles=-1 must be an integer"),
        (baselines.SupervisedAtomSelection(2, separation=-1.0), "separation=-1.0"),
        (baselines.SupervisedAtomSelection(2, transformation="twist"), "transformation='twist'"),
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_bad_options_are_named(model, message, images):
    with pytest.raises(ValueError, match=message):
        model.fit(images, [0, 1, 0, 1, 0, 1, 0])


def test_blank_images_leave_nothing():
    model = baselines.MatchingPursuit(1, **COARSE).fit(np.zeros((2, *SHAPE)))
    assert model.error_path_.tolist() == [0.0]


def test_images_that_are_not_square():
    shape = (6, 12)
    image = Pattern([1.0], [[0.3, 0.4, -0.1, 0.3, 0.15]]).render(Grid(*shape))
    model = baselines.MatchingPursuit(4).fit(image[None])
    assert model.error_path_[-1] < 0.2
    np.testing.assert_allclose(
        model.error_path_[-1],
        ((model.pattern_.render(shape) - image) ** 2).sum() / (image**2).sum(),
        rtol=1e-3,
    )


@parametrize_with_checks(
    [
        baselines.MatchingPursuit(1, **COARSE),
        baselines.SimultaneousMatchingPursuit(1, **COARSE),
    ]
)
@pytest.mark.usefixtures("as_users_run")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks(
    [
        baselines.SimultaneousMatchingPursuitClassifier(1, transformation="translation", **COARSE),
        baselines.SupervisedAtomSelection(1, transformation="translation", **COARSE),
    ]
)
@pytest.mark.usefixtures("as_users_run", "least_effort")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks_of_classifiers(estimator, check):
    check(estimator)
