"""Sums of families, and the families beyond affine ones."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learning_problems import make_problem

import patternfold as pf
from patternfold import datasets, manifold
from patternfold.cli import names
from patternfold.learning.frame import fix_frame
from patternfold.learning.project.lattice import make_lattice
from patternfold.model.atoms import AtomFamily
from patternfold.model.transformations import as_transformation
from patternfold.testing import check_pattern_operator, check_transformation

SUMS = ["similarity+bend", "rotation-translation-scaling+shear", "similarity+elastic+stroke-width"]
SHAPE = (16, 16)


@pytest.mark.parametrize(
    ("name", "dtype"), list(zip(SUMS, (np.float32, np.float64, np.float32), strict=True))
)
def test_sums_keep_the_laws(name, dtype):
    check_transformation(as_transformation(name), dtype)


def test_sums_work_with_atoms():
    check_pattern_operator(as_transformation(SUMS[2]), pf.InverseMultiquadric())


def test_a_sum_by_name_is_a_sum_of_objects():
    by_name = as_transformation("similarity + bend+stroke-width")
    assert by_name == pf.Similarity() + pf.Bend() + pf.StrokeWidth()
    assert by_name == pf.Similarity() + (pf.Bend() + pf.StrokeWidth())
    assert by_name.parameters.names == ("theta", "tx", "ty", "s", "bend", "stroke")
    assert by_name.parameters.periodic == (True, False, False, False, False, False)
    assert by_name.translation == ("tx", "ty")
    narrow = by_name.with_bounds({"theta": ("-30deg", "30deg"), "bend": (-0.5, 0.5)})
    assert narrow.parameters.upper[4] == 0.5
    assert narrow.parameters.upper[0] == pytest.approx(np.pi / 6)
    with pytest.raises(ValueError, match=r"bounds of 'bend' are .* must stay between -10 and 10"):
        by_name.with_bounds({"bend": (-99, 99)})
    with pytest.raises(TypeError):
        pf.Similarity() + "bend"


def test_what_can_not_be_summed_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"Affine and Shear both have a parameter 'shear'.*leave"):
        as_transformation("affine+shear")
    with pytest.raises(
        ValueError, match=r"transformation='bent' is not known. Did you mean 'bend'"
    ):
        as_transformation("similarity+bent")


def test_the_command_line_takes_sums():
    known = names.Sums(names.transformations())
    assert "similarity+bend" in known
    assert "similarity+bent" not in known
    assert "similarity+" not in known


def test_the_first_family_acts_last():
    # A bar along x, bent and then turned by a quarter, is seen upright, curved to the side.
    pattern = pf.Pattern([1.0], [[0.0, 0.0, 0.0, 0.7, 0.12]])
    lam = [[np.pi / 2, 0.0, 0.0, 1.0, 0.8]]
    picture = manifold.render(pattern, lam, "similarity+bend", (41, 41)).reshape(41, 41)
    side = np.linspace(-1, 1, 41)
    middle, above = picture[20] @ side / picture[20].sum(), picture[10] @ side / picture[10].sum()
    assert abs(middle) < 1e-6
    assert above == pytest.approx(-(1 - np.sqrt(1 - 0.4**2)) / 0.8, abs=0.02)  # the circle itself


def test_bending_keeps_lengths_along_the_axis():
    x = jnp.linspace(-1, 1, 201)
    u, v = pf.Bend().inverse_coordinates(jnp.full(1, 0.9), x, jnp.zeros(201))
    steps = np.hypot(np.diff(u), np.diff(v))
    np.testing.assert_allclose(steps, 0.01, rtol=1e-3)


def test_widened_gaussians_are_blurred_ones_seen_less_high():
    # A stroke of many atoms keeps its brightness, and gains width as a blurred one does.
    x = np.linspace(-0.9, 0.9, 37)
    gamma = np.column_stack([0 * x, x, 0 * x, 0 * x + 0.1, 0 * x + 0.1])
    stroke = pf.Pattern(np.ones(37), gamma)
    y = np.linspace(-0.5, 0.5, 101)
    lam = np.array([[0.0], [0.05], [-0.03]])
    across = manifold.render(stroke, lam, "stroke-width", pf.Grid(101, 101))
    profiles = across.reshape(3, 101, 101)[:, 25:76, 50]
    np.testing.assert_allclose(profiles.max(axis=1), profiles[0].max(), rtol=1e-3)
    y = np.linspace(-1, 1, 101)[25:76] * 100 / 101
    variance = (profiles * y**2).sum(axis=1) / profiles.sum(axis=1)
    expected = np.array([0.01, 0.01 + 0.2 * 0.05, 0.01 / (1 + 0.2 * 0.03 / 0.01)]) / 2
    np.testing.assert_allclose(variance, expected, rtol=1e-2)


def test_derivatives_of_widened_atoms(rng):
    family = AtomFamily(pf.Gaussian(), pf.AtomDictionary())
    with jax.enable_x64(True):
        gamma, spread = jnp.array([0.3, 0.1, -0.2, 0.3, 0.15]), jnp.array([0.01])
        x, y = jnp.asarray(rng.uniform(-0.5, 0.5, (2, 9)))
        value, columns = family.derivatives(gamma, x, y, spread)
        expected = jax.jacfwd(family.value)(gamma, x, y, spread)
        np.testing.assert_allclose(value, family.value(gamma, x, y, spread), rtol=1e-12)
        np.testing.assert_allclose(np.stack(columns, axis=1), expected, atol=1e-12)


def test_the_lattice_does_not_grow_with_what_is_left_to_the_local_search():
    plain = make_lattice(as_transformation("similarity"), 1 / 6, 0.13)
    more = make_lattice(as_transformation("similarity+elastic+stroke-width"), 1 / 6, 0.13)
    assert more.counts == (*plain.counts, *(1,) * 7)
    assert not more.nodes[:, 4:].any()
    wide = as_transformation("similarity+bend").with_bounds({"bend": (-3, 3)})
    bent = make_lattice(wide, 1 / 6, 0.13)
    assert bent.counts == (*plain.counts, 3)
    np.testing.assert_allclose(np.unique(bent.nodes[:, 4])[1], 0, atol=0.1)  # nearly symmetric


def test_frames_keep_images_with_wider_strokes(rng):
    family = as_transformation("similarity+stroke-width")
    problem = replace(make_problem(rng, 5, dtype=np.float32)[0], transformation=family)
    lam = family.parameters.sample(rng, 5)
    pattern = datasets.random_pattern(4, rng)
    moved, new = fix_frame(problem, pattern, lam)
    before = manifold.render(pattern, lam, family, SHAPE)
    assert np.abs(new - lam).max() > 0.1
    np.testing.assert_allclose(
        manifold.render(moved, new, family, SHAPE, check=False), before, atol=1e-9
    )


@pytest.mark.parametrize("name", ["similarity+bend", "affine+elastic"])
def test_aligning_undoes_what_is_not_affine(name, rng):
    family = as_transformation(name)
    lam = family.identity + 0.3 * (family.parameters.sample(rng, 4) - family.parameters.centre)
    pattern = pf.Pattern([1.0, 0.7], [[0.3, 0.0, 0.1, 0.4, 0.2], [-0.5, 0.1, -0.2, 0.2, 0.3]])
    images = manifold.render(pattern, lam, family, (64, 64)).reshape(-1, 64, 64)
    aligned = pf.align(images, lam, family, interpolation="cubic")
    expected = pattern.render((64, 64))
    near = slice(16, 48)  # what lies farther out may not be in every image
    np.testing.assert_allclose(
        aligned[:, near, near], np.tile(expected[near, near], (4, 1, 1)), atol=0.01
    )


def test_bends_of_worms_are_recovered_and_a_similarity_fails():
    worms = datasets.make_worms(12, 1, shape=(24, 24))
    # A pattern like a straight worm: a tapered body and a head.
    x = np.linspace(-0.5, 0.5, 9)
    gamma = np.column_stack([0 * x, x, 0 * x, 0 * x + 0.13, 0 * x + 0.1])
    body = pf.Pattern([*(0.35 + 0.3 * x), 0.9], [*gamma, [0.0, 0.48, 0.0, 0.11, 0.08]])
    family = pf.Similarity() + pf.Bend().with_bounds({"bend": (-2, 2)})
    bent = pf.project(body, worms.images, family, gain=True, effort="quick")
    error = bent.parameters - worms.parameters
    turn = np.abs(np.angle(np.exp(1j * error[:, 0])))
    assert np.median(turn) < 0.1
    assert np.abs(error[:, 1:3]).max() < 0.1  # about a pixel
    assert np.abs(error[:, 4]).max() < 0.3
    assert np.corrcoef(bent.parameters[:, 4], worms.parameters[:, 4])[0, 1] > 0.99
    straight = pf.project(body, worms.images, "similarity", gain=True, effort="quick")
    curved = np.abs(worms.parameters[:, 4]) > 0.7
    assert (straight.distances[curved] > 1.5 * bent.distances[curved]).all()
    x, y = worms.body(np.array([0.0]))
    np.testing.assert_allclose(np.column_stack([x, y]), worms.parameters[:, 1:3], atol=1e-12)
