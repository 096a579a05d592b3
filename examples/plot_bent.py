"""
Straighten what is bent
=======================

Worms are never straight. A family that turns, shifts, scales *and bends* finds what all of them
have in common, and how far each is bent.
"""

# %%
# Two dozen generated worms of one kind, each with a pose and a bend of its own.

import matplotlib.pyplot as plt
import numpy as np

from patternfold import PATS, datasets

worms = datasets.make_worms(24, 0, shape=(28, 28))

# %%
# ``"similarity+bend"`` is a sum of two families: the pattern is bent first, then moved.

model = PATS(
    n_atoms=6,
    transformation="similarity+bend",
    bounds={"bend": (-2, 2)},
    n_starts=1,
    random_state=0,
).fit(worms.images)
straight = model.align(worms.images)

# %%
# Worms as they are, and unbent.

fig, axes = plt.subplots(2, 8, figsize=(9, 2.5), layout="constrained")
for line, images, name in zip(axes, (worms.images, straight), ("given", "unbent"), strict=True):
    for ax, image in zip(line, images, strict=False):
        ax.imshow(image, cmap="gray", vmin=0)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)

# %%
# The curvatures that were found against the true ones. They are bends over scales: a larger pattern
# that is bent less and scaled down looks alike. A worm may be taken with its head at either end of
# the pattern's axis, which changes the sign for all of them.

found, true = (lam[:, -1] / lam[:, 3] for lam in (model.parameters_, worms.parameters))
sign = np.sign((found * true).sum())
fig, ax = plt.subplots(figsize=(3.6, 3.4), layout="constrained")
ax.plot(true, sign * found, "o")
ax.axline((0, 0), slope=1, color="grey", lw=1)
ax.set(xlabel="true curvature", ylabel="curvature found")
