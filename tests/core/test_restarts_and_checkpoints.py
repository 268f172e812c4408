"""Runs that begin several times, are cut off, or are stopped on purpose: what comes out is what should have."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import likely as lk
from likely import Gaussian, Mixture, StoppingRule, fit
from likely.core import Blocks, Serial
from likely.core.em_loop import INTERRUPTED, PATIENCE, best_of, iterate, mean_log_prob
from likely.core.fit_report import FitReport
from likely.io.checkpoint import Checkpoint
from tests.properties.compare import bits

RNG = np.random.default_rng(1)
X = np.concatenate([RNG.normal(m, s, (80, 2)) for m, s in ((-3.0, 1.0), (0.0, 0.5), (4.0, 1.5))])
ASIDE = np.concatenate([RNG.normal(m, s, (40, 2)) for m, s in ((-3.0, 1.0), (0.0, 0.5), (4.0, 1.5))])


def start(K=3, seed=2):
    rng = np.random.default_rng(seed)
    return Mixture(np.full(K, 1 / K), Gaussian(rng.normal(0.0, 2.0, (K, 2)), np.stack([4 * np.eye(2)] * K)))


def gappy():
    x = X.copy()
    x[np.random.default_rng(3).random(x.shape) < 0.2] = np.nan
    return x


# ------------------------------------------------------------------- several starts


@pytest.mark.slow
def test_the_best_of_several_runs_wins_and_all_are_reported():
    starts = [start(seed=s) for s in range(5)]
    each = [fit(s, X, stop=StoppingRule(200, 1e-8)) for s in starts]
    best = best_of(starts, lambda i, s: fit(s, X, stop=StoppingRule(200, 1e-8)), lambda models, b: 0.5)
    reached = [r.objective for r in each]
    assert best.objective == max(reached) and [run.objective for run in best.runs] == reached
    assert bits(best.model) == bits(each[int(np.argmax(reached))].model) and best.agreement == 0.5
    assert best.spread == pytest.approx((max(reached) - min(reached)) / len(X))
    assert [run.iterations for run in best.runs] == [r.iterations for r in each]
    assert f"starts               {len(starts)}," in str(best) and "partitions agree to 0.50" in str(best)


def test_an_interrupt_ends_all_runs():
    reports = [fit(start(), X, stop=StoppingRule(2, 0.0)), fit(start(), X, stop=StoppingRule(2, 0.0))]

    def learn(i, s):
        return reports[0] if i == 0 else FitReport(s, reports[1].stats, None, False, INTERRUPTED, [-1e9])

    best = best_of((start() for _ in range(9)), learn)
    assert len(best.runs) == 2 and best.reason == reports[0].reason


def test_restarts_of_the_estimator_agree_where_clusters_are_plain():
    m = lk.MixtureDensity(n_components=3, n_init=4, random_state=0, tol=1e-9, max_iter=500).fit(X)
    assert len(m.report_.runs) == 4 and m.report_.objective == max(run.objective for run in m.report_.runs)
    one = lk.MixtureDensity(n_components=3, random_state=0, tol=1e-9, max_iter=500).fit(X)
    assert m.report_.objective >= one.report_.objective and m.report_.runs[0].objective == one.report_.objective
    assert 0.0 <= m.report_.agreement <= 1.0 and "starts" in str(m.report_)


# ------------------------------------------------------------------------- stopping


def test_running_out_of_passes_is_not_converged_and_warns():
    report = fit(start(), X, stop=StoppingRule(3, 0.0))
    assert not report.converged and report.iterations == 3 and "still moving" in report.reason
    assert "NOT converged" in str(report)
    with pytest.raises(lk.NotConverged, match="3 refits"):
        report.require_converged()
    with pytest.warns(lk.FitWarning, match=r"MixtureDensity: not converged: 2 refits made"):
        m = lk.MixtureDensity(n_components=3, max_iter=2, tol=0.0, random_state=0).fit(X)
    assert not m.report_.converged and m.n_iter_ == 2


def test_the_model_that_is_returned_is_the_one_that_is_reported():
    for stop in (StoppingRule(3, 0.0), StoppingRule(100, 1e-5)):
        report = fit(start(), X, stop=stop)
        assert report.objective == pytest.approx(float(report.model.log_prob(X).sum()), rel=1e-11)
        np.testing.assert_allclose(report.stats.counts, report.model.collect(X).counts, rtol=1e-12)


class Interrupting(Serial):
    """An engine in which somebody presses Ctrl-C during a pass."""

    def __init__(self, at):
        self.passes, self.at = 0, at

    def total(self, collect, blocks):
        self.passes += 1
        if self.passes == self.at:
            raise KeyboardInterrupt
        return super().total(collect, blocks)


@pytest.mark.parametrize("at", [2, 3, 10])
def test_ctrl_c_returns_the_best_so_far(at):
    report = fit(start(), X, engine=Interrupting(at), stop=StoppingRule(100, 0.0))
    plain = fit(start(), X, engine=Serial(), stop=StoppingRule(at - 2, 0.0)) if at > 2 else None
    assert not report.converged and report.reason == INTERRUPTED and len(report.trace) == at - 1
    if plain is not None:
        assert report.trace == plain.trace and bits(report.model) == bits(plain.model)


def test_ctrl_c_before_anything_was_learned_is_raised():
    with pytest.raises(KeyboardInterrupt):
        fit(start(), X, engine=Interrupting(1))


def test_ctrl_c_in_a_collect_of_the_estimator(monkeypatch):
    looks = []
    collect = Mixture.collect

    def interrupted(self, *a, **k):
        looks.append(1)
        if len(looks) == 4:
            raise KeyboardInterrupt
        return collect(self, *a, **k)

    monkeypatch.setattr(Mixture, "collect", interrupted)
    with pytest.warns(lk.FitWarning, match="not converged: interrupted"):
        m = lk.MixtureDensity(n_components=3, tol=0.0, n_init=5, random_state=0).fit(X)
    assert m.report_.reason == INTERRUPTED and len(m.report_.trace) == 3 and len(m.report_.runs) == 1
    monkeypatch.undo()
    assert np.isfinite(m.score_samples(X)).all()


def test_early_stopping_returns_the_model_that_explains_other_rows_best():
    few, many = X[::6], 12  # more parts than such few rows can tell apart
    first = start(many)
    report = fit(first, few, prior="weak", held_out=ASIDE, stop=StoppingRule(500, 0.0))
    steps, seen = iterate(first, few, prior="weak"), []
    models = []
    for _ in range(len(report.held_out)):
        models.append(next(steps).model)
        seen.append(mean_log_prob(models[-1], ASIDE))
    np.testing.assert_allclose(report.held_out, seen, rtol=1e-12)
    best = int(np.argmax(seen))
    assert report.stopped_early and not report.converged and len(seen) == best + 1 + PATIENCE
    assert bits(report.model) == bits(models[best]) and len(report.trace) == best + 1
    np.testing.assert_allclose(report.stats.counts, models[best].collect(few).counts, rtol=1e-12)
    assert "stopped early" in str(report)


@pytest.mark.slow
def test_early_stopping_of_the_estimator_sets_whole_rows_aside():
    copies = np.repeat(X[::4], 3, axis=0)
    m = lk.MixtureDensity(n_components=10, early_stopping=0.3, random_state=0, tol=0.0, max_iter=300)
    a, b = m.fit(copies).report_, m.fit(X[::4], sample_weight=np.full(60, 3.0)).report_
    both = min(len(a.held_out), len(b.held_out))  # where rows excluded gain no more, rounding decides when to stop
    np.testing.assert_allclose(a.held_out[:both], b.held_out[:both], rtol=1e-8)
    assert max(a.held_out) == pytest.approx(max(b.held_out), rel=1e-6)
    copies_of_three = a.stats.total_weight / 3
    assert a.stats.total_weight < 180 and copies_of_three == pytest.approx(round(copies_of_three), abs=1e-6)
    with pytest.raises(lk.DataError, match="early_stopping must leave rows on both sides"):
        m.fit(np.ones((5, 2)))


# ---------------------------------------------------------------------- checkpoints


class CutOff(Exception):
    pass


class Cut:
    """A keeper whose process dies right after it has saved so many times."""

    def __init__(self, path, after):
        self.inside, self.left = Checkpoint(path), after

    def load(self, kind):
        return self.inside.load(kind)

    def save(self, progress, at_once=False):
        self.inside.save(progress, at_once)
        self.left -= 1
        if not self.left:
            raise CutOff


HOW = {
    "plain": {},
    "weak": {"prior": "weak"},
    "hard": {"hard": True, "prior": "weak"},
    "early": {"prior": "weak", "held_out": ASIDE},
}


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("how", HOW)
def test_cut_off_anywhere_it_goes_on_to_the_same_bits(tmp_path, how, gaps):
    x, more = gappy() if gaps else X, {**HOW[how], "stop": StoppingRule(8, 1e-7)}
    whole = fit(start(), x, **more)
    looks = 12 if gaps and "prior" in more else 0  # passes in which the prior does not stand yet are kept, too
    for after in range(1, len(whole.trace) + looks + 1):
        path = tmp_path / f"{after}.likely"
        try:
            fit(start(), x, checkpoint=Cut(path, after), **more)
        except CutOff:
            pass
        again = fit(start(), x, checkpoint=Checkpoint(path), **more)
        assert bits(again.model) == bits(whole.model) and again.trace == whole.trace
        assert again.held_out == whole.held_out
        assert (again.reason, again.converged, again.stopped_early) == (
            whole.reason,
            whole.converged,
            whole.stopped_early,
        )
        assert bits(again.stats) == bits(whole.stats)


@pytest.mark.slow
def test_cut_off_again_and_again(tmp_path):
    whole = fit(start(), X, stop=StoppingRule(25, 0.0))
    path = tmp_path / "em.likely"
    for _ in range(200):
        try:
            report = fit(start(), X, stop=StoppingRule(25, 0.0), checkpoint=Cut(path, 2))
            break
        except CutOff:
            continue
    assert bits(report.model) == bits(whole.model) and report.trace == whole.trace


def test_every_other_pass_is_enough(tmp_path):
    whole = fit(start(), X, stop=StoppingRule(25, 0.0))
    path = tmp_path / "em.likely"
    with pytest.raises(CutOff):
        keeper = Cut(path, 8)
        keeper.inside.every = 3
        fit(start(), X, stop=StoppingRule(25, 0.0), checkpoint=keeper)
    assert len(lk.load(path).trace) == 6
    again = fit(start(), X, stop=StoppingRule(25, 0.0), checkpoint=Checkpoint(path))
    assert bits(again.model) == bits(whole.model) and again.trace == whole.trace


def test_a_finished_fit_is_found_again_without_learning(tmp_path):
    path = tmp_path / "em.likely"
    done = fit(start(), X, checkpoint=Checkpoint(path), stop=StoppingRule(200, 1e-8))
    engine = Interrupting(99)
    again = fit(start(), X, engine=engine, checkpoint=Checkpoint(path), stop=StoppingRule(200, 1e-8))
    assert engine.passes == 1 and bits(again.model) == bits(done.model) and again.trace == done.trace


@pytest.mark.parametrize("other", [X + 0.01, X[:-1], X[::-1] * 1.001])
def test_other_data_are_refused(tmp_path, other):
    path = tmp_path / "em.likely"
    with pytest.raises(CutOff):
        fit(start(), X, checkpoint=Cut(path, 3))
    with pytest.raises(lk.DataError, match=r"checkpoint: the same data must give the same objective.*delete the file"):
        fit(start(), other, checkpoint=Checkpoint(path))


def test_the_end_is_kept_whatever_the_pass(tmp_path):
    path = tmp_path / "em.likely"
    done = fit(start(), X, checkpoint=Checkpoint(path, every=1000))
    kept = Checkpoint(path).load()
    assert done.converged and kept.converged and kept.reason == done.reason and kept.objectives == done.trace
    assert bits(kept.model) == bits(done.model)


def test_another_model_is_refused(tmp_path):
    path = tmp_path / "em.likely"
    with pytest.raises(CutOff):
        fit(start(), X, checkpoint=Cut(path, 3))
    for other in (
        start(4),
        Mixture(start().weights, start().components.replace(covariance=np.ones((3, 2)), kind="diagonal")),
    ):
        with pytest.raises(lk.DataError, match=r"checkpoint: the model must be like .* parameters .*delete the file"):
            fit(other, X, checkpoint=Checkpoint(path))
    done = tmp_path / "done.likely"
    lk.MixtureDensity(n_components=3, random_state=0).fit(X, checkpoint=done)
    with pytest.raises(lk.DataError, match="checkpoint: the model must be like"):
        lk.MixtureDensity(n_components=4, random_state=0).fit(X, checkpoint=done)


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "g.likely"
    lk.save(Gaussian([0.0], 1.0), path)
    with pytest.raises(lk.ModelFileError, match="must be a checkpoint, got Gaussian"):
        fit(start(), X, checkpoint=Checkpoint(path))
    path.write_bytes(b"half a file")
    with pytest.raises(lk.ModelFileError):
        fit(start(), X, checkpoint=Checkpoint(path))


@pytest.mark.slow
def test_several_starts_keep_a_file_each(tmp_path):
    m = lk.MixtureDensity(n_components=4, n_init=3, random_state=0)
    plain = lk.MixtureDensity(n_components=4, n_init=3, random_state=0).fit(X)
    m.fit(X, checkpoint=str(tmp_path / "em"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["em.0", "em.1", "em.2"]
    (tmp_path / "em.1").unlink()
    again = lk.MixtureDensity(n_components=4, n_init=3, random_state=0).fit(X, checkpoint=str(tmp_path / "em"))
    for fitted in (m, again):
        assert bits(fitted.model_) == bits(plain.model_)
        assert fitted.report_.runs == plain.report_.runs


# -------------------------------------------------------------------------- kill -9

NURSERY = """
import hashlib, os, signal, sys, time
import numpy as np
import likely as lk
from likely.core.engine import Serial
from likely.core.em_loop import StoppingRule, fit
from likely.io.checkpoint import Checkpoint
from likely.io.model_files import dumps

rng = np.random.default_rng(5)
X = np.concatenate([rng.normal(m, 1.0, (1500, 3)) for m in (-2.0, 0.0, 2.0)])
X[rng.random(X.shape) < 0.05] = np.nan
start = lk.Mixture(np.full(5, 0.2), lk.Gaussian(rng.normal(0.0, 2.0, (5, 3)), np.stack([np.eye(3) * 3] * 5)))

def learn(path):
    keeper = Checkpoint(path) if path else None
    report = fit(start, X, prior="weak", engine=Serial(), stop=StoppingRule(30, 0.0), checkpoint=keeper)
    return hashlib.sha256(dumps(report.model) + repr(report.trace).encode()).hexdigest()

print(learn(None), flush=True)
for line in sys.stdin:  # a child a line: it fits and says what came out, or is killed after so many seconds
    path, result, patience = line.split()
    child = os.fork()
    if not child:
        with open(result, "w") as out:
            out.write(learn(path))
        os._exit(0)
    if float(patience) >= 0:
        time.sleep(float(patience))
        os.kill(child, signal.SIGKILL)  # nobody else's: a child keeps its number until it is waited for
    print(os.waitpid(child, 0)[1], flush=True)
"""


def survives(folder, kills):
    """Kill a fit at random moments until it was killed so often; each one that ends must end in the same bits."""
    rng, killed, done, took, midway = random.Random(kills), 0, 0, 0.5, 0
    nursery = subprocess.Popen(
        [sys.executable, "-c", NURSERY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        want = nursery.stdout.readline().strip()
        assert len(want) == 64, nursery.stderr.read()
        path, result = folder / "em.likely", folder / "result"
        while killed < kills or not done:
            result.unlink(missing_ok=True)
            begun = time.monotonic()
            print(path, result, rng.random() * 0.6 * took if killed < kills else -1, file=nursery.stdin, flush=True)
            status = int(nursery.stdout.readline())
            if status == signal.SIGKILL:
                killed += 1
                midway += path.exists() and not lk.load(path).reason  # what is there can be read, always
                continue
            assert status == 0, f"resuming failed after {killed} kills"
            assert result.read_text() == want
            done, took = done + 1, max(time.monotonic() - begun, 0.1)
            path.unlink()
    finally:
        nursery.stdin.close()
        nursery.wait(60)
        nursery.stdout.close()
        nursery.stderr.close()
    print(f"{killed} kills, {midway} of them midway, {done} fits that ended, all in the same bits")
    assert midway > kills / 2  # else the kills came at the wrong moments and prove nothing


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
def test_twenty_kills_resume_to_the_same_bits(tmp_path):
    survives(tmp_path, 20)


@pytest.mark.campaign
@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
def test_two_hundred_kills_resume_to_the_same_bits(tmp_path):
    survives(tmp_path, 200)


def test_blocks_carry_weights_through_a_resumed_fit(tmp_path):
    w = np.random.default_rng(6).random(len(X))
    whole = fit(start(), Blocks.of(X, w, rows=50), stop=StoppingRule(10, 0.0))
    with pytest.raises(CutOff):
        fit(start(), Blocks.of(X, w, rows=50), stop=StoppingRule(10, 0.0), checkpoint=Cut(tmp_path / "a", 4))
    again = fit(start(), Blocks.of(X, w, rows=50), stop=StoppingRule(10, 0.0), checkpoint=Checkpoint(tmp_path / "a"))
    assert bits(again.model) == bits(whole.model)
    with pytest.raises(lk.DataError, match="checkpoint"):
        fit(start(), Blocks.of(X, 2 * w, rows=50), stop=StoppingRule(10, 0.0), checkpoint=Checkpoint(tmp_path / "a"))
