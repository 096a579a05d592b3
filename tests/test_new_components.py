"""One of each, registered: learning, files, pages, the command line and the laws know it."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from formula_components import RoundAtoms, ShearTranslation, SoftExponential

import patternfold as pf
from patternfold.cli import main
from patternfold.dictionaries import DICTIONARIES
from patternfold.learning.fitted import fitted_manifolds
from patternfold.mothers import MOTHERS
from patternfold.persistence import ModelFileError
from patternfold.show.pages import explorer
from patternfold.show.pages.payload import payload_of
from patternfold.solvers import SOLVERS, AbstractSolver
from patternfold.testing import (
    check_dictionary,
    check_mother,
    check_pattern_operator,
    check_transformation,
)
from patternfold.transformations import TRANSFORMATIONS

SHAPE = (12, 12)


@dataclass(frozen=True)
class RandomSearch(AbstractSolver):
    """The best of some atoms drawn at random."""

    name: ClassVar[str] = "random-search"
    n_samples: int = 300

    def __call__(self, points, mother, dictionary, box, rng):
        gamma = box.sample(rng, self.n_samples)
        best, least = (gamma[0], 0.0), 0.0
        for row in gamma:
            phi = pf.Pattern([1.0], row[None], mother, dictionary)(points.x, points.y)
            along, energy = phi @ points.weighted, phi**2 @ points.weights
            if energy > 0 and along**2 / energy > least:
                best, least = (row, float(along / energy)), along**2 / energy
        return best


class SilentMother(SoftExponential):
    """The same without a formula."""

    def formula(self):
        return None


NAMES = {
    "transformation": "shear-translation",
    "mother": "soft-exponential",
    "dictionary": "round",
    "solver": "random-search",
}


@pytest.fixture(scope="module")
def registered():
    """Everything a new component takes: its name, in one place."""
    lists = (TRANSFORMATIONS, MOTHERS, DICTIONARIES, SOLVERS)
    before = [dict(registry) for registry in lists]
    TRANSFORMATIONS["shear-translation"] = ShearTranslation
    MOTHERS["soft-exponential"] = SoftExponential
    DICTIONARIES["round"] = RoundAtoms
    SOLVERS["random-search"] = RandomSearch
    yield
    for registry, kept in zip(lists, before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.fixture(scope="module")
def truth():
    atoms = [[0.35, 0.2, 0.0], [0.25, -0.3, 0.2]]
    return pf.Pattern([1.0, 0.7], atoms, SoftExponential(2.5), RoundAtoms())


@pytest.fixture(scope="module")
def images(truth):
    rng = np.random.default_rng(0)
    lam = ShearTranslation().with_bounds({"k": (-0.3, 0.3)}).parameters.sample(rng, 8)
    rendered = pf.manifold.render(truth, lam, ShearTranslation(), SHAPE)
    return rendered.reshape(-1, *SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def model(registered, images):
    """Learned with the new parts: an object where an option is not the default, names elsewhere."""
    parts = NAMES | {"mother": SoftExponential(2.5), "solver": RandomSearch(100)}
    return pf.PATS(2, **parts, n_starts=1, n_exchanges=0, random_state=0).fit(images)


def test_learning(model):
    # A hundred random atoms hold good ones, not the best: the error is 0.03. The search, below,
    # finds the two that explain the images exactly.
    assert model.error_path_[-1] < 0.1
    assert model.error_path_[-1] < model.error_path_[0]
    assert isinstance(model.transformation_, ShearTranslation)
    assert isinstance(model.pattern_.dictionary, RoundAtoms)


def test_the_search_knows_new_atoms(registered, images):
    """Without a word on how: shapes and positions are asked for by name."""
    parts = {k: NAMES[k] for k in ("transformation", "dictionary")}
    found = pf.PATS(2, **parts, mother=SoftExponential(2.5), n_starts=1, random_state=0)
    assert found.fit(images).error_path_[-1] < 1e-3


def test_files(model, tmp_path):
    path = tmp_path / "model.ptm"
    model.save(path)
    loaded = pf.load(path)
    assert loaded.pattern_ == model.pattern_
    assert loaded.pattern_.mother.beta == 2.5
    assert loaded.transformation_ == model.transformation_
    assert (loaded.solver, loaded.solver_options) == ("random-search", {"n_samples": 100})
    kind = MOTHERS.pop("soft-exponential")
    with pytest.raises(ModelFileError, match="'soft-exponential' is not registered here"):
        pf.load(path)
    MOTHERS["soft-exponential"] = kind


def test_pages_draw_the_formulas(model, images):
    payload = payload_of(fitted_manifolds(model), [])
    assert payload["exact"]
    assert payload["formulas"]["mother"] == SoftExponential(2.5).formula()
    page = explorer(model, images)
    parts = (model.pattern_.mother, model.pattern_.dictionary, model.transformation_)
    for part in parts:
        assert part.formula() in page.html


def test_pages_show_frames_without_a_formula(model, images):
    silent = pf.PATS(2, transformation="translation")
    vars(silent).update(vars(model))
    pattern = model.pattern_
    silent.pattern_ = pf.Pattern(pattern.coef, pattern.gamma, SilentMother(2.5), pattern.dictionary)
    payload = payload_of(fitted_manifolds(silent), [])
    assert not payload["exact"]
    assert payload["formulas"] is None
    assert len(payload["frames"][0]) == 3
    assert "const Formulas = null" in explorer(silent).html


def test_command_line(registered, images, tmp_path, capsys):
    np.savez(tmp_path / "images.npz", X=images)
    path, page = tmp_path / "model.ptm", tmp_path / "page.html"
    named = [word for name, value in NAMES.items() for word in (f"--{name}", value)]
    learn = ["learn", str(tmp_path / "images.npz"), "-o", str(path), "--atoms", "1", *named]
    assert main([*learn, "--quiet", "--json"]) == 0
    capsys.readouterr()
    assert main(["info", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["mother"] == "SoftExponential(beta=1.0)"
    assert said["dictionary"] == "RoundAtoms"
    assert said["transformation"] == "ShearTranslation"
    assert main(["explore", str(path), "-o", str(page), "--quiet"]) == 0
    assert SoftExponential().formula() in page.read_text()
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    text = "".join(capsys.readouterr().out.split())  # lines are broken at hyphens
    assert all(name in text for name in NAMES.values())


def test_laws(dtype):
    check_transformation(ShearTranslation(), dtype)
    check_mother(SoftExponential(2.5), dtype)
    check_dictionary(RoundAtoms(), dtype)
    check_pattern_operator(ShearTranslation(), SoftExponential(2.5), RoundAtoms(), dtype)


def test_pictures_know_the_outlines(model):
    from patternfold.export import pattern_to_svg

    assert pattern_to_svg(model.pattern_).count("<ellipse") == 2
    np.testing.assert_allclose(
        model.pattern_.dictionary.ellipses(model.pattern_.gamma)[:, :4],
        model.pattern_.gamma[:, [1, 2, 0, 0]],
    )
