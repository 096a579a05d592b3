import jax
import jax.numpy as jnp
import numpy as np
import pytest

from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision, working_dtype


def test_one_double_array_makes_the_work_double():
    single, double = np.zeros(1, np.float32), np.zeros(1, np.float64)
    assert working_dtype(single, single) == np.float32
    assert working_dtype(single, double) == np.float64
    assert working_dtype(jnp.zeros(1, jnp.float32)) == np.float32


@pytest.mark.parametrize("users", [False, True])
def test_the_users_setting_is_left_as_found(users, dtype):
    with jax.enable_x64(users):
        with precision(dtype):
            assert jnp.asarray(np.zeros(1, dtype)).dtype == dtype
        assert jax.config.jax_enable_x64 is users
        with pytest.raises(RuntimeError, match="inside"), precision(dtype):
            raise RuntimeError("inside")
        assert jax.config.jax_enable_x64 is users


def test_nan_that_stands_for_nothing_is_no_error():
    @compiled
    def marks(x):
        return jnp.where(x > 0, x, jnp.nan), jnp.inf + x

    with jax.debug_nans(True), jax.debug_infs(True):
        found, _ = marks(np.zeros(2, np.float32))
        assert np.isnan(np.asarray(found)).all()
        assert jax.config.jax_debug_nans
        assert jax.config.jax_debug_infs
        with pytest.raises(FloatingPointError):
            jnp.log(-jnp.ones(2)).block_until_ready()
