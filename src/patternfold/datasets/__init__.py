"""Image sets: packaged digits, folders the user names, and generated images."""

from patternfold.datasets.brightfield import Brightfield, make_brightfield
from patternfold.datasets.faces import load_frey_faces, load_yale_faces
from patternfold.datasets.mnist import load_mnist
from patternfold.datasets.pictures import ink, shrink, unit
from patternfold.datasets.plankton import load_plankton
from patternfold.datasets.splits import Split, search_box, split_digits, split_plankton
from patternfold.datasets.stored import MissingData, data_folder
from patternfold.datasets.synthetic import (
    place_on_canvas,
    protocol_bounds,
    random_images,
    random_parameters,
    random_pattern,
    transform_images,
)
from patternfold.datasets.worms import Worms, make_worms

__all__ = [
    "Brightfield",
    "MissingData",
    "Split",
    "Worms",
    "data_folder",
    "ink",
    "load_frey_faces",
    "load_mnist",
    "load_plankton",
    "load_yale_faces",
    "make_brightfield",
    "make_worms",
    "place_on_canvas",
    "protocol_bounds",
    "random_images",
    "random_parameters",
    "random_pattern",
    "search_box",
    "shrink",
    "split_digits",
    "split_plankton",
    "transform_images",
    "unit",
]
