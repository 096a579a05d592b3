"""
A report on a model
===================

``model.report("report.html", images)`` writes one page: results, remarks on what looks wrong,
pictures and curves, and the options. On the command line: ``patternfold report``.
"""

# %%
# Learn from fifteen handwritten fives, and from a three that has got among them.

import numpy as np

from patternfold import PATS
from patternfold.datasets import load_mnist, transform_images
from patternfold.report import report

digits, labels = load_mnist()
rng = np.random.default_rng(1)
fives = rng.permutation(digits[labels == 5])[:15]
fives = np.concatenate([fives, digits[labels == 3][:1]])
images, _ = transform_images(fives, rng, "similarity", canvas=(32, 32))
model = PATS(n_atoms=8, transformation="similarity", random_state=0).fit(images)

# %%
# In a notebook the page appears in a frame, as below.

# sphinx_gallery_thumbnail_path = 'images/report.png'
page = report(model, X=images, names=[f"five {i}" for i in range(15)] + ["three"])
page
