"""Images from files: folders of pictures, stacks and arrays, made ready for learning."""

from patternfold.files.prepare import Preparation
from patternfold.files.raw import ImageFileError, Picture
from patternfold.files.read import ImageSet, prepare_pictures, read_images, read_pictures

__all__ = [
    "ImageFileError",
    "ImageSet",
    "Picture",
    "Preparation",
    "prepare_pictures",
    "read_images",
    "read_pictures",
]
