"""Learning and projecting out of core: what arrays in memory give, from blocks."""

import errno

import numpy as np
import pandas as pd
import pytest
import zarr
from helpers import STACK_OPTIONS, as_bytes, shifted_images

import patternfold as pf
from patternfold.files import sinks

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture(scope="module")
def images():
    return as_bytes(shifted_images(110, 0.001))


@pytest.fixture(scope="module")
def stack(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("stack") / "x.zarr"
    zarr.create_array(path, data=images, chunks=(32, 16, 16))
    return pf.open_stack(path)


@pytest.fixture(scope="module")
def in_memory(images):
    return pf.PATS(3, offset=True, **STACK_OPTIONS).fit(images.astype(np.float32))


@pytest.fixture(scope="module")
def out_of_core(stack):
    return pf.PATS(3, offset=True, **STACK_OPTIONS).fit(stack)


def test_out_of_core_is_in_memory_to_rounding(in_memory, out_of_core, images):
    assert len(out_of_core.parameters_) == len(out_of_core.offset_) == len(images)
    # The same images grow the pattern, and sums differ in the order of float64 additions alone.
    one, other = out_of_core, in_memory
    np.testing.assert_allclose(one.error_path_, other.error_path_, rtol=1e-5)
    np.testing.assert_allclose(one.pattern_.coef, other.pattern_.coef, rtol=1e-4)
    # An atom may be written in two ways, its axes swapped by a quarter turn: ψ is compared by what
    # the pattern looks like, to what 1e-4 of a width of 0.1 makes of it.
    places, widths = (
        (one.pattern_.gamma[:, k], other.pattern_.gamma[:, k]) for k in ([1, 2], [3, 4])
    )
    np.testing.assert_allclose(*places, atol=1e-4)
    np.testing.assert_allclose(*(np.sort(w, axis=1) for w in widths), atol=1e-4)
    drawn, expected = (model.pattern_.render((32, 32)) for model in (one, other))
    np.testing.assert_allclose(drawn, expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_allclose(one.parameters_, other.parameters_, atol=1e-4)
    # The learned error is that of the model, and of all images, not of the part seen first.
    assert 1 - out_of_core.score(images) == pytest.approx(out_of_core.error_path_[-1], rel=0.01)
    assert out_of_core.error_path_[-1] < 0.5


def test_blocks_give_what_arrays_give(in_memory, images, stack):
    in_array, in_stack = in_memory.project(images), in_memory.project(stack)
    for name in ("parameters", "distances", "status", "offset"):
        one, other = getattr(in_stack, name), getattr(in_array, name)
        if name == "status":
            assert (one == other).mean() > 0.98
        else:  # to rounding: chunks differ
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(in_memory.align(stack), in_memory.align(images), atol=0.05)
    assert in_array.parameters.std() > 0.05


@pytest.mark.exhaustive
def test_masks_and_weights(in_memory, images):
    masks = np.ones(images.shape, bool)
    masks[:, :3] = False
    spoiled = np.where(masks, images, 0)
    weights = np.arange(len(images)) % 2
    model = pf.PATS(2, offset=True, **STACK_OPTIONS)
    model.fit(pf.open_stack(spoiled), sample_weight=weights, sample_mask=masks[0])
    one = model.transform(pf.open_stack(spoiled), sample_mask=masks)
    np.testing.assert_allclose(one, model.transform(spoiled, sample_mask=masks), atol=1e-4)
    assert np.abs(model.transform(spoiled) - one).max() > 1e-3
    # Spoiled pixels and images without weight took no part.
    best = in_memory.score(images[1::2], sample_mask=masks[0])
    assert model.score(images[1::2], sample_mask=masks[0]) > best - 0.15


@pytest.mark.exhaustive
def test_an_image_by_its_index_is_the_anchor(stack):
    model = pf.PATS(2, reference=71, offset=True, **STACK_OPTIONS).fit(stack)
    assert np.abs(model.parameters_[71]).max() < 1e-5  # float32
    assert np.abs(model.parameters_).max() > 0.1


@pytest.mark.exhaustive
def test_warm_start_goes_on_with_more_images(in_memory, stack, images):
    model = pf.PATS(2, offset=True, warm_start=True, **STACK_OPTIONS).fit(images[:50])
    first = model.error_path_.copy()
    model.set_params(n_atoms=3).fit(stack)
    assert model.pattern_.n_atoms == 3
    np.testing.assert_array_equal(model.error_path_[:2], first)
    assert model.error_path_[-1] == pytest.approx(in_memory.error_path_[-1], rel=0.03)


@pytest.mark.exhaustive
def test_losses_and_priors(images, stack):
    spoiled = images.copy()
    spoiled[::5, 4:9, 4:9] = 255
    options = {"loss": "student-t", "prior": "learned", "offset": True, **STACK_OPTIONS}
    robust = pf.PATS(2, **options).fit(pf.open_stack(spoiled))
    plain = pf.PATS(2, offset=True, **STACK_OPTIONS).fit(pf.open_stack(spoiled))
    clean = images[1::5]
    assert robust.loss_.scale > 0
    assert robust.prior_ is not None
    assert len(robust.parameters_) == len(images)
    by_squares = [
        pf.project(model.pattern_, clean, "translation", offset=True).distances
        for model in (robust, plain)
    ]
    assert (by_squares[0] ** 2).mean() < (by_squares[1] ** 2).mean()
    with pytest.raises(ValueError, match="partial_fit knows loss='squared'"):
        robust.partial_fit(images)


def test_wrong_sizes_are_refused(in_memory, stack):
    with pytest.raises(ValueError, match=r"fitted on images of shape \(16, 16\)"):
        in_memory.transform(pf.open_stack(np.zeros((3, 8, 16))))
    with pytest.raises(ValueError, match=r"x\.zarr"):
        pf.PATS(2, image_shape=(8, 32)).fit(stack)


# Results in files


@pytest.mark.parametrize("ending", [".npy", ".zarr", ".csv", ".parquet"])
def test_results_are_read_by_others(ending, in_memory, images, stack, tmp_path):
    path, told = tmp_path / f"poses{ending}", []
    done = pf.stream(in_memory, stack, path, callback=lambda *line: told.append(line))
    assert done == len(images)
    assert [line[0] for line in told] == [32, 64, 96, 110]
    names = list(in_memory.get_feature_names_out())
    if ending == ".npy":
        found = np.load(path)
    elif ending == ".zarr":
        found = zarr.open_group(path, mode="r")["transform"][:]
    else:
        table = pd.read_csv(path) if ending == ".csv" else pd.read_parquet(path)
        found = table[names].to_numpy()
    np.testing.assert_allclose(found, in_memory.transform(images), atol=1e-5)


def test_projections_and_images_in_files(in_memory, images, stack, tmp_path):
    pf.stream(in_memory, stack, tmp_path / "x.csv", "project")
    table = pd.read_csv(tmp_path / "x.csv")
    assert list(table) == ["tx", "ty", "distance", "status", "gain", "offset"] or "tx" in table
    np.testing.assert_allclose(table["distance"], in_memory.distances(images), rtol=1e-5)
    pf.stream(in_memory, stack, tmp_path / "x.npy", "align")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), in_memory.align(images), atol=0.05)
    for path, method in (("y.csv", "align"), ("y.npy", "project"), ("y.txt", "transform")):
        with pytest.raises(ValueError, match=path):
            pf.stream(in_memory, stack, tmp_path / path, method)
    with pytest.raises(ValueError, match="method='predict' is not known"):
        pf.stream(in_memory, stack, tmp_path / "z.csv", "predict")


@pytest.mark.exhaustive
def test_error_bars_in_files(in_memory, images, tmp_path):
    pf.stream(in_memory, images[:32], tmp_path / "x.csv", "project", uncertainty=True)
    table = pd.read_csv(tmp_path / "x.csv")
    expected = in_memory.project(images[:32], uncertainty=True)
    np.testing.assert_allclose(table[["std_tx", "std_ty"]], expected.std, rtol=1e-3)
    np.testing.assert_array_equal(table["n_modes"], expected.n_modes)


@pytest.mark.parametrize("ending", [".npy", ".zarr", ".csv", ".parquet"])
def test_a_full_disk_keeps_what_was_written(ending, in_memory, stack, tmp_path, monkeypatch):
    path, kind = tmp_path / f"x{ending}", sinks.SINKS[ending]
    whole = kind.write

    def write(self, columns):
        if self.rows >= 64:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(self, columns)

    monkeypatch.setattr(kind, "write", write)
    with pytest.raises(OSError, match=r"first 64 of 110 images\. Make room"):
        pf.stream(in_memory, stack, path)
    monkeypatch.setattr(kind, "write", whole)
    if ending == ".parquet":
        assert len(pd.read_parquet(path)) == 64
        return
    told = []
    pf.stream(in_memory, stack, path, resume=True, callback=lambda *line: told.append(line[0]))
    assert told == [96, 110], "only what was missing is done"
    pf.stream(in_memory, stack, tmp_path / f"y{ending}")
    if ending == ".zarr":
        found = [zarr.open_group(tmp_path / f"{n}.zarr", mode="r")["transform"][:] for n in "xy"]
        np.testing.assert_array_equal(*found)
    else:
        assert path.read_bytes() == (tmp_path / f"y{ending}").read_bytes()
