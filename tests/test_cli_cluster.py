"""``patternfold cluster``: groups, table and folders from a folder of pictures."""

import csv
import json

import numpy as np
from PIL import Image

from patternfold import Pattern, datasets, load
from patternfold.cli import main
from patternfold.persistence import read_model_file

KINDS = (
    Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]]),
    Pattern([1.0, 1.0], [[0.0, 0.0, 0.0, 0.5, 0.1], [1.2, 0.2, 0.1, 0.3, 0.1]]),
)


def test_pictures_are_sorted_into_kinds(tmp_path, capsys):
    rng, folder = np.random.default_rng(0), tmp_path / "pictures"
    folder.mkdir()
    for k, (kind, n) in enumerate(zip(KINDS, (20, 10), strict=True)):
        images, _ = datasets.random_images(kind, n, rng, "rotation-translation", shape=(16, 16))
        for i, image in enumerate(np.clip(255 * np.abs(images), 0, 255).astype(np.uint8)):
            Image.fromarray(image).save(folder / f"{k}_{i:02d}.png")
    model, sorted_ = tmp_path / "kinds.ptm", tmp_path / "sorted"
    command = ["cluster", str(folder), "-o", str(model), "--patterns", "2", "--json"]
    command += ["--folders", str(sorted_), "--transformation", "rotation-translation"]
    assert main([*command, "--atoms", "2", "--no-offset"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["groups"] == {"group_1": 20, "group_2": 10}
    assert told["remarks"] == []  # the number was given
    with open(model.with_suffix(".csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["group"] for row in rows if row["file"].startswith("0")} == {"group_1"}
    assert {row["group"] for row in rows if row["file"].startswith("1")} == {"group_2"}
    assert all(0.5 <= float(row["confidence"]) <= 1 for row in rows)
    assert len(list((sorted_ / "group_2").iterdir())) == 10
    assert len(load(model).labels_) == 30
    examples = read_model_file(model).examples
    assert examples is not None
    assert len(examples.names) <= 36
    assert {name[0] for name in examples.names} == {"0", "1"}
    assert main(["info", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == ["1: 66.7%", "2: 33.3%"]
    page = tmp_path / "report.html"
    assert main(["report", str(model), "-o", str(page)]) == 0
    assert "Group 2" in page.read_text()
    assert main(command) == 1  # nothing is overwritten unasked
