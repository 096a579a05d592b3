"""Run the command line: ``python -m patternfold``."""

import sys

from patternfold.cli import main

if __name__ == "__main__":
    sys.exit(main())
