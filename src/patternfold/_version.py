"""The version number, the single source read by the build and by ``patternfold.__version__``."""

__version__ = "0.1.0"
