"""Pages for people: `patternfold.show.pages` by its public name."""

from patternfold.show.pages import Page, explorer, report, save_explorer

__all__ = ["Page", "explorer", "report", "save_explorer"]
