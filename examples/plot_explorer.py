"""
A page to explore a model
=========================

The explorer is one HTML file: it re-renders the pattern from its atoms as the sliders move, shows
each atom, the growth of the pattern, and images beside their projections.
"""

# %%
# Learn a handwritten three from sixteen images at any angle.

import numpy as np

from patternfold import PATS
from patternfold.datasets import load_mnist, transform_images
from patternfold.report import explorer

digits, labels = load_mnist()
rng = np.random.default_rng(0)
threes = rng.permutation(digits[labels == 3])[:16]
images, _ = transform_images(threes, rng, "similarity", canvas=(32, 32))
model = PATS(n_atoms=8, transformation="similarity", random_state=0).fit(images)

# %%
# In a notebook the page appears in a frame, as below; ``page.save("page.html")`` writes it.

# sphinx_gallery_thumbnail_path = 'images/explorer.png'
page = explorer(model, images, title="A handwritten three")
page
