"""The command line: ``patternfold learn``, ``align``, ``classify``, ``explore`` and others.

Nothing heavy is imported before the command line is read, so that ``--help`` and wrong usage are
answered at once. Then comes JAX, half a second in which Ctrl-C waits, and what the command needs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from patternfold.cli.console import Console, Failure
from patternfold.cli.parser import parse
from patternfold.numerics.interrupts import listening


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for failure, 2 for wrong usage."""
    options = parse(arguments)
    console = Console(json=options.json, quiet=options.quiet)
    try:
        with listening() as interrupts:
            with interrupts.held():
                import_module("jax")  # Python's exception crashes the start of its compiled parts
            command = import_module(f"patternfold.cli.commands.{options.command}")
            code = command.run(options, console)
            if code == 0 and interrupts.asked:
                return console.fail("Interrupted, but the command had done its work by then.")
            return code
    except KeyboardInterrupt:
        return console.fail("Interrupted; nothing was written.")
    except (Failure, OSError, ImportError, ValueError) as error:
        # The library's errors name what is wrong and the remedy; others show their traceback.
        return console.fail(str(error))


if __name__ == "__main__":
    sys.exit(main())
