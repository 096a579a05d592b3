"""Text from files and users, made fit for terminals and pictures."""

from __future__ import annotations

import unicodedata

LINE_ENDS = ("Zl", "Zp")
"""Categories of characters that end lines for some programs and not for others."""


def printable(text: str) -> str:
    """Return text with escape sequences for what would steer a terminal, or that it can't show."""
    return "".join(c if _is_plain(c) else ascii(c)[1:-1] for c in text)


def _is_plain(character: str) -> bool:
    category = unicodedata.category(character)
    return not category.startswith("C") and category not in LINE_ENDS
