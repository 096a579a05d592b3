"""The names of the package: listed once, imported late."""

import subprocess
import sys

import pytest

import patternfold


def test_every_public_name_is_there():
    assert set(patternfold.__all__) == {*patternfold._MODULE_OF, "__version__"}
    for name in [*patternfold.__all__, *patternfold._MODULES]:
        assert getattr(patternfold, name) is not None
    assert set(patternfold.__all__) <= set(dir(patternfold))


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'pats'"):
        _ = patternfold.pats


def test_importing_the_package_is_light():
    code = "import sys, patternfold; print(sorted({'jax', 'numpy', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
