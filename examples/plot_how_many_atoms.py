"""
How many atoms?
===============

Atoms are added one by one, so a single run shows the error for every number of them. Images that
took no part in learning tell where more atoms stop helping.
"""

# %%
# Images of a known pattern of three atoms, with noise: half for learning, half held out.

import matplotlib.pyplot as plt
import numpy as np

from patternfold import PATS, datasets, project
from patternfold.plotting import ErrorPathDisplay

rng = np.random.default_rng(4)
truth = datasets.random_pattern(3, rng)
images, _ = datasets.random_images(truth, 40, rng, "similarity", shape=(24, 24), noise=0.003)
learning, held_out = images[:20], images[20:]

# %%
# Eight atoms are more than there are. ``warm_start`` goes on from the last fit, so the held-out
# error after each atom comes at little cost.

model = PATS(n_atoms=1, transformation="similarity", n_starts=1, n_exchanges=0, warm_start=True)
energy = (held_out**2).sum()
errors = []
for k in range(1, 9):
    model.set_params(n_atoms=k).fit(learning)
    found = project(model.pattern_, held_out, "similarity")
    errors.append((found.distances**2).sum() / energy)

# %%
# The learning error always falls, by following the noise in the end; the held-out error stays.

ax = plt.figure(figsize=(5.5, 3.5), layout="constrained").add_subplot()
ErrorPathDisplay(model.error_path_).plot(ax, label="learning images")
ErrorPathDisplay(errors).plot(ax, label="held-out images")
ax.axhline(0.003 * held_out[0].size * len(held_out) / energy, color="grey", ls=":", lw=1)
ax.set_title("the dotted line is the noise's share of the energy")
