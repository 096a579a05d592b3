"""The documents at the top of the repository keep their word."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")

documents = pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])


@documents
def test_code_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of it writes files
    text = (ROOT / name).read_text()
    namespace = {"__name__": "document"}
    blocks = list(CODE.finditer(text))
    assert blocks
    for block in blocks:
        # Blank lines in front make tracebacks show the line of the document.
        code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(code, name, "exec"), namespace)


@documents
def test_links_lead_somewhere(name):
    links = LINK.findall((ROOT / name).read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@documents
def test_make_targets_exist(name):
    named = set(re.findall(r"(?:^|`)make ([a-z]+)\b", (ROOT / name).read_text(), re.MULTILINE))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"test", "demo"} <= named <= targets


def test_demo_draws_a_small_picture(tmp_path, capsys):
    from patternfold.cli import main

    folder = tmp_path / "new"
    assert main(["demo", "--output", str(folder), "--quiet"]) == 0
    assert str(folder / "five.html") in capsys.readouterr().out
    picture = folder / "five.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < picture.stat().st_size < 150_000
    assert (folder / "five.ptm").exists()
