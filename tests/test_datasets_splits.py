"""Training and test images of several classes, and how pictures are made ready."""

import numpy as np
import pytest

from patternfold import datasets
from patternfold.datasets.splits import choose


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a set in place of MNIST, which takes long to read."""
    folder, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    pictures = np.zeros((60, 28, 28), np.uint8)
    pictures[:, 8:20, 8:20] = rng.integers(0, 256, size=(60, 12, 12))
    np.savez(folder / "mnist_train_10k.npz", x=pictures, y=np.repeat([3, 5, 8], 20))
    return folder


@pytest.fixture(scope="module")
def digits(folder):
    return split(folder, 1)


def split(folder, seed):
    return datasets.split_digits(
        "moderate", 6, seed, 4, digits=(3, 8), canvas=(36, 36), data=folder
    )


def test_digits_are_transformed_and_of_unit_norm(digits):
    assert digits.X.shape == (12, 36, 36)
    assert digits.X_test.shape == (8, 36, 36)
    assert digits.y.tolist() == [3] * 6 + [8] * 6
    assert digits.y_test.tolist() == [3] * 4 + [8] * 4
    for images in (digits.X, digits.X_test, digits.aligned, digits.aligned_test):
        np.testing.assert_allclose(np.linalg.norm(images, axis=(1, 2)), 1, rtol=1e-5)  # float32
    # The same ink, moved: neighbours in the list are what they were, but elsewhere.
    assert np.abs(digits.X - digits.aligned).max() > 0.05


def test_training_and_test_images_are_distinct(digits):
    both = np.concatenate([digits.aligned, digits.aligned_test]).reshape(20, -1)
    assert len(np.unique(both, axis=0)) == 20


def test_the_seed_decides(folder, digits):
    np.testing.assert_array_equal(split(folder, 1).X, digits.X)
    assert not np.array_equal(split(folder, 2).X, digits.X)


def test_plankton_comes_from_the_named_folder(tmp_path, rng):
    pictures = 255 - rng.integers(0, 50, size=(20, 8, 8)).astype(np.uint8)
    labels = np.repeat([0, 1, 2], [4, 8, 8])
    np.savez(tmp_path / "plankton_ndsb12_64.npz", x=pictures, y=labels, class_names=list("abc"))
    found = datasets.split_plankton(5, 0, 3, data=tmp_path)
    assert found.X.shape == (10, 4, 4)
    # The first class has too few pictures; the bright background has become black.
    assert set(found.y) == set(found.y_test) == {1, 2}
    assert found.aligned is None
    np.testing.assert_allclose(np.linalg.norm(found.X, axis=(1, 2)), 1, rtol=1e-5)  # float32


def test_too_few_images_are_named(rng):
    with pytest.raises(ValueError, match="class 1 has 3 images; 2 for training and 2 for tests"):
        choose(np.array([0] * 5 + [1] * 3), [0, 1], 2, 2, rng)


def test_pictures_are_made_ready():
    pictures = np.zeros((1, 4, 4), np.uint8)
    pictures[0, 1, 1] = 255
    np.testing.assert_array_equal(datasets.ink(pictures), pictures / np.float32(255))
    np.testing.assert_array_equal(datasets.ink(255 - pictures), pictures / np.float32(255))
    assert datasets.shrink(pictures / 255).tolist() == [[[0.25, 0.0], [0.0, 0.0]]]
    with pytest.raises(ValueError, match="4×4 pixels cannot be shrunk by 3"):
        datasets.shrink(pictures, 3)
    np.testing.assert_array_equal(datasets.unit(np.zeros((2, 3, 3))), np.zeros((2, 3, 3)))


def test_search_box_holds_what_the_protocol_draws():
    for rotation in ("moderate", "full"):
        box, drawn = datasets.search_box(rotation), datasets.protocol_bounds(rotation)
        for name, (low, high) in box.items():
            assert low <= drawn[name][0] < drawn[name][1] <= high
    assert "theta" not in datasets.search_box("full")
