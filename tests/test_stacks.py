"""Stacks: files written by the libraries of their field, read block by block, and their faults."""

import pickle

import dask.array
import h5py
import mrcfile
import numpy as np
import pandas as pd
import pytest
import starfile
import tifffile
import zarr
from PIL import Image

from patternfold.files import StackError, open_stack
from patternfold.files.stacks import as_stack, opening
from patternfold.learning.stream import stack as stacks


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (23, 12, 16)).astype(np.uint8)


def write_mrc(path, values):
    with mrcfile.new(path, overwrite=True) as file:
        file.set_data(values)


def write(kind, images, folder):
    """Write images with the library that the kind of file belongs to; return the path."""
    path = folder / kind
    if kind == "x.npy":
        np.save(path, images)
    elif kind == "x.zarr":
        zarr.create_array(path, data=images, chunks=(5, 12, 16))
    elif kind == "sharded.zarr":
        zarr.create_array(path, data=images, chunks=(5, 12, 16), shards=(10, 12, 16))
    elif kind == "x.h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("a/images", data=images, chunks=(4, 12, 16), compression="gzip")
            file["labels"] = np.arange(len(images))
    elif kind in ("plain.tif", "packed.tif"):
        packing = "zlib" if kind == "packed.tif" else None
        tifffile.imwrite(path, images, photometric="minisblack", compression=packing)
    elif kind == "x.ome.tif":
        tifffile.imwrite(path, images, photometric="minisblack", metadata={"axes": "TYX"})
    elif kind == "x.mrcs":
        write_mrc(path, images.astype(np.int16))
    elif kind == "x.star":
        write_mrc(folder / "one.mrcs", images[:9].astype(np.float32))
        write_mrc(folder / "two.mrcs", images[9:][::-1].astype(np.float32))
        names = [f"{i + 1:06d}@one.mrcs" for i in range(9)]
        names += [f"{14 - i:06d}@two.mrcs" for i in range(14)]
        starfile.write({"particles": pd.DataFrame({"rlnImageName": names})}, path)
    elif kind == "folder":
        path.mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image).save(path / f"{i:03d}.png")
    return path


KINDS = ["x.npy", "x.zarr", "sharded.zarr", "x.h5", "plain.tif", "packed.tif", "x.ome.tif",
         "x.mrcs", "x.star", "folder"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_real_libraries_are_read_in_parts(kind, images, tmp_path):
    stack = pickle.loads(pickle.dumps(open_stack(write(kind, images, tmp_path))))
    assert stack.shape == images.shape
    np.testing.assert_array_equal(stack.images(7, 15), images[7:15])
    np.testing.assert_array_equal(stack.take(np.array([0, 3, 4, 22])), images[[0, 3, 4, 22]])
    small = {"x.mrcs": np.int16, "x.star": np.float32}.get(kind, np.uint8)
    assert stack.images(0, 2).dtype == small, "small numbers stay small"
    assert stack.together == {"x.zarr": 5, "sharded.zarr": 10, "x.h5": 4}.get(kind, 1)


def test_another_process_may_be_in_another_folder(images, tmp_path, monkeypatch):
    write("x.npy", images, tmp_path)
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(open_stack("x.npy"))
    monkeypatch.chdir(tmp_path.parent)
    stack = pickle.loads(sent)
    assert stack.name == "x.npy"
    np.testing.assert_array_equal(stack.images(2, 9), images[2:9])


def test_arrays_of_libraries(images, tmp_path):
    with h5py.File(write("x.h5", images, tmp_path), "r") as file:
        arrays = [
            zarr.open_array(write("x.zarr", images, tmp_path), mode="r"),
            file["a/images"],
            dask.array.from_array(images, chunks=(6, 12, 16)),
        ]
        for array in arrays:
            stack = as_stack(array)
            assert stack is not None
            np.testing.assert_array_equal(stack.images(5, 13), images[5:13])


def test_memory_maps_are_streamed_where_they_are_large(images, tmp_path, monkeypatch):
    mapped = np.load(write("x.npy", images, tmp_path), mmap_mode="r")
    assert as_stack(mapped) is None
    assert as_stack(images) is None
    monkeypatch.setattr(opening, "RESIDENT", 100)
    for array in (mapped, mapped[4:]):  # the second begins in the middle of the file
        stack = pickle.loads(pickle.dumps(as_stack(array)))
        np.testing.assert_array_equal(stack.images(2, 9), array[2:9])


def test_numbers(images):
    big = images.astype(">u2")
    assert open_stack(big).images(0, 3).dtype == np.uint16
    np.testing.assert_array_equal(open_stack(big).images(0, 3), images[:3])
    assert open_stack(images > 4).images(0, 1).dtype == np.uint8
    for dtype, floats in (("i2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("u4", "f4")):
        stack = open_stack(images.astype(dtype))
        assert stack.floats == floats
        assert np.result_type(stack.images(0, 1), np.float32) == floats


def test_blocks_and_parts(images, monkeypatch):
    monkeypatch.setitem(stacks.BLOCK_BYTES, "cpu", 12 * 16 * 4 * 8)
    stack = open_stack(images)
    assert stack.spans() == [(0, 8), (8, 16), (16, 23)]
    stack.together = 3
    assert stack.block == 6
    stack.together = 20
    assert stack.block == 20
    stack.together = 100
    assert stack.block == 8
    assert len(stack.part(100)) == 23
    some = open_stack(np.zeros((5000, 2, 2), np.uint8)).part(256)
    assert len(some) == 256
    assert some[[0, -1]].tolist() == [0, 4999]


def test_fingerprints_tell_stacks_apart(images):
    same = open_stack(images).fingerprint
    assert open_stack(images.copy()).fingerprint == same
    images[11] += 1
    assert open_stack(images[:, ::-1]).fingerprint != same
    assert open_stack(images[:-1]).fingerprint != same


# Faults


def broken(match, path, *rows):
    with pytest.raises(StackError, match=match) as caught:
        open_stack(path).images(*(rows or (0, 1)))
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_missing_and_truncated_chunks(images, tmp_path):
    path = write("x.zarr", images, tmp_path)
    chunk = path / "c" / "1" / "0" / "0"
    content = chunk.read_bytes()
    chunk.unlink()
    assert str(chunk) in broken("lacks 1 chunk", path)
    chunk.write_bytes(content[: len(content) // 2])
    broken("images 4 to 6 can't be read", path, 4, 7)
    np.testing.assert_array_equal(open_stack(path).images(0, 5), images[:5])


def test_truncated_files(images, tmp_path):
    for kind in ("x.npy", "x.h5", "x.mrcs", "packed.tif"):
        path = write(kind, images, tmp_path)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) * 2 // 3])
        broken("can't be|lacks|damaged", path, 0, 23)


def test_hdf5_chunks_that_were_never_written(images, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = file.create_dataset("images", images.shape, np.uint8, chunks=(4, 12, 16))
        data[:8] = images[:8]
    broken("lacks 4 chunk", tmp_path / "x.h5")


def test_other_sizes_and_numbers_half_way(images, tmp_path):
    folder = write("folder", images, tmp_path)
    Image.fromarray(images[5, :8]).save(folder / "005.png")
    assert "005.png" in broken("Bring all pictures to one size", folder, 0, 9)
    Image.fromarray(images[5].astype(np.uint16)).save(folder / "005.png")
    assert "005.png" in broken("uint16", folder, 0, 9)
    path = write("x.star", images, tmp_path)
    write_mrc(tmp_path / "two.mrcs", images[9:, :8].astype(np.float32))
    assert "two.mrcs" in broken("at one size", path, 8, 12)
    write_mrc(tmp_path / "two.mrcs", images[9:12].astype(np.float32))
    assert "two.mrcs" in broken("has 3 sections", path, 8, 12)


def test_what_is_no_stack(images, tmp_path):
    np.save(tmp_path / "flat.npy", images.reshape(23, -1))
    broken("expected .N, H, W.", tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", images.astype(str))
    broken("no real numbers", tmp_path / "text.npy")
    broken("does not exist", tmp_path / "nothing.zarr")
    (tmp_path / "a.txt").write_text("")
    broken("known endings", tmp_path / "a.txt")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"] = file["b"] = images
    broken("2 arrays .*: a, b. Name one", tmp_path / "two.h5")
    np.testing.assert_array_equal(open_stack(f"{tmp_path}/two.h5::b").images(0, 4), images[:4])
