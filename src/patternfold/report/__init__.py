"""Pages for people: the explorer of a model, and the report on how it was learned."""

from patternfold.report.document import Page
from patternfold.report.explorer import explorer, save_explorer
from patternfold.report.summary import report

__all__ = ["Page", "explorer", "report", "save_explorer"]
