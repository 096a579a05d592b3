"""Patterns and poses for tests of the manifold, and its formulas in NumPy."""

import numpy as np

from patternfold import Pattern

PAPER = "rotation-translation-scaling"


# Most tests share this size and number of images, and with them compiled code.
SHAPE, N = (6, 7), 4


def random_pattern(rng, n_atoms, mother="gaussian") -> Pattern:
    low, high = [-np.pi, -0.4, -0.4, 0.2, 0.2], [np.pi, 0.4, 0.4, 0.6, 0.6]
    return Pattern(rng.normal(size=n_atoms), rng.uniform(low, high, size=(n_atoms, 5)), mother)


def random_lam(rng, n_images=N):
    low, high = [-np.pi, -0.3, -0.3, 0.7, 0.7], [np.pi, 0.3, 0.3, 1.4, 1.4]
    return rng.uniform(low, high, size=(n_images, 5))


def turn(theta):
    return np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])


def numpy_render(pattern, lam, shape):
    """U_λ(p) of Gaussian atoms with the paper's formulas, one image and one atom at a time."""
    height, width = shape
    pixel = 2 / max(shape)
    rows, columns = np.mgrid[:height, :width]
    x = ((columns + 0.5) * pixel - width * pixel / 2).ravel()
    y = ((rows + 0.5) * pixel - height * pixel / 2).ravel()
    images = np.zeros((len(lam), height * width))
    for image, (theta, tx, ty, sx, sy) in zip(images, lam, strict=True):
        warped = np.diag([1 / sx, 1 / sy]) @ turn(-theta) @ np.stack([x - tx, y - ty])
        for c, (psi, tau_x, tau_y, sigma_x, sigma_y) in zip(
            pattern.coef, pattern.gamma, strict=True
        ):
            centred = warped - np.array([[tau_x], [tau_y]])
            u, v = np.diag([1 / sigma_x, 1 / sigma_y]) @ turn(-psi) @ centred
            image += c * np.sqrt(2 / np.pi) * np.exp(-(u**2) - v**2)
    return images
