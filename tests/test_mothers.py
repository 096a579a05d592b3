import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from patternfold import CustomMother, Gaussian, InverseMultiquadric
from patternfold.model.mothers import as_mother
from patternfold.testing import check_mother

BUILT_IN = [
    Gaussian(),
    InverseMultiquadric(),
    InverseMultiquadric(-0.1),
    InverseMultiquadric(-1.5),
    InverseMultiquadric(-40),
]


@pytest.mark.parametrize("mother", BUILT_IN, ids=str)
def test_laws(mother, dtype):
    check_mother(mother, dtype)


def test_gaussian_is_the_papers_and_has_unit_norm():
    side = np.linspace(-6, 6, 121)
    x, y = (jnp.asarray(a, jnp.float32) for a in np.meshgrid(side, side))
    values = np.asarray(Gaussian()(x, y), np.float64)
    expected = np.sqrt(2 / np.pi) * np.exp(-np.add.outer(side**2, side**2))
    np.testing.assert_allclose(values, expected, atol=1e-6)  # float32
    norm = (values**2).sum() * (side[1] - side[0]) ** 2
    assert norm == pytest.approx(1, abs=1e-6)  # float32; the sum itself is exact to 1e-15


@pytest.mark.parametrize("mu", [-3, -0.5, -2.25])
def test_inverse_multiquadric_is_the_power(mu, dtype, rng):
    x, y = rng.normal(size=(2, 50))
    found = InverseMultiquadric(mu)(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
    # exp and log of numbers of size 10, or a few products.
    np.testing.assert_allclose(found, (1 + x**2 + y**2) ** mu, rtol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("mu", [-2, -2.0, np.float32(-2), np.int64(-2)])
def test_any_kind_of_number_serves_as_exponent(mu):
    assert InverseMultiquadric(mu) == InverseMultiquadric(-2.0)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("mu", [0, 1.5, np.nan, -np.inf, "three", None])
def test_exponents_that_do_not_decay_are_refused(mu):
    with pytest.raises(ValueError, match=r"mu=.* must be a negative number, such as -3"):
        InverseMultiquadric(mu)


@pytest.mark.parametrize("mother", BUILT_IN, ids=str)
def test_mothers_compare_by_value_and_can_be_pickled(mother):
    assert pickle.loads(pickle.dumps(mother)) == mother
    assert [other == mother for other in BUILT_IN].count(True) == 1


def test_names_and_objects_are_accepted():
    assert as_mother("gaussian") == Gaussian()
    assert as_mother("inverse-multiquadric") == InverseMultiquadric(-3)
    own = CustomMother(lambda x, y: jnp.exp(-(x**2) - y**2))
    assert as_mother(own) is own


def test_unknown_names_get_the_near_match():
    with pytest.raises(ValueError, match=r"mother='gausian' is not known. Did you mean 'gaussian'"):
        as_mother("gausian")


@pytest.mark.usefixtures("as_users_run")
def test_a_bare_function_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"wrap a function of .* in CustomMother"):
        as_mother(lambda x, y: x)
