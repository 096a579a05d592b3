"""Commands on stacks, and classifiers that learn from them."""

import csv
import json

import numpy as np
import pytest
import zarr
from helpers import as_bytes, shifted_images
from PIL import Image

import patternfold as pf
from patternfold import datasets
from patternfold.cli import main
from patternfold.cli.console import Failure
from patternfold.estimators import stack_classes
from patternfold.learning.journal import Journal
from patternfold.learning.stream import stack as stacks
from patternfold.learning.stream.joint import JointSettling

pytestmark = pytest.mark.usefixtures("small_blocks")

QUICK = ["--atoms", "1", "--transformation", "translation", "--no-gain", "--quiet"]


@pytest.fixture(scope="module")
def images():
    return as_bytes(shifted_images(80, 0.0, n_atoms=2))


@pytest.fixture(scope="module")
def folder(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stack")
    zarr.create_array(folder / "x.zarr", data=images, chunks=(16, 16, 16))
    np.save(folder / "x.npy", images)
    assert main(["learn", str(folder / "x.zarr"), "-o", str(folder / "x.ptm"), *QUICK]) == 0
    return folder


def test_learn_and_stream(folder, images, capsys):
    model = pf.load(folder / "x.ptm")
    assert len(model.parameters_) == len(images)
    poses = folder / "poses.csv"
    command = ["stream", str(folder / "x.ptm"), str(folder / "x.npy"), "-o", str(poses)]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == len(images)
    with open(poses, newline="") as file:
        rows = list(csv.DictReader(file))
    found = np.array([[float(row["tx"]), float(row["ty"])] for row in rows])
    np.testing.assert_allclose(found, model.transform(images), atol=1e-5)
    assert main([*command, "--quiet"]) == 1, "nothing is overwritten unasked"
    assert "--force" in capsys.readouterr().err
    poses.write_bytes(b"".join(poses.read_bytes().splitlines(True)[:40]))
    assert main([*command, "--resume", "--quiet"]) == 0
    assert len(poses.read_text().splitlines()) == len(images) + 1
    aligned = ["-o", str(folder / "aligned.npy"), "--what", "aligned", "--quiet"]
    assert main([*command[:3], *aligned]) == 0
    assert np.load(folder / "aligned.npy").shape == images.shape
    assert main([*command[:3], "-o", str(folder / "c.csv"), "--what", "classes"]) == 1
    assert "no classifier" in capsys.readouterr().err


def test_what_is_left_out_of_a_folder_is_said(folder, images, tmp_path, capsys, monkeypatch):
    def enough(*_, **__):
        raise Failure("enough")

    monkeypatch.setattr("patternfold.cli.stacks._fit", enough)
    monkeypatch.setattr("patternfold.estimators.streams_out.results", enough)
    (tmp_path / "set" / "a").mkdir(parents=True)
    for i in range(2):
        Image.fromarray(images[i]).save(tmp_path / "set" / "a" / f"{i}.png")
    (tmp_path / "set" / "b").symlink_to(tmp_path / "set" / "a")
    source = str(tmp_path / "set")
    command = ["learn", source, "--stream", "-o", str(tmp_path / "x.ptm"), *QUICK[:-1]]
    assert main(command) == 1
    said = "1 linked sub-folder(s) not followed: b"
    assert said in capsys.readouterr().err
    assert main(["stream", str(folder / "x.ptm"), source, "-o", str(tmp_path / "x.csv")]) == 1
    assert said in capsys.readouterr().err
    assert pf.open_stack(source).notes == (said,)


def test_stacks_are_learned_from_with_loss_and_prior(folder, tmp_path):
    command = ["learn", str(folder / "x.zarr"), "-o", str(tmp_path / "z.ptm"), *QUICK]
    assert main([*command, "--loss", "huber", "--prior", "tx=0:0.2"]) == 0
    model = pf.load(tmp_path / "z.ptm")
    assert isinstance(model.loss_, pf.Huber)
    assert model.loss_.scale > 0
    assert model.prior_ is not None
    plain = pf.load(folder / "x.ptm")
    assert plain.prior_ is None
    assert not isinstance(plain.loss_, pf.Huber)


def test_checkpoints_of_commands(folder, tmp_path, capsys):
    kept = tmp_path / "run.ckpt"
    kept.write_bytes(b"")
    command = ["learn", str(folder / "x.npy"), "--stream", "-o", str(tmp_path / "y.ptm"), *QUICK]
    command += ["--checkpoint", str(kept)]
    assert main(command) == 1
    assert "--resume" in capsys.readouterr().err
    Journal(kept, {"kind": "another"}).close()
    assert main([*command, "--resume"]) == 1
    assert "belongs to another run" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert not kept.exists(), "the model is written: nobody needs it any more"
    one, other = pf.load(tmp_path / "y.ptm"), pf.load(folder / "x.ptm")
    np.testing.assert_allclose(one.parameters_, other.parameters_, atol=1e-4)
    assert main([*command[:-2], "--resume", "--force"]) == 1
    assert "--checkpoint FILE" in capsys.readouterr().err


def test_clusters_of_commands(folder, tmp_path, capsys):
    command = ["learn", str(folder / "x.npy"), "-o", str(tmp_path / "z.ptm"), *QUICK]
    assert main([*command, "--workers", "2"]) == 1
    assert "for stacks" in capsys.readouterr().err
    assert main([*command, "--stream", "--workers", "0"]) == 1
    assert "at least 1" in capsys.readouterr().err


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    parts = [
        datasets.random_images(datasets.random_pattern(2, rng), 40, rng, "translation",
                               shape=(16, 16))[0]
        for _ in range(2)
    ]  # fmt: skip
    order = rng.permutation(80)
    return np.concatenate(parts)[order], np.repeat(["a", "b"], 40)[order]


def test_classifiers_learn_from_stacks(classes):
    images, labels = classes
    stack, options = pf.open_stack(images), {"transformation": "translation", "random_state": 0}
    views = pf.AlignedViewsClassifier(1, **options).fit(stack, labels)
    assert (views.predict(stack) == labels).mean() > 0.95
    np.testing.assert_array_equal(views.predict(stack), views.predict(images))


def test_classes_are_corrected_jointly_on_all_images(classes, monkeypatch):
    images, labels = classes
    monkeypatch.setattr(stack_classes, "JOINTLY", 30)
    passes, one_pass = [], JointSettling._pass

    def kept(self, *args):
        passes.append((self, args, one_pass(self, *args)))
        return passes[-1][2]

    monkeypatch.setattr(JointSettling, "_pass", kept)
    options = {"transformation": "translation", "random_state": 0}
    stack = pf.open_stack(images)
    joint = pf.JPATS(1, n_joint=0, n_tuning=1, **options).fit(stack, labels)
    assert joint.cross_parameters_.shape == (80, 2, 2)
    assert (joint.predict(stack) == labels).mean() > 0.9
    costs = [seen.cost for _, _, seen in passes[1:]]
    assert min(costs[1:]) < costs[0], "J of all images falls"
    # One block of all images gives the same sums as several.
    settling, args, seen = passes[1]
    monkeypatch.setitem(stacks.BLOCK_BYTES, "cpu", 128 * 256 * 8)
    assert len(stack.spans()) == 1
    whole = one_pass(settling, *args)
    assert whole.cost == pytest.approx(seen.cost, rel=1e-6)
    for one, other in zip(whole.systems, seen.systems, strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-5, atol=1e-6 * np.abs(one[0]).max())
        np.testing.assert_allclose(one[1], other[1], rtol=1e-5, atol=1e-6 * np.abs(one[1]).max())


def test_parts_are_spread_over_classes():
    labels = np.repeat([0, 1, 2], [600, 300, 10])
    chosen = stack_classes.spread_over_classes(labels, 91)
    np.testing.assert_array_equal(np.bincount(labels[chosen]), [60, 30, 1])
    assert np.ptp(chosen[labels[chosen] == 0]) == 599
