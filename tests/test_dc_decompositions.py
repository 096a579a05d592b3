"""Decompositions of U_λ(φ_γ)(l) and of Ẽ on real residuals, signed weights included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dc_problems import ATOM, BOX, direct_error, points, problem

from patternfold import Box, CustomMother, Gaussian, InverseMultiquadric
from patternfold.dc import (
    Atom,
    ByRules,
    Function,
    Restricted,
    by_curvature,
    frozen_error,
    hessian_bound,
    narrow,
)
from patternfold.dc.function import BLOCK, _gradients
from patternfold.testing import check_dc

pytestmark = pytest.mark.usefixtures("compiled_well")  # a search runs for long

MOTHERS = {"gaussian": Gaussian(), "inverse-multiquadric": InverseMultiquadric()}


class OnePixel:
    """U_λ(φ_γ)(l) of the pixel at (0.3, -0.2) in the pattern's frame."""

    def __init__(self, mother: str):
        self.mother = mother

    def __call__(self, gamma: jax.Array) -> jax.Array:
        return Atom(MOTHERS[self.mother])(gamma, 0.3, -0.2)


@pytest.mark.parametrize("rules", ["tight", "paper"])
@pytest.mark.parametrize("mother", MOTHERS)
def test_pixels_of_atoms(mother: str, rules: str) -> None:
    box = Box(BOX.names[:5], [-np.pi, -0.5, -0.5, 0.3, 0.3], [np.pi, 0.5, 0.5, 1.0, 1.0])

    def direct(gamma: np.ndarray) -> np.ndarray:
        c, s = np.cos(gamma[:, 0]), np.sin(gamma[:, 0])
        dx, dy = 0.3 - gamma[:, 1], -0.2 - gamma[:, 2]
        z = ((c * dx + s * dy) / gamma[:, 3]) ** 2 + ((c * dy - s * dx) / gamma[:, 4]) ** 2
        return np.sqrt(2 / np.pi) * np.exp(-z) if mother == "gaussian" else (1 + z) ** -3.0

    check_dc(ByRules(Function(OnePixel(mother), box), rules), direct, nonnegative=True)


@pytest.mark.parametrize("rules", ["tight", "paper"])
@pytest.mark.parametrize("imq", [False, True], ids=["gaussian", "inverse-multiquadric"])
def test_frozen_error_on_real_residuals(imq: bool, rules: str) -> None:
    # The paper's constants grow with powers of 1/σ: on a smaller box rounding leaves a Hessian.
    box = narrow(BOX, ATOM, 0.15)
    for signed in (False, True):
        function = problem(box, imq, signed)
        direct = lambda x, s=signed: direct_error(x, imq, s)  # noqa: E731
        check_dc(ByRules(function, rules), direct, nonnegative=True)
    assert abs(direct(ATOM[None]) - direct(0 * ATOM[None] + 0.3)) > 0.01  # f is not constant


@pytest.mark.parametrize("signed", [False, True])
def test_curvature_decomposes_the_frozen_error(signed: bool) -> None:
    function = problem(narrow(BOX, ATOM, 0.1), signed=signed)
    pair = by_curvature(function, max_boxes=64)
    assert (pair.rho > 0).any()
    check_dc(pair, lambda x: direct_error(x, signed=signed))


@pytest.mark.parametrize("imq", [False, True], ids=["gaussian", "inverse-multiquadric"])
def test_bounds_over_boxes_hold(imq: bool, rng: np.random.Generator) -> None:
    function = problem(imq=imq, signed=True)
    centres = BOX.sample(rng, 6)
    boxes = [
        narrow(BOX, c, s) for c, s in zip(centres, [1.0, 0.5, 0.2, 0.1, 0.03, 0.01], strict=True)
    ]
    lower, upper = (np.array([getattr(b, end) for b in boxes]) for end in ("lower", "upper"))
    bounds = function.bounds(lower, upper)
    for i, box in enumerate(boxes):
        inside = box.sample(rng, 16)
        value, slope = function.gradients(inside)
        assert (value >= bounds.low[i] - 1e-9).all()
        assert (np.abs(slope - bounds.gradient[i]) <= bounds.gradient_rad[i] + 1e-9).all()
        step = 1e-6 * np.eye(6)
        ends = [function.gradients((inside[:, None] + s * step).reshape(-1, 6))[1] for s in (1, -1)]
        hessian = ((ends[0] - ends[1]) / 2e-6).reshape(16, 6, 6)
        slack = 1e-6 * np.abs(hessian).max()  # of the differences
        assert (np.abs(hessian - bounds.hessian[i]) <= bounds.hessian_rad[i] + slack).all()
    # Bounds over small boxes are tight: they shrink with the box.
    assert bounds.hessian_rad[5].max() < 0.2 * bounds.hessian_rad[3].max()


def test_hessian_bound_of_a_restriction_is_near_what_is_needed() -> None:
    function = Restricted(problem(), ["tau_x"], ATOM)
    (rho,) = hessian_bound(function, max_boxes=512)
    x = np.linspace(-1, 1, 2001)[:, None]
    second = np.gradient(function.gradients(x)[1][:, 0], x[:, 0])
    needed = -second.min()
    assert needed > 1
    assert needed <= rho <= 1.3 * needed


def test_restriction_agrees_with_the_whole(rng: np.random.Generator) -> None:
    function = problem()
    part = Restricted(function, ["sigma_y", "tau_x"], ATOM)
    assert part.box.names == ("tau_x", "sigma_y")
    x = part.box.sample(rng, 5)
    whole = np.repeat(ATOM[None], 5, axis=0)
    whole[:, [1, 4]] = x
    np.testing.assert_array_equal(part.values(x), function.values(whole))
    np.testing.assert_array_equal(part.gradients(x)[1], function.gradients(whole)[1][:, [1, 4]])
    check_dc(ByRules(part), part.values, nonnegative=True)


def test_angles_are_periodic_and_boxes_checked() -> None:
    function = problem()
    turned = ATOM + np.array([2 * np.pi, 0, 0, 0, 0, 0])
    # Rounding of the angle, amplified by the sharpest atom.
    np.testing.assert_allclose(
        function.values(turned[None]), function.values(ATOM[None]), rtol=1e-12
    )
    across = narrow(BOX, np.array([3.1, 0, 0, 0.5, 0.5, 0]), 0.2)
    assert across.lower[0] < np.pi < across.upper[0]
    with pytest.raises(ValueError, match="more than a turn"):
        problem(Box(BOX.names, [-4.0, *BOX.lower[1:]], [4.0, *BOX.upper[1:]]))
    with pytest.raises(ValueError, match="those of Ẽ are"):
        problem(Box(["psi"], [0.0], [1.0]))


def test_blocks_of_pixels_add_up(rng: np.random.Generator) -> None:
    """Ẽ of many pixels is the sum over blocks, filled up with nothing."""
    x, y, v, w = rng.uniform(-1, 1, (4, 2 * BLOCK + 77))
    function = frozen_error(x, y, w * v, w, BOX)
    part = slice(0, BLOCK + 5)
    rest = slice(BLOCK + 5, None)
    split = [frozen_error(x[s], y[s], (w * v)[s], w[s], BOX) for s in (part, rest)]
    total = sum(f.values(ATOM[None])[0] for f in split)
    assert function.values(ATOM[None])[0] == pytest.approx(total, rel=1e-12)
    c, s = np.cos(ATOM[0]), np.sin(ATOM[0])
    dx, dy = x - ATOM[1], y - ATOM[2]
    z = ((c * dx + s * dy) / ATOM[3]) ** 2 + ((c * dy - s * dx) / ATOM[4]) ** 2
    direct = (w * (v - ATOM[5] * np.sqrt(2 / np.pi) * np.exp(-z)) ** 2).sum()
    assert total == pytest.approx(direct, rel=1e-12)


def test_memory_does_not_grow_with_the_number_of_pixels(x64: None) -> None:
    """What a kernel allocates beside its inputs, for 4 and for 64 blocks of pixels."""

    def allocated(n_blocks: int) -> int:
        terms, rows = problem().terms, jnp.zeros((16, 6), jnp.float64)
        pixels = tuple(jnp.zeros((n_blocks, BLOCK), jnp.float64) for _ in range(4))
        compiled = _gradients.lower(terms, rows, pixels).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert allocated(64) <= 1.2 * allocated(4)


def test_components_without_a_decomposition_are_refused() -> None:
    mother = CustomMother(lambda x, y: jnp.exp(-(x**4) - y**4))
    with pytest.raises(TypeError, match="known for Gaussian, InverseMultiquadric, not for Custom"):
        frozen_error(*points()[:4], BOX, mother)
