"""Stacks of images in files and arrays that are read as they are needed."""

from patternfold.files.stacks.opening import as_stack, open_stack
from patternfold.learning.stream.stack import Stack, StackError

__all__ = ["Stack", "StackError", "as_stack", "open_stack"]
