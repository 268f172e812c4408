"""Compiled functions: one compilation each, GIL released, no cache folder needed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings

import numba
import numpy as np
import pytest

from likely import Gaussian
from likely.cli.main import main
from likely.distributions.gaussian._loops import missing_values
from likely.numerics.compile import COLLECTIONS, DEFERRED, Announcer, FewerCollections, is_interactive

jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off")
LOOPS = [missing_values.by_precision, missing_values.by_covariance, missing_values.fill, missing_values._factor]


def use_every_way():
    """Gaps as the library meets them: one value and stacks, few columns and many, weights or none, read-only rows."""
    rng = np.random.default_rng(0)
    for K in (None, 2, 6):
        for d in (2, 5):
            a = rng.standard_normal((K or 1, d, d + 1))
            S = a @ np.swapaxes(a, 1, 2)
            g = Gaussian(rng.standard_normal((K, d)) if K else rng.standard_normal(d), S if K else S[0])
            tied = Gaussian(rng.standard_normal((5, d)), S[0])
            x = rng.standard_normal((40, d))
            x[rng.random(x.shape) < 0.4] = np.nan
            for rows in (x, np.asfortranarray(x), x.astype(np.float32), x[::2]):
                rows.setflags(write=False)
                for distribution in (g, tied):
                    distribution.log_prob(rows)
                    distribution.collect(rows)
                    distribution.collect(rows, rng.random(len(rows)))
                    if distribution.members:
                        distribution.collect(rows, rng.random((len(rows), distribution.members)))
                        distribution.collect(rows, labels=rng.integers(0, distribution.members, len(rows)))
            fitted = Gaussian.fit(x)
            fitted.log_prob(x)


@pytest.mark.slow
@jit
def test_each_loop_compiles_once():
    use_every_way()
    *loops, helper = LOOPS
    assert {f.__name__: len(f.dispatcher.signatures) for f in loops} == {f.__name__: 1 for f in loops}
    assert len(helper.dispatcher.signatures) <= 1  # none, where the loops around it came from the cache


@jit
def test_options_of_the_one_decorator():
    for f in LOOPS:
        assert f.dispatcher.targetoptions.get("nogil") and f.dispatcher.targetoptions.get("error_model") == "numpy"
        assert not f.dispatcher.targetoptions.get("fastmath") and not f.dispatcher.targetoptions.get("parallel")


@pytest.mark.slow
def test_loops_work_where_no_cache_can_be_written(tmp_path):
    """A read-only package folder without a home: compiled anew, with one line in the log, and right."""
    code = (
        "import logging; logging.basicConfig(level='INFO')\n"
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []\n"  # what numba finds where nothing is writable
        "from likely.speech import word_errors\n"  # whose loops are the quickest to compile
        "print(word_errors('a b', 'a c d').rate)\n"
    )
    env = {**os.environ, "HOME": str(tmp_path / "none"), "NUMBA_DISABLE_JIT": "0"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) == 1.0  # one word is wrong, one is too many, of two
    assert "no writable cache" in ran.stderr and "compiling metrics.edit_rows, once" in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", ["numba.version_info[:2]", "None"])
def test_helpers_are_compiled_with_any_version_of_numba(tmp_path, version):
    """Only inside of their loops with the version of Numba that this was tested with, by themselves with others."""
    code = (
        "import numba, likely as lk\n"
        "from likely.alignment import _loops\n"
        "from likely.numerics import compile\n"
        f"tested, compile.DEFERRED = compile.DEFERRED, {version}\n"
        "if compile.DEFERRED == tested or compile.DEFERRED is None:\n"
        "    print(lk.dtw([0.0, 1.0, 3.0], [0.0, 2.0], metric='cityblock').distance)\n"
        "    library = type(_loops._cost_row.dispatcher.overloads.popitem()[1].library).__name__\n"
        "    assert (library == 'HelperLibrary') == (compile.DEFERRED == tested), library\n"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout in ("2.0\n", "")  # nothing with a version that was not tested


class Seconds(Announcer):
    """One that speaks into a list."""

    def __init__(self, patience):
        super().__init__(patience)
        self.said = []

    def tell(self, module):
        self.said.append(module)
        super().tell(module)


def test_who_waits_is_reported_once_per_subject_what_is_compiled(monkeypatch, capsys, caplog):
    monkeypatch.setattr("likely.numerics.compile.is_interactive", lambda: True)
    announcer = Seconds(patience=0.0)
    with caplog.at_level("INFO", logger="likely"):
        for function in ("filter_pass", "smooth_pass"):
            announcer.start("kalman", function)
            announcer.start("kalman", "_turn")  # a helper, while the loop is compiled
            if announcer.timer is not None:
                announcer.timer.join()
            announcer.end()
            announcer.end()
    assert announcer.said == ["kalman"] and announcer.depth == 0
    assert "compiling the loops of kalman, once: the machine code is kept" in capsys.readouterr().err
    assert [r.message.split(",")[0] for r in caplog.records] == [
        "compiling kalman.filter_pass", "compiling kalman.smooth_pass",
    ]  # fmt: skip


def test_short_compilations_and_scripts_are_only_logged(monkeypatch, capsys):
    for waits, patience in ((True, 60.0), (False, 0.0)):
        monkeypatch.setattr("likely.numerics.compile.is_interactive", lambda waits=waits: waits)
        announcer = Seconds(patience)
        announcer.start("kalman", "filter_pass")
        announcer.end()
        assert announcer.said == [] and capsys.readouterr().err == ""


@pytest.mark.campaign  # it compiles for seconds; its parts are tested above and below
def test_a_command_says_on_stderr_what_it_compiles(tmp_path):
    """Also where stderr is a file: whoever reads it learns why the first call took seconds."""
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-m", "likely", "align", "a.csv", "a.csv"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300) for _ in range(2)
    )
    assert first.returncode == 0 and first.stdout == second.stdout
    assert "likely: compiling the loops of alignment, once: the machine code is kept" in first.stderr
    assert "compiling" not in second.stderr


def test_a_quiet_command_says_nothing_of_it(monkeypatch):
    monkeypatch.setattr("likely.numerics.compile.ANNOUNCES", None)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which `main` replaces
    for arguments, speaks in ((["--version"], True), (["fit", "--quiet", "none.csv"], False)):
        with pytest.raises(SystemExit):
            main(arguments)
        assert is_interactive() is speaks


def test_the_garbage_collector_is_as_before_after_a_compilation():
    usual, collections = gc.get_threshold(), FewerCollections()
    collections.start()
    collections.start()  # a helper
    assert gc.get_threshold() == COLLECTIONS
    collections.end()
    assert gc.get_threshold() == COLLECTIONS
    collections.end()
    assert gc.get_threshold() == usual
    gc.set_threshold(0)  # switched off: stays so
    try:
        collections.start()
        assert gc.get_threshold()[0] == 0
        collections.end()
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)


@jit
@pytest.mark.slow
@pytest.mark.skipif(numba.version_info[:2] != DEFERRED, reason="with the tested version of Numba alone")
def test_rare_loops_are_optimized_for_size_with_their_helpers(tmp_path):
    code = """
import numpy as np
from likely.language._loops import advance
from likely.metrics._loops import edit_trace
print(edit_trace.is_rare, advance.is_rare)
loop = edit_trace.dispatcher
loop(np.zeros((2, 2), np.int8), 1, np.zeros(4, np.int8), 4)
print("optsize" in next(iter(loop.inspect_llvm().values())))
"""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False", "True"], done.stderr
