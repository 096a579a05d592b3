"""Small generated stand-ins for the face sets, which are not part of the library."""

import numpy as np

from patternfold import Pattern

FEATURES = [
    [0.0, 0.0, 0.0, 0.5, 0.8],  # head
    [0.0, -0.22, -0.25, 0.12, 0.07],  # eyes
    [0.0, 0.22, -0.25, 0.12, 0.07],
    [0.0, 0.0, 0.05, 0.06, 0.2],  # nose
    [0.0, 0.0, 0.4, 0.25, 0.06],  # mouth
]


def faces(n, shape, rng, spread):
    """Faces whose features vary a little."""
    coef = np.array([1.0, -0.6, -0.6, -0.2, -0.5])
    drawn = coef * rng.uniform(1 - spread, 1 + spread, (n, len(coef)))
    pictures = np.array([Pattern(c, FEATURES).render(shape) for c in drawn])
    return np.clip(200 * pictures / pictures.max(), 0, 255)


def write_face_sets(folder):
    rng = np.random.default_rng(0)
    np.savez(folder / "frey_faces.npz", x=faces(30, (28, 20), rng, 0.3).astype(np.uint8))
    lights = np.linspace(-80, 80, 32).round().astype(np.int16)
    across = np.linspace(-1, 1, 42)
    shade = np.clip(0.5 + 0.6 * np.sin(np.deg2rad(lights))[:, None] * across, 0.05, 1)
    lit = faces(32, (48, 42), rng, 0.0) * shade[:, None, :]
    np.savez(
        folder / "yaleb_3subjects_48x42.npz",
        x=lit.astype(np.uint8),
        subject=np.ones(32, np.uint8),
        azimuth=lights,
        elevation=0 * lights,
        bad=np.zeros(32, bool),
    )
    return folder
