"""Formulas for the browser: run by Node, if there is one, they draw what Python renders."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from formula_components import Bend, Ridge, RoundAtoms, ShearTranslation, SoftExponential

from patternfold import CustomMother, Gaussian, InverseMultiquadric, Pattern, manifold
from patternfold.learning.fitted import FittedManifolds
from patternfold.model.transformations import TRANSFORMATIONS, as_transformation
from patternfold.show.pages.document import FOLDER
from patternfold.show.pages.formulas import as_script, formulas_of

NODE = shutil.which("node")
SHAPE = (20, 31)
COEF = [1.0, -0.6, 0.8]
ATOMS = [[0.4, 0.2, 0.1, 0.4, 0.15], [-0.8, -0.2, -0.25, 0.15, 0.3], [0.0, 0.1, -0.1, 0.2, 0.2]]
ROUND = [[0.3, 0.2, 0.1], [0.15, -0.2, -0.25], [0.2, 0.1, -0.1]]


def view_of_parts(transformation, mother, dictionary=None):
    atoms = ATOMS if dictionary is None else ROUND
    pattern = Pattern(COEF, atoms, mother, dictionary)
    return FittedManifolds([pattern], [""], transformation, SHAPE, [np.empty(0)])


def drawn_by_node(view, lam):
    code = (
        f"const Formulas = {as_script(formulas_of(view))};\n{(FOLDER / 'render.js').read_text()}\n"
        "const { pattern, lam, shape } = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        "const draw = (row) => [...Render.render(pattern, row, shape[1], shape[0])];\n"
        "console.log(JSON.stringify(lam.map(draw)));"
    )
    pattern = view.patterns[0]
    given = {
        "pattern": {"coef": pattern.coef.tolist(), "gamma": pattern.gamma.tolist()},
        "lam": lam.tolist(),
        "shape": SHAPE,
    }
    done = subprocess.run(
        [NODE, "-e", code], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return np.array(json.loads(done.stdout))


CASES = [
    *((as_transformation(name), Gaussian(), None) for name in TRANSFORMATIONS),
    (as_transformation("similarity+bend"), Gaussian(), None),
    (as_transformation("similarity+stroke-width"), Gaussian(), None),
    (as_transformation("affine+projective+elastic+stroke-width"), InverseMultiquadric(), None),
    (as_transformation("similarity+stroke-width"), InverseMultiquadric(), RoundAtoms()),
    (as_transformation("affine"), InverseMultiquadric(), None),
    (as_transformation("similarity"), InverseMultiquadric(-1.5), None),
    (as_transformation("similarity"), InverseMultiquadric(-40), RoundAtoms()),
    (ShearTranslation(), SoftExponential(2.5), RoundAtoms()),
    (ShearTranslation(), Ridge(), None),
    (Bend(), Ridge(2.0), RoundAtoms()),
    (Bend(), Gaussian(), None),
]


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
@pytest.mark.parametrize(("transformation", "mother", "dictionary"), CASES)
def test_formulas_draw_what_python_renders(transformation, mother, dictionary, rng):
    view = view_of_parts(transformation, mother, dictionary)
    lam = transformation.parameters.sample(rng, 5)
    expected = manifold.render(view.patterns[0], lam, transformation, SHAPE)
    assert np.abs(expected).max() > 0.1
    assert np.abs(expected - expected[:1]).max() > 0.04  # λ does something
    # Both in double precision; what lies farther out than can be seen, 4e-11, is left out.
    np.testing.assert_allclose(drawn_by_node(view, lam), expected, atol=1e-9)


def test_a_part_without_formula_is_enough_for_frames():
    own = CustomMother(lambda x, y: x * 0 + 1)
    assert formulas_of(view_of_parts(ShearTranslation(), own)) is None
    assert as_script(None) == "null"


def test_what_can_not_be_seen_is_known():
    formulas = formulas_of(view_of_parts(ShearTranslation(), Gaussian()))
    assert formulas["far"] == pytest.approx(24, rel=0.05)
    slow = formulas_of(view_of_parts(ShearTranslation(), InverseMultiquadric()))
    assert slow["far"] is None
    assert "far: Infinity" in as_script(slow)


def test_formulas_can_not_close_the_script():
    class Odd(SoftExponential):
        def formula(self):
            return "(z) => '</script>'.length"

    with pytest.raises(ValueError, match="can't stand inside a script element"):
        as_script(formulas_of(view_of_parts(ShearTranslation(), Odd())))
