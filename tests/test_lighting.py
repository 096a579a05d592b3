"""Images in a light of their own, g·U_λ(p) + b, and pixels that do not count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learning_problems import SHAPE, make_problem

import patternfold as pf
from patternfold import JPATS, PATS, AlignedViewsClassifier, Pattern, datasets, load, project
from patternfold.learning.distance import Distance
from patternfold.learning.lighting import Lighting
from patternfold.learning.missing import as_mask
from patternfold.model import manifold
from patternfold.model.atoms import stack_atoms
from patternfold.model.transformations import as_transformation
from patternfold.persistence import save

pytestmark = pytest.mark.usefixtures("small_chunks")

LIGHTS = [Lighting(gain, offset) for gain in (False, True) for offset in (False, True)]
COEF = [1.0, -0.7, 0.5]
GAMMA = [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2], [0.5, 0.3, -0.3, 0.15, 0.3]]


@pytest.fixture(scope="module")
def pattern():
    return Pattern(COEF, GAMMA)


@pytest.fixture(scope="module")
def lit(pattern):
    """Images of the pattern in various light, and what made them."""
    rng = np.random.default_rng(0)
    images, lam = datasets.random_images(pattern, 12, rng, "similarity", shape=SHAPE)
    gain, offset = rng.uniform(0.5, 3, 12), rng.uniform(-2, 2, 12)
    images = gain[:, None, None] * images.reshape(12, *SHAPE) + offset[:, None, None]
    return images + 0.01 * rng.standard_normal(images.shape), lam, gain, offset


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("light", LIGHTS, ids=str)
def test_derivatives(pattern, light, masked, rng):
    """Slope and Hessian of the distance at the best gain and offset, against autodiff."""
    family, grid = as_transformation("similarity"), pf.Grid(10, 10)
    box = family.parameters
    lam = box.put_inside(family.identity + 0.1 * rng.standard_normal((3, box.dim)))
    images = rng.uniform(0.5, 2, (3, 1)) * manifold.render(pattern, lam, family, grid)
    images = jnp.asarray(images + rng.normal(size=(3, 1)) + 0.1 * rng.normal(size=images.shape))
    near = jnp.asarray(box.put_inside(lam + 0.05 * rng.standard_normal(lam.shape)))
    roots = jnp.asarray(rng.uniform(0, 1, images.shape)) if masked else None
    atoms = jax.tree.map(jnp.asarray, stack_atoms([pattern], np.float64).of(0))
    distance = Distance(atoms, family, jnp.asarray(grid.x), jnp.asarray(grid.y), light)

    def square(lam, image, own):
        own = None if own is None else own[None]
        return distance.squares(image[None], own, lam[None])[0]

    first, second = jax.jit(
        lambda *rows: (distance.first_order(*rows), distance.second_order(*rows))
    )(images, roots, near)
    rows = (near, images, roots)
    slopes = -0.5 * jax.jit(jax.vmap(jax.jacfwd(square)))(*rows)
    hessians = 0.5 * jax.jit(jax.vmap(jax.jacfwd(jax.jacfwd(square))))(*rows)
    np.testing.assert_allclose(first.slope, slopes, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(second.slope, slopes, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(second.hessian, hessians, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(first.metric, second.metric, atol=1e-11)
    assert float(jnp.linalg.eigvalsh(first.metric).min()) > -1e-9


@pytest.mark.usefixtures("x64")
def test_the_fit_is_least_squares(rng):
    images, values = rng.normal(size=(4, 30)) + 5, rng.normal(size=(4, 30))
    images += 2 * values
    roots = rng.uniform(0, 1, images.shape)
    fit = Lighting(True, True).fit(*map(jnp.asarray, (images, roots, values)), jnp.ones(4))
    for u, r, q, gain, offset in zip(images, roots, values, fit.gain, fit.offset, strict=True):
        columns = np.stack([q * r, r], axis=1)
        expected = np.linalg.lstsq(columns, u * r, rcond=None)[0]
        np.testing.assert_allclose([gain, offset], expected, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_gains_are_neither_negative_nor_endless():
    values = jnp.asarray([[1.0, -1.0, 0, 0], [1e-6, -1e-6, 0, 0]])
    images = jnp.asarray([[-1.0, 1.0, 0, 0], [1.0, -1.0, 0, 0]])
    fit = Lighting(True, False).fit(images, None, values, jnp.full(2, 2.0))
    assert float(fit.gain[0]) == 0
    assert 1 <= float(fit.gain[1]) < 100  # 10⁶ would fit


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("light", LIGHTS, ids=str)
def test_normal_equations(light, rng):
    """The slope of E in the atoms' parameters, each image at its best gain and offset."""
    problem, pattern, lam = make_problem(rng, n=4, n_atoms=2, noise=0.3, lighting=light)
    equations = problem.equations(pattern, lam, problem.whole, True)
    slope = equations.normal.slope.reshape(2, -1)
    h = 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        ends = [pattern.replace(pattern.coef + sign * step, pattern.gamma) for sign in (1, -1)]
        up, down = (problem.error(end, lam) for end in ends)
        assert slope[j, -1] == pytest.approx(-0.5 * (up - down) / (2 * h), rel=1e-5)


class TestProjection:
    def test_pose_gain_and_offset(self, pattern, lit):
        images, lam, gain, offset = lit
        light = {"gain": True, "offset": True, "effort": "quick"}
        found = project(pattern, images, "similarity", **light)
        np.testing.assert_allclose(found.parameters, lam, atol=0.02)  # 1 % of noise
        np.testing.assert_allclose(found.gain, gain, rtol=0.02)
        np.testing.assert_allclose(found.offset, offset, atol=0.01)
        plain = project(pattern, images, "similarity", effort="quick")
        assert (plain.distances > 3 * found.distances).all()
        assert (plain.gain == 1).all()
        assert (plain.offset == 0).all()

    def test_masked_and_missing_pixels_count_nothing(self, pattern, lit):
        images, lam, gain, _ = lit
        mask = np.ones(images.shape, bool)
        mask[:, :3], mask[::2, :, -2:] = False, False
        framed = np.where(mask, images, 50.0)
        light = {"gain": True, "offset": True, "effort": "quick"}
        found = project(pattern, framed, "similarity", **light, sample_mask=mask)
        np.testing.assert_allclose(found.parameters, lam, atol=0.02)
        np.testing.assert_allclose(found.gain, gain, rtol=0.05)
        missing = project(pattern, np.where(mask, images, np.nan), "similarity", **light)
        np.testing.assert_array_equal(missing.parameters, found.parameters)

    def test_the_second_best_pose_of_a_symmetric_pattern(self):
        bar = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.15]])
        lam = np.array([[0.4, 0.1, 0.0]])
        image = manifold.render(bar, lam, "rotation-translation", SHAPE)
        found = project(bar, image + 0.01, "rotation-translation", effort=pf.Effort())
        turned = abs(found.second[0, 0] - found.parameters[0, 0])
        assert turned == pytest.approx(np.pi, abs=0.05)
        assert found.second_distances[0] == pytest.approx(found.distances[0], rel=0.01)

    def test_constant_images_are_blank(self, pattern):
        images = np.full((12, *SHAPE), 0.3)  # as many as others: compiled code is shared
        found = project(pattern, images, "similarity", gain=True, offset=True, effort="quick")
        assert set(found.status) == {"blank"}

    def test_bad_masks(self, pattern, lit):
        images = lit[0]
        with pytest.raises(ValueError, match=r"sample_mask has shape \(3,\)"):
            project(pattern, images, "similarity", sample_mask=np.ones(3))
        with pytest.raises(ValueError, match="sample_mask must be boolean"):
            project(pattern, images, "similarity", sample_mask=np.full(images.shape, 0.5))

    def test_one_mask_for_all(self):
        assert as_mask(np.eye(2), (3, 4)).tolist() == [[True, False, False, True]] * 3


@pytest.fixture(scope="module")
def model(lit):
    options = {"transformation": "similarity", "n_starts": 1, "n_exchanges": 0}
    return PATS(3, **options, gain=True, offset=True).fit(lit[0])


class TestLearning:
    def test_patterns_in_any_light(self, model, lit):
        images, _, gain, offset = lit
        assert model.error_path_[-1] < 0.01  # noise is 0.001 of the energy
        assert np.corrcoef(model.gain_, gain)[0, 1] > 0.999
        assert np.corrcoef(model.offset_, offset)[0, 1] > 0.999
        assert model.gain_.mean() == pytest.approx(1, rel=1e-3)
        assert model.score(images) == pytest.approx(1 - model.error_path_[-1], abs=5e-3)

    def test_aligned_images_keep_their_light(self, model, lit):
        images, *_ = lit
        aligned = model.align(images)
        even = (aligned - model.offset_[:, None, None]) / model.gain_[:, None, None]
        assert even[:, 4:-4, 4:-4].std(axis=0).mean() < 0.1 * images.std(axis=0).mean()

    def test_files_keep_the_light(self, model, lit, tmp_path):
        model.save(tmp_path / "lit.ptm")
        again = load(tmp_path / "lit.ptm")
        assert again.gain
        np.testing.assert_array_equal(again.offset_, model.offset_)
        np.testing.assert_array_equal(again.transform(lit[0]), model.transform(lit[0]))

    def test_masks_and_missing_pixels(self, lit, model):
        images, *_ = lit
        mask = np.ones(images.shape, bool)
        mask[:, :2] = False
        framed = np.where(mask, images, 40.0)
        masked = PATS(**model.get_params()).fit(framed, sample_mask=mask)
        assert masked.error_path_[-1] < 0.01
        missing = PATS(**model.get_params()).fit(np.where(mask, images, np.nan))
        np.testing.assert_array_equal(missing.parameters_, masked.parameters_)

    @pytest.mark.usefixtures("as_users_run")
    def test_options_are_refused_by_name(self, lit):
        with pytest.raises(ValueError, match="gain=2 must be True or False"):
            PATS(1, gain=2).fit(lit[0])

    def test_all_images_constant(self):
        with pytest.raises(ValueError, match="blank"):
            PATS(1, offset=True).fit(np.ones((3, 8, 8)) * np.arange(3)[:, None, None])


@pytest.mark.parametrize(
    "make",
    [
        lambda **light: JPATS(1, transformation="rotation-translation", n_tuning=1, **light),
        lambda **light: AlignedViewsClassifier(1, transformation="rotation-translation", **light),
    ],
    ids=["JPATS", "views"],
)
def test_classes_in_any_light(make, tmp_path):
    """A bar and a dot, in brightness that tells nothing of either."""
    rng = np.random.default_rng(3)
    shapes = [[[0.0, 0.0, 0.0, 0.5, 0.1]], [[0.0, 0.0, 0.0, 0.2, 0.2]]]
    images = np.concatenate(
        [
            datasets.random_images(
                Pattern([1.0], gamma), 12, rng, "rotation-translation", shape=(16, 16)
            )[0]
            for gamma in shapes
        ]
    ).reshape(-1, 16, 16)
    images = rng.uniform(0.3, 3, (24, 1, 1)) * images + rng.normal(size=(24, 1, 1))
    y = np.repeat(["bar", "dot"], 12)
    train = np.arange(24) % 2 == 0
    model = make(gain=True, offset=True).fit(images[train], y[train])
    assert model.score(images[~train], y[~train]) == 1
    save(model, tmp_path / "model.ptm")
    assert load(tmp_path / "model.ptm").score(images[~train], y[~train]) == 1
