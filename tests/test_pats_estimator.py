"""The estimator `PATS` as scikit-learn's users meet it."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import patternfold as pf
from patternfold import datasets

pytestmark = pytest.mark.usefixtures("small_chunks")

# Few kernels to compile: the checks come with many shapes.
CHECKED = pf.PATS(
    n_atoms=1,
    transformation="translation",
    tangent_refinement=False,
    refit="coefficients",
    projection="fixed",
    reference=pf.Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.5]]),
    n_starts=1,
    n_exchanges=0,
)


@parametrize_with_checks([CHECKED])
@pytest.mark.usefixtures("as_users_run", "least_effort")
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_images(rng, n=12, transformation="similarity", n_atoms=3, **options):
    pattern = datasets.random_pattern(n_atoms, rng)
    images, lam = datasets.random_images(pattern, n, rng, transformation, shape=(20, 20), **options)
    return images, lam


@pytest.fixture
def quick():
    return pf.PATS(
        n_atoms=3, transformation="similarity", n_starts=1, n_exchanges=0, random_state=0
    )


def test_contract(quick, rng):
    images, _ = make_images(rng)
    assert quick.fit(images) is quick
    assert quick.pattern_.n_atoms == len(quick.error_path_) == quick.n_iter_ == 3
    assert quick.error_path_[-1] < 0.05
    assert quick.image_shape_ == (20, 20)
    assert list(quick.get_feature_names_out()) == ["theta", "tx", "ty", "s"]
    lam = quick.transform(images)
    assert lam.shape == quick.parameters_.shape == (12, 4)
    again = quick.inverse_transform(lam)
    assert again.shape == images.shape
    np.testing.assert_allclose(
        quick.distances(images),
        np.linalg.norm(images - again, axis=(1, 2)),
        rtol=1e-3,
        atol=1e-4,  # float32: distances this small are rounding
    )
    # What transform finds is at least as good as what learning left.
    assert quick.score(images) >= 1 - quick.error_path_[-1] - 1e-4
    aligned = quick.align(images)
    assert aligned.shape == images.shape
    assert aligned.var(axis=0).sum() < 0.3 * images.var(axis=0).sum()


def test_flat_rows_and_stacks_agree(quick, rng):
    images, _ = make_images(rng)
    stacked = clone(quick).fit(images)
    flat = clone(quick).set_params(image_shape=(20, 20)).fit(images.reshape(12, -1))
    assert stacked.pattern_ == flat.pattern_
    assert flat.inverse_transform(flat.parameters_).shape == (12, 400)


def test_float32_and_float64_agree(quick, rng):
    images, _ = make_images(rng, dtype=np.float64)
    double = clone(quick).fit(images)
    single = clone(quick).fit(images.astype(np.float32))
    assert double.transform(images).dtype == np.float64
    assert single.transform(images.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(double.error_path_, single.error_path_, rtol=0.05, atol=1e-4)


def test_order_and_repetition_do_not_matter(quick, rng):
    images, _ = make_images(rng)
    first = clone(quick).fit(images)
    order = rng.permutation(len(images))
    shuffled = clone(quick).fit(images[order])
    assert shuffled.pattern_ == first.pattern_
    np.testing.assert_array_equal(shuffled.parameters_, first.parameters_[order])
    weights = np.ones(12)
    weights[3] = 2
    weighted = clone(quick).fit(images, sample_weight=weights)
    repeated = clone(quick).fit(np.concatenate([images, images[3:4]]))
    assert weighted.pattern_ == repeated.pattern_
    assert weighted.pattern_ != first.pattern_
    weights[3] = 0
    without = clone(quick).fit(np.delete(images, 3, axis=0))
    ignored = clone(quick).fit(images, sample_weight=weights)
    assert ignored.pattern_ == without.pattern_
    assert ignored.parameters_.shape == (12, 4)


@pytest.mark.usefixtures("least_effort")
def test_pipeline_grid_search_pickle_joblib(quick, rng, tmp_path):
    images, lam = make_images(rng, n=16)
    flat = images.reshape(16, -1)
    search = GridSearchCV(
        quick, {"n_atoms": [1, 3], "transformation": ["translation", "similarity"]}, cv=2
    ).fit(flat)
    assert search.best_params_ == {"n_atoms": 3, "transformation": "similarity"}
    labels = lam[:, 3] > np.median(lam[:, 3])
    pipeline = make_pipeline(clone(quick), LogisticRegression(C=100)).fit(flat, labels)
    assert pipeline.score(flat, labels) > 0.9  # the size is one of the parameters
    model = search.best_estimator_
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(flat)):
        np.testing.assert_allclose(copy.transform(flat), model.transform(flat), atol=1e-5)
    joblib.dump(model, tmp_path / "model.joblib")
    assert joblib.load(tmp_path / "model.joblib").pattern_ == model.pattern_


def test_set_output(quick, rng):
    pytest.importorskip("pandas")
    images, _ = make_images(rng)
    table = quick.set_output(transform="pandas").fit(images).transform(images)
    assert list(table.columns) == ["theta", "tx", "ty", "s"]


@pytest.mark.usefixtures("least_effort")
def test_save_and_load(quick, rng, tmp_path):
    images, _ = make_images(rng)
    path = tmp_path / "model.ptm"
    model = quick.set_params(mother=pf.InverseMultiquadric(-2.0), bounds={"s": (0.6, 1.6)})
    model.fit(images).save(path)
    loaded = pf.load(path)
    assert loaded.pattern_ == model.pattern_
    assert loaded.transformation_ == model.transformation_
    np.testing.assert_array_equal(loaded.parameters_, model.parameters_)
    np.testing.assert_array_equal(loaded.transform(images), model.transform(images))
    assert clone(loaded).get_params()["n_atoms"] == 3
    for damaged in (b"", b"not a zip", path.read_bytes()[:200]):
        (tmp_path / "bad.ptm").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"bad\.ptm is not a patternfold model"):
            pf.load(tmp_path / "bad.ptm")
    with pytest.raises(FileNotFoundError):
        pf.load(tmp_path / "absent.ptm")


def test_own_components_are_not_saved(quick, rng, tmp_path):
    images, _ = make_images(rng)
    ridge = pf.CustomMother(lambda x, y: np.exp(-1) / (1 + x**2 + 2 * y**2))
    quick.set_params(mother=ridge, n_atoms=1).fit(images)
    with pytest.raises(TypeError, match="pickle it instead"):
        quick.save(tmp_path / "model.ptm")
    assert not list(tmp_path.iterdir())


def test_warm_start_adds_atoms(quick, rng):
    images, _ = make_images(rng)
    quick.set_params(n_atoms=1, warm_start=True).fit(images)
    first = quick.error_path_.copy()
    quick.set_params(n_atoms=3).fit(images)
    assert quick.pattern_.n_atoms == 3
    assert len(quick.error_path_) == 3
    assert quick.error_path_[0] == first[0]
    assert (np.diff(quick.error_path_) < 0).all()


def test_progress_and_stopping(quick, rng, capsys):
    images, _ = make_images(rng)
    seen = []
    quick.set_params(callback=seen.append).fit(images)
    assert [p.n_atoms for p in seen][:3] == [1, 2, 3]
    assert seen[0].n_images == 12
    assert capsys.readouterr() == ("", "")
    quick.set_params(callback=lambda progress: progress.n_atoms == 2, verbose=1).fit(images)
    assert quick.pattern_.n_atoms == 2
    assert "callback" in quick.stop_reason_
    said = capsys.readouterr().err
    assert "learning from 12 images of 20×20 pixels" in said
    assert "atom 2/3" in said


def test_interruption_leaves_a_model(quick, rng):
    images, _ = make_images(rng)

    def interrupt(progress):
        if progress.n_atoms == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 2 atoms"):
        quick.set_params(callback=interrupt).fit(images)
    assert quick.pattern_.n_atoms == 2
    assert quick.transform(images).shape == (12, 4)


def test_tol_stops(quick, rng):
    images, _ = make_images(rng, noise=0.01)
    quick.set_params(n_atoms=10, tol=0.5).fit(images)
    assert quick.pattern_.n_atoms < 10
    assert "tol" in quick.stop_reason_


class TestBadInput:
    def test_blank_images(self, quick):
        with pytest.raises(ValueError, match="blank"):
            quick.fit(np.zeros((4, 8, 8)))

    def test_one_image_and_identical_images(self, quick, rng):
        images, _ = make_images(rng, n=1)
        one = clone(quick).fit(images)
        same = clone(quick).fit(np.repeat(images, 5, axis=0))
        # The weight 5 instead of 1 rounds differently in float32.
        np.testing.assert_allclose(one.pattern_.coef, same.pattern_.coef, rtol=1e-3)
        assert one.error_path_[-1] < 0.05
        np.testing.assert_allclose(np.ptp(same.parameters_, axis=0), 0)

    def test_some_blank_images(self, quick, rng):
        images, _ = make_images(rng)
        images[:3] = 0
        quick.fit(images)
        assert np.isfinite(quick.parameters_).all()
        assert quick.score(images) > 0.9

    def test_fewer_pixels_than_parameters(self, quick, rng):
        quick.fit(rng.uniform(size=(5, 1, 2)))
        assert np.isfinite(quick.error_path_).all()

    def test_not_finite(self, quick):
        images = np.ones((3, 4, 4))
        images[1, 2, 2] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            quick.fit(images)
        images[1] = np.nan
        with pytest.raises(ValueError, match=r"X\[1\] has no pixel that counts"):
            quick.fit(images)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_atoms": 0}, "n_atoms=0"),
            ({"solver": "serach"}, "search"),
            ({"refit": "everything"}, "refit='everything'"),
            ({"projection": "globel"}, "global"),
            ({"reference": "centriod"}, "centroid"),
            ({"reference": 99}, "reference=99"),
            ({"tol": -1.0}, "tol=-1.0"),
            ({"transformation": "similarty"}, "similarity"),
            ({"mother": "gausian"}, "gaussian"),
            ({"bounds": {"scale": (1, 2)}}, "scale"),
            ({"image_shape": (3, 3)}, "image_shape"),
        ],
    )
    @pytest.mark.usefixtures("as_users_run")
    def test_options(self, quick, options, message):
        with pytest.raises(ValueError, match=message):
            quick.set_params(**options).fit(np.ones((3, 4, 4)) * np.arange(4))

    def test_no_images(self, quick):
        for shape in ((0, 4, 4), (0, 16)):
            with pytest.raises(ValueError, match=r"0 sample\(s\)"):
                quick.fit(np.zeros(shape))

    def test_other_images_later(self, quick, rng):
        images, _ = make_images(rng)
        quick.fit(images)
        with pytest.raises(ValueError, match=r"\(25, 16\)"):
            quick.transform(np.ones((2, 25, 16)))
        with pytest.raises(ValueError, match="sample_weight"):
            quick.fit(images, sample_weight=-np.ones(12))
