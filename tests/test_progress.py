"""What is told while commands learn: bars, steps, the time that is left."""

import io

import pytest

from patternfold.cli.console import Console
from patternfold.cli.progress import Progress, Work
from patternfold.learning.state import Progress as Line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    progress = Progress(Console(), 20, terminal)
    with progress.listening():
        progress(Line(30, 5, 20, 0.25, 1.5, "learning", "dots", 2, 3))
    shown = terminal.getvalue()
    assert "dots: learning" in shown
    assert "5/20 atoms, error 0.2500" in shown
    assert "left" in shown
    assert "━" in shown


def test_quiet_terminals_show_nothing(capsys):
    terminal = Terminal()
    progress = Progress(Console(quiet=True), stream=terminal)
    with progress.listening():
        progress(Line(30, 5, 20, 0.25, 1.5, "learning"))
    assert terminal.getvalue() == capsys.readouterr().err == ""


def test_steps_are_counted_over_starts_and_classes():
    work, done = Work(atoms=8), []
    for part in (1, 2):
        lines = [(f"start {i} of 2", n, 5) for i in (1, 2) for n in range(1, 6)]
        lines += [("learning", n, 8) for n in range(6, 9)] + [("settling", 8, 8)] * 3
        for stage, n, most in lines:
            done.append(work(Line(30, n, most, 0.1, 0.0, stage, "x", part, 2)))
    numbers = [number for number, _ in done]
    assert numbers == list(range(1, 33))
    assert {total for _, total in done} == {32}
    assert work.left is None  # all is done
    assert work(Line(30, 8, 8, 0.1, 0.0, "joint selection")) == (32, None)


def test_patterns_that_have_grown_enough_only_settle():
    work = Work()
    assert work(Line(30, 1, 5, 0.1, 0.0, "start 1 of 1")) == (1, None)
    assert work.left is None
    for n in range(1, 5):
        assert work(Line(30, n, 40, 0.1, 0.0, "learning")) == (n, 43)
    assert work(Line(30, 4, 40, 0.1, 0.0, "settling")) == (41, 43)


def test_time_left(monkeypatch):
    clock = iter([0.0, 60.0, 62.0, 64.0])
    monkeypatch.setattr("patternfold.cli.progress.time.perf_counter", lambda: next(clock))
    work = Work(atoms=7)
    work(Line(30, 1, 7, 0.1, 0.0, "learning"))
    assert work.left is None  # the first step had to compile
    work(Line(30, 2, 7, 0.1, 0.0, "learning"))
    assert work.left == pytest.approx(2.0 * 8)
