"""Check that what is here can be released: ``make release``.

Builds the archives, installs the wheel into an environment of its own and runs the tests there,
away from the repository. The version is that of the changelog's newest heading, which must bear a
date.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from wheel import QUICK, ROOT, build, environment, newest_heading, run, say, test_away


def main() -> None:
    """Run the checks; the first that fails ends the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rehearse", action="store_true", help="the heading need not bear a date")
    parser.add_argument("--quick", action="store_true", help="run some of the tests only")
    options = parser.parse_args()
    version, date = newest_heading()
    if not options.rehearse:
        check_heading(version, date)
        check_clean()
    for old in (ROOT / "dist").glob("patternfold-*"):
        old.unlink()
    wheel = build(ROOT / "dist")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("installing the wheel")
        python = environment(folder / "env", sys.executable, f"{wheel}[test]")
        run(python, "-m", "patternfold", "--version", cwd=folder)
        say("testing it away from the repository")
        test_away(python, folder / "away", QUICK if options.quick else None)
    say(f"version {version} can be released: {wheel.relative_to(ROOT)} and the source beside it")


def check_heading(version: str, date: str) -> None:
    """A release has a number without additions, and a date."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise SystemExit(
            f"CHANGELOG.md begins with [{version}] - {date or 'no date'}: name the release, for "
            "example '## [0.2.0] - 2026-12-01', or rehearse with CHECK=--rehearse."
        )


def check_clean() -> None:
    """What is released is what is committed."""
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    if changed:
        raise SystemExit(f"There are changes that are not committed:\n{changed}")


if __name__ == "__main__":
    main()
