"""Zip files of JSON and arrays, for models, checkpoints and steps: read without executing code."""
