"""Commands that succeed, fail or are misused, and pictures for them."""

import json

import numpy as np
import pytest
from helpers import small_model
from PIL import Image

from patternfold.cli import main
from patternfold.show.png import to_grey

QUICK = ["--atoms", "2", "--transformation", "similarity"]


def write_pictures(folder, images):
    folder.mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(images):
        Image.fromarray(to_grey(np.maximum(image, 0))).save(folder / f"{i:02}.png")
    return folder


def write_fives(folder):
    """Write pictures of one pattern, turned, shifted and scaled."""
    _, images = small_model(n_images=8)
    return write_pictures(folder / "fives", images)


def run(capsys, *arguments):
    """Run a command that succeeds and return its JSON and what it said."""
    code = main([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out), captured.err


def fails(capsys, *arguments):
    """Run a command that fails and return its message."""
    assert main([*map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("patternfold: error: ") == 1
    return captured.err


def misused(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main([*map(str, arguments)])
    assert caught.value.code == 2
    return capsys.readouterr().err
