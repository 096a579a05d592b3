"""One module per command, each with ``run(options, console)`` that returns the exit code."""
