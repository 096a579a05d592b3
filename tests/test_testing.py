"""The law checks themselves: they pass what is right and catch what is wrong."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from formula_components import Bend, Ridge, RoundAtoms, ShearTranslation, SoftExponential

from patternfold import (
    AtomDictionary,
    Box,
    CustomMother,
    CustomTransformation,
    Gaussian,
    InverseMultiquadric,
    RotationTranslation,
    Scaling,
    Translation,
    manifold,
    testing,
)
from patternfold.model.mothers import AbstractMother, AbstractRadialMother
from patternfold.model.transformations import TRANSFORMATIONS, as_transformation
from patternfold.testing import (
    check_dictionary,
    check_mother,
    check_pattern_operator,
    check_transformation,
)

# A user's own components, each in under 15 lines.


def swirl(lam, x, y):
    """Turn by an angle that fades away from the point (tx, ty)."""
    dx, dy = x - lam[1], y - lam[2]
    angle = lam[0] * jnp.exp(-(dx**2) - dy**2)
    c, s = jnp.cos(angle), jnp.sin(angle)
    return c * dx + s * dy, c * dy - s * dx


def unswirl(lam, x, y):
    u, v = swirl(jnp.stack([-lam[0], 0 * lam[1], 0 * lam[2]]), x, y)
    return u + lam[1], v + lam[2]


SWIRL_BOX = Box(["twist", "tx", "ty"], [-0.8, -0.5, -0.5], [0.8, 0.5, 0.5])
SWIRL = CustomTransformation(swirl, SWIRL_BOX, [0.0, 0.0, 0.0], unswirl, ("tx", "ty"))


def ridge(x, y):
    """A wave under a Gaussian."""
    return jnp.cos(3 * x) * jnp.exp(-(x**2) - y**2)


class MexicanHat(AbstractMother):
    def __call__(self, x, y):
        z = x**2 + y**2
        return (1 - z) * jnp.exp(-z)

    def field(self, x, y):
        z = x**2 + y**2
        slope = 2 * (z - 2) * jnp.exp(-z)
        return self(x, y), slope * x, slope * y


def test_users_transformation_passes(dtype):
    check_transformation(SWIRL, dtype)


def test_users_transformation_without_inverse_passes():
    check_transformation(CustomTransformation(swirl, SWIRL_BOX, [0.0, 0.0, 0.0]))


@pytest.mark.parametrize("mother", [CustomMother(ridge), MexicanHat()], ids=["ridge", "hat"])
def test_users_mother_passes(mother, dtype):
    check_mother(mother, dtype)


def test_new_kinds_pass(dtype):
    for transformation in (ShearTranslation(), Bend()):
        check_transformation(transformation, dtype)
    for mother in (SoftExponential(2.5), Ridge(2.0)):
        check_mother(mother, dtype)
    check_dictionary(RoundAtoms(), dtype)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_built_in_components_work_together(name, dtype):
    check_pattern_operator(as_transformation(name), Gaussian(), dtype=dtype)


def test_other_components_work_together(dtype):
    check_pattern_operator(Translation(), InverseMultiquadric(-1.5), dtype=dtype)
    check_pattern_operator(SWIRL, CustomMother(ridge), AtomDictionary(), dtype=dtype)


def test_checks_return_nothing_and_other_seeds_pass_too():
    assert [check_mother(Gaussian(), seed=seed) for seed in (1, 2)] == [None, None]


# Wrong components: one broken law each.


class WrongDerivative(Scaling):
    def derivatives(self, lam, x, y):
        dx, dy = Scaling.derivatives(self, lam, x, y)
        return dx, dy.at[1].multiply(1.001)


class MissingDerivative(Scaling):
    def derivatives(self, lam, x, y):
        dx, dy = Scaling.derivatives(self, lam, x, y)
        return dx[1:], dy[1:]


class WrongTangentProducts(Translation):
    def tangent_products(self, *arguments):
        metric, along_w = Translation.tangent_products(self, *arguments)
        return metric, -along_w


class WrongInverseMap(Scaling):
    def inverse_coordinates(self, lam, x, y):
        x, y = Scaling.inverse_coordinates(self, lam, x, y)
        return x, y + 0.01 * lam[1]


class WrongIdentity(Translation):
    @property
    def identity(self):
        return np.array([0.1, 0.0])


class IdentityOutside(Translation):
    @property
    def identity(self):
        return np.array([3.0, 0.0])


class WrongComposition(RotationTranslation):
    def compose(self, outer, inner):
        return RotationTranslation.compose(self, inner, outer)


class WrongGroupInverse(Translation):
    def inverse(self, lam):
        return lam


def folded(lam, x, y):
    return x + lam[0] * x**2, y


def averaged(lam, x, y):
    return x + lam[0] * jnp.mean(x), y


def rooted(lam, x, y):
    return x + jnp.sqrt(lam[0]), y


ONE = Box(["k"], [-1.0], [1.0])
HALF_TURN = Box(["theta", "tx", "ty"], [-np.pi / 2, -1.0, -1.0], [np.pi / 2, 1.0, 1.0], ["theta"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (WrongDerivative(), r"derivatives: .* in 'sy' is of order 2': order 1\.\d+"),
        (MissingDerivative(), "derivatives have one entry for each parameter"),
        (WrongTangentProducts(), "tangent_products are those of the tangents"),
        (WrongInverseMap(), r"inverse_coordinates undoes coordinates': off by 0\.\d+"),
        (WrongIdentity(), r"the identity maps \(x, y\) to itself': off by 0\.\d+"),
        (IdentityOutside(), r"the identity lies in the box': it is \[3. 0.\]"),
        (WrongComposition(), r"compose\(outer, inner\) maps like inner after outer"),
        (WrongGroupInverse(), "inverse maps like inverse_coordinates"),
        (Translation(translation=("ty", "tx")), r"\('ty', 'tx'\) shift the image"),
        (RotationTranslation(HALF_TURN), "'theta' has the period 3.14159"),
        (CustomTransformation(folded, ONE, [0.0]), r"is a bijection .* determinant runs from -"),
        (CustomTransformation(averaged, ONE, [0.0]), "points are mapped one by one"),
        (CustomTransformation(rooted, ONE, [0.0]), "values are finite': coordinates gives NaN"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_wrong_transformations_fail(wrong, message):
    with pytest.raises(
        AssertionError, match=f"^{type(wrong).__name__} breaks the law '.*{message}"
    ):
        check_transformation(wrong)


class WrongGradient(Gaussian):
    def field(self, x, y):
        value, along_x, along_y = Gaussian.field(self, x, y)
        return value, along_x, 0.999 * along_y


class WrongValue(Gaussian):
    def field(self, x, y):
        value, along_x, along_y = Gaussian.field(self, x, y)
        return 2 * value, along_x, along_y


class WrongChainRule(Gaussian):
    def field_through(self, u, v, jacobian):
        (ux, uy), (vx, vy) = jacobian
        return Gaussian.field_through(self, u, v, ((ux, vx), (uy, vy)))


class NotRadial(AbstractRadialMother):
    def profile(self, z):
        return jnp.exp(-z), -jnp.exp(-z)

    def __call__(self, x, y):
        return jnp.exp(-(x**2) - 2 * y**2)

    def field(self, x, y):
        value = self(x, y)
        return value, -2 * x * value, -4 * y * value

    def field_through(self, u, v, jacobian):
        return AbstractMother.field_through(self, u, v, jacobian)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (WrongGradient(), "slopes in field: the Taylor remainder in 'y' is of order 2"),
        (WrongValue(), "field returns φ first"),
        (WrongChainRule(), "field_through follows the chain rule"),
        (NotRadial(), "turning φ changes nothing"),
        (CustomMother(lambda x, y: jnp.exp(-jnp.abs(x) - y**2)), "remainder in 'x' is of order 2"),
        (CustomMother(lambda x, y: jnp.cos(x) * jnp.cos(y)), "φ decays far away"),
        (CustomMother(lambda x, y: jnp.exp(-jnp.sqrt(x**2 + y**2))), "values are finite"),
        (CustomMother(lambda x, y: jnp.exp(-(x**2)).astype(jnp.float32)), "keep the dtype"),
    ],
    ids=["gradient", "value", "chain rule", "radial", "kink", "no decay", "cone", "dtype"],
)
def test_wrong_mothers_fail(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_mother(wrong)


class WrongJacobian(AtomDictionary):
    def coordinates(self, gamma, x, y):
        return AtomDictionary().coordinates(gamma, x, y)

    def derivatives(self, gamma, x, y):
        return AtomDictionary().derivatives(gamma, x, y)

    def jacobian(self, gamma, x, y):
        (ux, uy), (vx, vy) = AtomDictionary().jacobian(gamma, x, y)
        return (ux, vx), (uy, vy)


class WrongAtomDerivative(AtomDictionary):
    def derivatives(self, gamma, x, y):
        du, dv = AtomDictionary.derivatives(self, gamma, x, y)
        return [-du[0], *du[1:]], dv


class WrongPositions(AtomDictionary):
    positions = ("tau_y", "tau_x")


class WrongBlur(AtomDictionary):
    def blurred(self, coef, gamma, width):
        return AtomDictionary().blurred(coef, gamma, 1.001 * width)


class WrongFrame(AtomDictionary):
    def in_frame(self, gamma, linear, shift, radial):
        return AtomDictionary().in_frame(gamma, linear, 1.001 * shift, radial)


class WrongCentre(AtomDictionary):
    def centred(self, gamma):
        return AtomDictionary().centred(gamma) * jnp.asarray([1, 1, 1, 1, 1, -1], gamma.dtype)


class WrongEllipses(AtomDictionary):
    def ellipses(self, gamma):
        return AtomDictionary().ellipses(gamma) * [1, 1, 1, 1, -1]


class WrongShapes(AtomDictionary):
    def shapes(self, narrow, wide, radial):
        return AtomDictionary().shapes(narrow, wide, radial) + 1


class WrongResolution(AtomDictionary):
    def resolved(self, pixel):
        return self.parameters.with_bounds({"sigma_x": (0.001, 2.0)})


class NotAffine(AtomDictionary):
    def coordinates(self, gamma, x, y):
        u, v = AtomDictionary().coordinates(gamma, x, y)
        return u + u**3, v

    def jacobian(self, gamma, x, y):
        u, _ = AtomDictionary().coordinates(gamma, x, y)
        (ux, uy), second = AtomDictionary().jacobian(gamma, x, y)
        return (ux * (1 + 3 * u**2), uy * (1 + 3 * u**2)), second

    def derivatives(self, gamma, x, y):
        u, _ = AtomDictionary().coordinates(gamma, x, y)
        du, dv = AtomDictionary().derivatives(gamma, x, y)
        return [d * (1 + 3 * u**2) for d in du], dv


class LostOption(RoundAtoms):
    sign: int = eqx.field(default=1, static=True)

    def options(self):
        return {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (WrongJacobian(), "jacobian is that of coordinates"),
        (WrongAtomDerivative(), "derivatives: the Taylor remainder in 'psi' is of order 2"),
        (WrongPositions(), "shift the atom"),
        (WrongBlur(), "blurred gives Gaussian atoms convolved with a Gaussian"),
        (WrongFrame(), "in_frame gives the atoms of p"),
        (WrongCentre(), "centred gives B and c"),
        (WrongEllipses(), "ellipses are where"),
        (WrongShapes(), "shapes are atoms at the origin"),
        (WrongResolution(), "is a part of the box"),
        (NotAffine(), "the map is affine"),
        (LostOption(sign=-1), "make the component again"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_dictionaries_fail(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_dictionary(wrong)


def test_operator_that_is_not_linear_fails(monkeypatch):
    monkeypatch.setattr(testing, "render", lambda *args: np.abs(manifold.render(*args)))
    with pytest.raises(AssertionError, match=r"U_λ\(a p \+ q\) = a U_λ\(p\) \+ U_λ\(q\)"):
        check_pattern_operator(Translation(), Gaussian())


def test_wrong_tangents_fail(monkeypatch):
    monkeypatch.setattr(testing, "tangents", lambda *args: 1.01 * manifold.tangents(*args))
    with pytest.raises(AssertionError, match="tangents: the Taylor remainder in 'tx'"):
        check_pattern_operator(Translation(), Gaussian())


def test_wrong_identity_fails_in_the_operator():
    with pytest.raises(AssertionError, match="the identity renders p itself"):
        check_pattern_operator(WrongIdentity(), Gaussian())
