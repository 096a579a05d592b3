"""The documents keep their word: their code and commands run, and their links lead somewhere."""

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from helpers import class_images, small_model
from PIL import Image

import patternfold
from patternfold.dictionaries import DICTIONARIES
from patternfold.mothers import MOTHERS
from patternfold.show.png import to_grey
from patternfold.solvers import SOLVERS
from patternfold.transformations import TRANSFORMATIONS

pytestmark = [pytest.mark.repository, pytest.mark.usefixtures("least_effort_throughout")]

ROOT = Path(__file__).parents[1]
SHAPE = (20, 20)
"""Of the pictures and of most images in the documents: they share compiled code."""
CODE = re.compile(r"^```(python|sh|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
TOP = ["README.md", "CONTRIBUTING.md"]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "docs").rglob("*.md")
    if not {"generated", "_build", "auto_examples"} & set(path.parts)
)
WITH_CODE = [name for name in TOP + PAGES if CODE.search((ROOT / name).read_text())]


@pytest.fixture(autouse=True)
def registries():
    """What documents register is gone after them."""
    lists = (TRANSFORMATIONS, MOTHERS, DICTIONARIES, SOLVERS)
    before = [dict(registry) for registry in lists]
    yield
    for registry, kept in zip(lists, before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Where models are kept that a document has learned from ``pictures``, for the next one."""
    return tmp_path_factory.mktemp("learned")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with ``pictures`` and ``classes``, as the documents assume."""
    monkeypatch.chdir(tmp_path)
    _, images = small_model(n_images=8, shape=SHAPE)
    write_pictures(tmp_path / "pictures", images)
    images, labels = class_images(8, SHAPE)
    for label in set(labels):
        write_pictures(tmp_path / "classes" / label, images[labels == label])
    return tmp_path


def write_pictures(folder, images):
    folder.mkdir(parents=True)
    for i, image in enumerate(np.maximum(images, 0)):
        Image.fromarray(to_grey(image)).save(folder / f"{i}.png")


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_and_commands_run(name, folder, learned):
    text = (ROOT / name).read_text()
    namespace = {"__name__": "document"}
    for block in CODE.finditer(text):
        if block[1] == "python":
            # Blank lines in front make tracebacks show the line of the document.
            code = "\n" * text.count("\n", 0, block.start(2)) + block[2]
            exec(compile(code, name, "exec"), namespace)
        elif block[1] == "toml":
            (folder / "settings.toml").write_text(block[2])
        else:
            run_commands(block[2], folder, learned)


def run_commands(text, folder, learned):
    """Run commands of patternfold, and check that others name what exists.

    What `learn` makes of the pictures is the same in every document: it runs once for its options.
    """
    from patternfold.cli import main

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["patternfold"]:
            made = folder / words[words.index("-o") + 1] if "-o" in words else None
            kept = learned / "_".join(words).replace("/", "_")
            if kept.exists():
                shutil.copy(kept, made)
                continue
            assert main([*words[1:], "--quiet"]) == 0, line
            assert made is None or made.exists(), line
            if words[1:3] == ["learn", "pictures"] and "--config" not in words:
                shutil.copy(made, kept)
        elif words[:2] == ["pip", "install"]:
            extras = re.findall(r"\[(.*)\]", words[2])
            assert set(extras) <= set(known["optional-dependencies"]), line
        elif words:
            assert words[0] == "make", line


def test_there_is_something_to_run():
    assert {"README.md", "CONTRIBUTING.md", "docs/quickstart.md"} <= set(WITH_CODE)
    commands = re.findall(r"^patternfold \w+", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"patternfold learn", "patternfold explore"} <= set(commands)


@pytest.mark.parametrize("name", TOP + PAGES)
def test_links_lead_somewhere(name):
    place = (ROOT / name).parent
    links = [
        link for link in LINK.findall((ROOT / name).read_text()) if "auto_examples" not in link
    ]
    assert [link for link in links if not (place / link).exists()] == []


@pytest.mark.parametrize("name", TOP)
def test_make_targets_exist(name):
    named = set(re.findall(r"(?:^|`)make ([a-z]+)\b", (ROOT / name).read_text(), re.MULTILINE))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"test", "demo"} <= named <= targets


def test_the_version_is_that_of_the_changelog():
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert patternfold.__version__ == newest[1]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]
    assert build["path"] == "CHANGELOG.md"
    assert re.search(build["pattern"], newest[0])["version"] == newest[1]


def test_demo_draws_a_small_picture(tmp_path, capsys):
    from patternfold.cli import main

    folder = tmp_path / "new"
    few = ["--quiet", "--images", "12", "--atoms", "5", "--no-kinds"]
    assert main(["demo", "--output", str(folder), *few]) == 0
    assert str(folder / "five.html") in capsys.readouterr().out
    picture = folder / "five.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < picture.stat().st_size < 150_000
    assert (folder / "five.ptm").exists()


@pytest.mark.exhaustive
def test_demo_sorts_the_pile_of_the_readme():
    """What the strip on the first screen shows: hardly a digit is in a group of another kind."""
    from patternfold.cli.demo import PER_KIND, sort_pile, table

    groups = np.array(list(table(sort_pile(0)).values()))
    assert groups.max(axis=0).sum() >= 0.9 * 3 * PER_KIND
