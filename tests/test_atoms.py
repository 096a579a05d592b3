import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import AtomDictionary, Box, CustomDictionary, CustomMother, Gaussian
from patternfold.model.atoms import (
    BLOCK,
    AtomFamily,
    evaluate,
    evaluate_field,
    make_atoms,
    pad_atoms,
    padded_size,
)


def random_atoms(rng, n_atoms):
    gamma = AtomDictionary().parameters.sample(rng, n_atoms)
    return rng.normal(size=n_atoms), np.maximum(gamma, [-9, -9, -9, 0.2, 0.2])


def test_few_sizes_hold_all_patterns():
    sizes = [padded_size(n) for n in range(600)]
    assert all(n <= size for n, size in enumerate(sizes))
    assert len(set(sizes)) <= 6  # each is one more compilation
    assert all(size % max(BLOCK.values()) == 0 for size in sizes)  # the loop reads whole blocks


@pytest.mark.parametrize("n_atoms", [0, 1, 3])
def test_padding_adds_atoms_of_coefficient_zero(rng, n_atoms):
    coef, gamma = random_atoms(rng, n_atoms)
    padded_coef, padded_gamma = pad_atoms(coef, gamma, 8)
    np.testing.assert_array_equal(padded_coef, np.append(coef, np.zeros(8 - n_atoms)))
    np.testing.assert_array_equal(padded_gamma[:n_atoms], gamma)
    assert padded_gamma.shape == (8, 5)
    AtomDictionary().check(padded_gamma)


@pytest.mark.parametrize("n_atoms", [0, 1, 2, 9])
def test_sums_do_not_depend_on_padding(rng, dtype, n_atoms):
    coef, gamma = random_atoms(rng, n_atoms)
    x, y = (jnp.asarray(a, dtype) for a in rng.uniform(-1, 1, size=(2, 30)))
    atoms = make_atoms(coef, gamma, AtomFamily(Gaussian(), AtomDictionary()), dtype)
    assert atoms.gamma.dtype == atoms.coef.dtype == dtype

    u, v = np.asarray(x, np.float64), np.asarray(y, np.float64)
    expected = np.zeros(30)
    for c, (psi, tau_x, tau_y, sigma_x, sigma_y) in zip(coef, gamma, strict=True):
        dx, dy = u - tau_x, v - tau_y
        along = (np.cos(psi) * dx + np.sin(psi) * dy) / sigma_x
        across = (np.cos(psi) * dy - np.sin(psi) * dx) / sigma_y
        expected += c * np.sqrt(2 / np.pi) * np.exp(-(along**2) - across**2)
    # exp(-z) with z up to 100 in float32: z errs by eps·z, and so does exp(-z) relatively;
    # z·exp(-z) stays below 1, so a few roundings are left for each of up to 9 atoms.
    atol = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(jax.jit(evaluate)(atoms, x, y), expected, atol=atol)
    np.testing.assert_allclose(jax.jit(evaluate_field)(atoms, x, y)[0], expected, atol=atol)


def test_padding_stays_inside_the_domain_of_a_users_dictionary():
    # γ = 1 divides by zero: 0 · infinity would make every pixel NaN.
    def above_one(gamma, x, y):
        return x / (gamma[0] - 1), y / (gamma[0] - 1)

    own = CustomDictionary(above_one, Box(["w"], [1.1], [2.0]))
    atoms = make_atoms(np.ones(1), np.array([[1.5]]), AtomFamily(Gaussian(), own), np.float32)
    origin = jnp.zeros(1)
    assert np.isfinite(jax.jit(evaluate)(atoms, origin, origin)).all()
    assert np.isfinite(np.stack(jax.jit(evaluate_field)(atoms, origin, origin))).all()


MOTHERS = [Gaussian(), CustomMother(lambda x, y: jnp.cos(3 * x + y) * jnp.exp(-(x**2) - y**2))]


@pytest.mark.parametrize("mother", MOTHERS, ids=["radial", "general"])
def test_fields_and_derivatives_agree_with_differentiation(rng, dtype, mother):
    family = AtomFamily(mother, AtomDictionary())
    gamma = jnp.asarray([0.4, 0.1, -0.2, 0.5, 0.25], dtype)
    x, y = (jnp.asarray(a, dtype) for a in rng.uniform(-1, 1, size=(2, 20)))

    def differentiated(gamma, x, y):
        return jax.vmap(jax.value_and_grad(family.value, (0, 1, 2)), (None, 0, 0))(gamma, x, y)

    expected, (by_gamma, by_x, by_y) = jax.jit(differentiated)(gamma, x, y)
    # Numbers up to 1 / σ² = 16 in a few dozen operations.
    atol = 500 * np.finfo(dtype).eps
    field = jax.jit(family.field)(gamma, x, y)
    np.testing.assert_allclose(np.stack(field), np.stack([expected, by_x, by_y]), atol=atol)
    value, derivatives = jax.jit(family.derivatives)(gamma, x, y)
    np.testing.assert_allclose(value, expected, atol=atol)
    np.testing.assert_allclose(np.stack(derivatives, axis=1), by_gamma, atol=atol)
    assert np.abs(by_gamma).max() > 0.1
