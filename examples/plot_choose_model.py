"""
Choose the model by cross-validation
====================================

How do the images differ, and how many atoms does the pattern need? `PATS.score` is the share of the
energy of images that a pattern explains which were not learned from, so that scikit-learn's own
tools choose: higher is better, and labels are not needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from patternfold import PATS, datasets

# %%
# Images of a pattern of four atoms, turned and shifted, with noise.

rng = np.random.default_rng(4)
truth = datasets.random_pattern(4, rng)
bounds = {"tx": (-0.2, 0.2), "ty": (-0.2, 0.2)}
images, _ = datasets.random_images(
    truth, 32, rng, "rotation-translation", bounds, shape=(16, 16), noise=0.002
)

# %%
# Every pair of a family and a number of atoms is learned from half of the images and judged by the
# other half, and the other way round. A family without rotation can't explain them, however many
# atoms it has. ``refit=False`` leaves out learning the best one again from all images.

search = GridSearchCV(
    PATS(n_starts=1, n_exchanges=0, random_state=0),
    {
        "transformation": ["translation", "rotation-translation"],
        "n_atoms": [1, 2, 4, 8],
    },
    cv=2,
    refit=False,
).fit(images)
print(search.best_params_, round(search.best_score_, 4))

# %%
# The error on images that were held out, 1 − score.

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
results = search.cv_results_
families = np.asarray(results["param_transformation"], str)
atoms = np.asarray(results["param_n_atoms"], int)
for family in dict.fromkeys(families):
    own = families == family
    ax.plot(atoms[own], 1 - results["mean_test_score"][own], marker="o", label=family)
ax.set(xlabel="atoms", ylabel="held-out error", yscale="log", xticks=sorted(set(atoms)))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Losses, priors, mother functions and whole classifiers are chosen in the same way:
# ``{"loss": ["squared", "student-t"]}``, or with labels
# ``GridSearchCV(JPATS(), {"n_atoms": [4, 8]}).fit(images, labels)``.
