"""
A family of your own
====================

How images differ may be a formula of yours. Here it is a twist: points are turned the more, the
farther from the middle they are.
"""

# %%
# A function of λ and a point is enough: JAX differentiates it. Inverses are found by Newton steps
# unless one is given; twisting back undoes a twist.

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from patternfold import PATS, Box, CustomTransformation, Pattern, manifold
from patternfold.testing import check_transformation


def twist(lam, x, y):
    """Turn by λ r²."""
    angle = lam[0] * (x**2 + y**2)
    c, s = jnp.cos(angle), jnp.sin(angle)
    return c * x + s * y, c * y - s * x


def untwist(lam, x, y):
    """Turn back: r is the same."""
    return twist(-lam, x, y)


family = CustomTransformation(twist, Box(["twist"], [-1.5], [1.5]), [0.0], inverse=untwist)
check_transformation(family)

# %%
# A cross, twisted at random.

cross = Pattern([1.0, 1.0], [[0.0, 0.0, 0.0, 0.7, 0.12], [np.pi / 2, 0.0, 0.0, 0.7, 0.12]])
rng = np.random.default_rng(0)
twists = np.sort(rng.uniform(-1.5, 1.5, (16, 1)), axis=0)
images = manifold.render(cross, twists, family, (24, 24)).reshape(-1, 24, 24)
images = images.astype(np.float32)

# %%
# Every estimator takes it by the same argument as the names of built-in families.

model = PATS(n_atoms=6, transformation=family, n_starts=1, random_state=0).fit(images)
untwisted = model.align(images)
fig, axes = plt.subplots(2, 8, figsize=(9, 2.5), layout="constrained")
for line, some, name in zip(axes, (images, untwisted), ("given", "untwisted"), strict=True):
    for ax, image in zip(line, some[::2], strict=True):
        ax.imshow(image, cmap="gray", vmin=0)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)

# %%
# The twists that were found, less the true ones, in radians at the edge: one number for all, since
# nothing says which of them is straight.

difference = model.parameters_ - twists
print(f"{difference.mean():.3f} ± {difference.std():.4f}")
