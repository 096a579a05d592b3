"""Pages for people: the explorer of a model, and the report on how it was learned."""

from patternfold.show.pages.document import Page
from patternfold.show.pages.explorer import explorer, save_explorer
from patternfold.show.pages.summary import report

__all__ = ["Page", "explorer", "report", "save_explorer"]
