"""Imports only go down: each storey of the house knows those below it."""

import ast
from pathlib import Path

import pytest

import patternfold

ROOT = Path(patternfold.__file__).parent

STOREYS = [
    {"_version", "_validation", "_writing", "_archives", "_text"},
    {"numerics", "model"},
    {"dc"},
    {"learning"},
    {"files", "datasets"},
    {"estimators"},
    {"baselines", "persistence"},
    {"show"},
    {"testing"},
    {"experiments"},
    {"cli"},
]
"""From the ground up; those in one set may know one another."""

LEVEL = {name: level for level, names in enumerate(STOREYS) for name in names}
FACES = {path.stem for path in ROOT.glob("*.py")} - set(LEVEL)
"""Modules beside the storeys: they only pass on names, and nothing inside goes through them."""


def imported(path: Path) -> set[str]:
    """First part below the package of every module imported when the file is loaded."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("patternfold"):
            parts = (node.module or "").split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("patternfold.")
            }
    return names


@pytest.mark.parametrize("storey", sorted(LEVEL))
def test_imports_only_go_down(storey):
    paths = [ROOT / f"{storey}.py"] if (ROOT / f"{storey}.py").exists() else []
    paths += (ROOT / storey).rglob("*.py")
    assert paths
    for path in paths:
        for name in imported(path):
            assert name not in FACES, f"{path} goes through the public face {name!r}"
            level = LEVEL.get(name)
            if level is None:  # a public name of the package itself: only for the top floors
                assert LEVEL[storey] >= LEVEL["experiments"], f"{path} imports {name!r}"
            else:
                assert level <= LEVEL[storey], f"{path} imports {name!r} from above"


def test_every_module_has_a_storey():
    found = {p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert found == {name for name in LEVEL if (ROOT / name).is_dir()}
