"""A parser whose errors name what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` with near matches of unknown choices and options."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        text = f"{value!r} is not known.{near(value, known)} Known: {', '.join(known)}"
        raise argparse.ArgumentError(action, text)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Refuse unknown options here, where it is known which command they were meant for."""
        found, unknown = super().parse_known_args(args, namespace)
        options = [text.partition("=")[0] for text in unknown if text.startswith("--")]
        if options:
            known = [s for action in self._actions for s in action.option_strings]
            self.error(f"{options[0]} is not an option.{near(options[0], known)}")
        return found, unknown


def near(name: object, known: Iterable[str]) -> str:
    """Ask whether the nearest listed name was meant."""
    # Late: it needs NumPy, for which the help does not wait.
    from patternfold._validation import did_you_mean

    return did_you_mean(name, known)
