"""Images from files: folders of pictures, stacks and arrays, made ready for learning."""

from patternfold.files.formats import read_originals
from patternfold.files.placement import Placement
from patternfold.files.preparation import Preparation
from patternfold.files.raw import ImageFileError, Picture, Source
from patternfold.files.read import ImageSet, prepare_pictures, read_images, read_pictures
from patternfold.files.stacks import Stack, StackError, open_stack

__all__ = [
    "ImageFileError",
    "ImageSet",
    "Picture",
    "Placement",
    "Preparation",
    "Source",
    "Stack",
    "StackError",
    "open_stack",
    "prepare_pictures",
    "read_images",
    "read_originals",
    "read_pictures",
]
