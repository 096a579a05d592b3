"""Ctrl-C, a callback that asks to stop, and fits that fail: nothing half done looks finished."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import patternfold as pf
from patternfold.cli import main
from patternfold.experiments.workers import timed
from patternfold.learning import references, start
from patternfold.learning.observations import Observations
from patternfold.learning.pats import Learned
from patternfold.numerics.compilation import warm_up
from patternfold.numerics.interrupts import check_interrupts, listening

SMALL = {
    "transformation": "translation",
    "tangent_refinement": False,
    "refit": "coefficients",
    "projection": "fixed",
    "n_starts": 2,
    "n_exchanges": 0,
    "random_state": 0,
}
PATS = pf.PATS(3, **SMALL)
JPATS = pf.JPATS(3, n_tuning=0, **SMALL)
pytestmark = pytest.mark.usefixtures("least_effort")


@pytest.fixture
def images(rng):
    return rng.random((8, 6, 6))


LABELS = np.repeat(["a", "b"], 4)


class Once:
    """A callback that does something at its first call, and counts its calls."""

    def __init__(self, does):
        self.does, self.calls = does, 0

    def __call__(self, progress):
        self.calls += 1
        return self.does() if self.calls == 1 else None

    def __deepcopy__(self, memo):
        return self


def interrupt():
    raise KeyboardInterrupt


def lost_interrupt():
    """Ctrl-C whose exception is lost, as in a destructor or a callback of compiled code."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return


class TestPats:
    def test_ctrl_c_ends_the_race_of_starts(self, images):
        callback = Once(interrupt)
        with pytest.warns(UserWarning, match="interrupted after 1 atoms"):
            model = clone(PATS).set_params(callback=callback).fit(images)
        assert model.stop_reason_ == "interrupted"
        assert callback.calls == 1
        assert model.transform(images).shape == (8, 2)

    def test_lost_ctrl_c_is_heard_at_the_next_atom(self, images):
        callback = Once(lost_interrupt)
        with pytest.warns(UserWarning, match="interrupted"):
            model = clone(PATS).set_params(callback=callback).fit(images)
        assert model.stop_reason_ == "interrupted"
        assert callback.calls == 1

    def test_one_true_ends_the_race_of_starts(self, images):
        callback = Once(lambda: True)
        model = clone(PATS).set_params(callback=callback).fit(images)
        assert model.stop_reason_ == "the callback asked to stop"
        assert callback.calls == model.pattern_.n_atoms == 1

    def test_ctrl_c_in_a_reference_is_raised(self, images, monkeypatch):
        def learn(*args, **options):
            return Learned(None, [], "interrupted")

        monkeypatch.setattr(references, "learn", learn)
        model = clone(PATS)
        with pytest.raises(KeyboardInterrupt):
            model.fit(images)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)

    def test_second_start_interrupted_before_its_first_atom(self, images, monkeypatch):
        whole = start.learn

        def learn(*args, **options):
            if "start 2 of 2" in args:
                raise KeyboardInterrupt
            return whole(*args, **options)

        monkeypatch.setattr(start, "learn", learn)
        with pytest.warns(UserWarning, match="interrupted after 3 atoms"):
            assert clone(PATS).fit(images).stop_reason_ == "interrupted"

    def test_failed_refit_leaves_the_old_model(self, images):
        model = clone(PATS).set_params(n_atoms=1).fit(images)
        before = dict(vars(model))
        with pytest.raises(ValueError, match="blank"):
            model.fit(np.zeros((5, 4, 4)))
        assert vars(model) == before


class TestSeveralClasses:
    @pytest.mark.filterwarnings("ignore:Learning was interrupted")
    @pytest.mark.parametrize("make", [JPATS, pf.AlignedViews(PATS)], ids=["jpats", "views"])
    def test_ctrl_c_in_the_first_class_is_raised(self, make, images):
        model = with_callback(make, Once(interrupt))
        with pytest.raises(KeyboardInterrupt):
            model.fit(images, LABELS)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)

    def test_one_true_leaves_an_atom_to_the_other_classes(self, images):
        callback = Once(lambda: True)
        model = with_callback(JPATS, callback).fit(images, LABELS)
        assert model.stop_reason_ == "the callback asked to stop"
        assert [p.n_atoms for p in model.patterns_] == [1, 1]
        views = with_callback(pf.AlignedViews(PATS), Once(lambda: True)).fit(images, LABELS)
        assert views.stop_reason_ == model.stop_reason_
        assert [p.n_atoms for p in views.patterns_] == [1, 1]
        assert callback.calls == 1

    def test_ctrl_c_in_the_last_class_keeps_the_classifier(self, images):
        class Late(Once):
            def __call__(self, progress):
                self.calls += progress.stage == "start 1 of 2"
                if self.calls == 2:
                    self.calls += 1
                    signal.raise_signal(signal.SIGINT)  # noted, too, for all that would follow

        learner = clone(PATS).set_params(n_atoms=1, callback=Late(None))
        with pytest.warns(UserWarning, match="interrupted"):
            model = pf.AlignedViewsClassifier(manifold_learner=learner).fit(images, LABELS)
        assert model.stop_reason_ == "interrupted"
        assert model.predict(images).shape == (8,)


MIXTURE = pf.PatternMixture(
    2, n_parts=2, n_atoms=1, transformation="translation", flexible=False, max_iter=2
)
ALL = {
    "jpats": pf.JPATS(1, n_tuning=0, n_joint=0, **SMALL),
    "views": pf.AlignedViews(clone(PATS).set_params(n_atoms=1)),
    "classifier": pf.AlignedViewsClassifier(manifold_learner=clone(PATS).set_params(n_atoms=1)),
    "mixture": MIXTURE,
}


class TestAll:
    """What holds of `PATS` holds of all."""

    @pytest.mark.parametrize("name", ALL)
    def test_failed_refit_leaves_the_old_model(self, name, images):
        model = clone(ALL[name]).fit(images, LABELS)
        before = dict(vars(model))
        wrong = np.zeros((8, 4, 4)) if name != "mixture" else np.full((8, 4, 4), 1e308)
        with pytest.raises(ValueError, match=r"blank|too large"):
            model.fit(wrong, LABELS)
        assert vars(model) == before
        assert "classifier_" not in before or model.predict(images).shape == (8,)

    @pytest.mark.parametrize("name", ALL)
    def test_early_ctrl_c_leaves_the_old_model(self, name, images, monkeypatch):
        model = clone(ALL[name])
        before = dict(vars(model))
        interrupt_early(model, images, monkeypatch)
        assert vars(model) == before
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        before = dict(vars(model.fit(images, LABELS)))
        interrupt_early(model, images[:, :5, :4], monkeypatch)
        assert vars(model) == before


def interrupt_early(model, images, monkeypatch):
    """Press Ctrl-C as images are put on the devices: the first attributes are set by then."""
    with monkeypatch.context() as patch:
        for method in ("put", "of"):
            patch.setattr(Observations, method, lambda *_, **__: interrupt())
        with pytest.raises(KeyboardInterrupt):
            model.fit(images, LABELS)


class TestMixture:
    def test_ctrl_c_is_raised_although_its_exception_is_lost(self, images):
        callback = Once(lost_interrupt)
        model = clone(MIXTURE).set_params(callback=callback)
        with pytest.raises(KeyboardInterrupt):
            model.fit(images)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)

    def test_one_true_ends_all_times_that_parts_are_learned(self, images):
        callback = Once(lambda: True)
        model = clone(MIXTURE).set_params(callback=callback, n_init=3, max_iter=4).fit(images)
        assert model.stop_reason_ == "the callback asked to stop"
        assert model.n_iter_ == 1
        assert model.predict(images).shape == (8,)


def with_callback(model, callback):
    model = clone(model)
    name = "manifold_learner__callback" if isinstance(model, pf.AlignedViews) else "callback"
    return model.set_params(**{name: callback})


class TestListening:
    def test_signal_is_noted_for_the_outer_block_too(self):
        before = signal.getsignal(signal.SIGINT)
        with listening() as outer:
            with listening():
                lost_interrupt()
            assert outer.asked
            with pytest.raises(KeyboardInterrupt):
                check_interrupts()
        check_interrupts()
        assert signal.getsignal(signal.SIGINT) is before

    def test_held_to_the_end_of_a_block(self):
        done = []

        def whole(interrupts):
            with interrupts.held():
                signal.raise_signal(signal.SIGINT)
                done.append("whole")

        with listening() as interrupts, pytest.raises(KeyboardInterrupt):
            whole(interrupts)
        assert done == ["whole"]

    def test_other_threads_hear_nothing(self):
        heard = []

        def beside():
            with listening() as interrupts:
                check_interrupts()
                heard.append(interrupts.asked)

        with listening():
            lost_interrupt()
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join()
        assert heard == [False]

    def test_interrupted_step_is_no_result(self):
        with pytest.raises(KeyboardInterrupt):
            timed(lambda: {"value": lost_interrupt()})


def test_compiling_beside_is_waited_for_at_the_end_of_the_program():
    # A daemon would be cut off, or crash while Python is taken down around it.
    program = """
import os, signal, threading, time
from patternfold.numerics.compilation import warm_up
def work():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(0.8)
    print("compiled")
with warm_up(work, "float32"):
    pass  # waits for the work, and is interrupted there
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "compiled\n"
    assert "KeyboardInterrupt" in ended.stderr


def test_block_that_has_heard_ctrl_c_does_not_wait():
    go_on = threading.Event()
    with listening(), pytest.raises(KeyboardInterrupt), warm_up(go_on.wait, "float32"):
        lost_interrupt()  # as a run that ends with what there is
    go_on.set()


def test_failing_block_does_not_wait():
    go_on = threading.Event()
    with pytest.raises(KeyboardInterrupt), warm_up(go_on.wait, "float32"):
        raise KeyboardInterrupt
    go_on.set()


def test_lost_ctrl_c_in_a_command_is_told(monkeypatch, capsys):
    def run(options, console):
        lost_interrupt()
        return 0

    monkeypatch.setattr("patternfold.cli.commands.info.run", run)
    assert main(["info"]) == 1
    assert "Interrupted" in capsys.readouterr().err


def test_ctrl_c_while_jax_is_imported_waits_for_it():
    # Its compiled parts crash where Python raises an exception while they start.
    program = """
import os, signal, sys
from patternfold.cli import main
class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == "jax._src.lib":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
print(main(["info", "no.ptm"]), hasattr(sys.modules.get("jax"), "jit"))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == "1 True\n"
    assert "Interrupted" in ended.stderr
