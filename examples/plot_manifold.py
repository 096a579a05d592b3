"""
Walk along a manifold
=====================

All transformed versions of a pattern form a smooth surface in the space of images. Moving one
parameter at a time shows what each of them does.
"""

# %%
# A pattern can also be written down, atom by atom: rotation ψ, centre τ and widths σ.

import matplotlib.pyplot as plt

from patternfold import Pattern, manifold
from patternfold.plotting import ManifoldDisplay, PatternDisplay

bird = Pattern(
    coef=[1.0, 0.8, 0.8, -0.6],
    gamma=[
        [0.0, 0.0, 0.05, 0.12, 0.35],
        [0.6, -0.3, -0.05, 0.35, 0.1],
        [-0.6, 0.3, -0.05, 0.35, 0.1],
        [0.0, 0.0, -0.3, 0.06, 0.06],
    ],
)
PatternDisplay(bird).plot(atoms=True)

# %%
# Sweeps through the identity of the affine family, each over its interval.

ManifoldDisplay.from_pattern(bird, "affine", n_steps=9)

# %%
# The surface is smooth, so each point has tangent vectors: how the image changes with each
# parameter. Here they are at the identity.

tangents = manifold.tangents(bird, [[0.0, 0.0, 0.0, 1.0]], "similarity", (48, 48))[0]
figure, axes = plt.subplots(1, 4, figsize=(8, 2.3), layout="constrained")
for ax, tangent, name in zip(axes, tangents, ("theta", "tx", "ty", "s"), strict=True):
    strongest = abs(tangent).max()
    ax.imshow(tangent.reshape(48, 48), cmap="RdBu_r", vmin=-strongest, vmax=strongest)
    ax.set(title=f"∂/∂{name}", xticks=[], yticks=[])
