"""A stated rate of false alarms is the rate that new rows raise, with gaps and without."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.estimators.novelty import alarm

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")


def draw(rng, n, d=5):
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + 2.0 * y[:, None] * np.eye(3, d)[y], y


@pytest.mark.parametrize("n", [60, 400, 30_000])
@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_false_alarms_come_at_the_stated_rate(n, rate):
    rates = []
    for seed in range(8 if n < 1000 else 2):
        rng = np.random.default_rng([seed, n])
        clf = lk.BayesClassifier().fit(*draw(rng, n))
        rates.append(np.mean(clf.decide(draw(rng, 4000)[0], novelty=rate) == lk.NOVEL))
    assert np.mean(rates) == pytest.approx(rate, abs=0.3 * rate + (0.01 if n < 100 else 0.004))


@pytest.mark.parametrize("n", [19, 20, 60, 100, 1000])
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_the_alarm_is_exact_for_exchangeable_scores(n, rate):
    """Over many draws of n + 1 scores the last exceeds the alarm at the rate ⌊rate (n + 1)⌋ / (n + 1)."""
    rng = np.random.default_rng(n)
    scores = rng.normal(size=(4000, n + 1))
    kept = [np.stack([row[:-1], np.ones(n)]) for row in scores]
    found = np.mean([row[-1] > alarm(k, rate, "test") for row, k in zip(scores, kept, strict=True)])
    exact = np.floor(rate * (n + 1) + 1e-9) / (n + 1)
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000))


@pytest.mark.parametrize(("n", "d", "classes"), [(60, 10, 2), (60, 10, 10), (30, 3, 2), (150, 8, 3)])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_few_rows_and_many_columns_raise_no_more_alarms_than_stated(n, d, classes, gaps):
    rates = []
    for seed in range(6):
        rng = np.random.default_rng([seed, n, d])

        def rows(m, rng=rng):
            X = rng.normal(size=(m, d))
            X[rng.random(X.shape) < gaps] = np.nan
            return X

        clf = lk.BayesClassifier().fit(rows(n), np.arange(n) % classes)
        rates.append(np.mean(clf.decide(rows(1000), novelty=0.1) == lk.NOVEL))
    assert np.mean(rates) < 0.15


def test_heavy_tails_do_not_break_the_rate():
    """The model is wrong (t noise, Gaussian fitted): the rate holds, for it is set by rows and not by the model."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(3, size=(3000, 4)), rng.integers(0, 2, 3000)
    clf = lk.BayesClassifier().fit(X, y)
    share = np.mean(clf.decide(rng.standard_t(3, size=(6000, 4)), novelty=0.02) == lk.NOVEL)
    assert 0.01 < share < 0.03


def test_rows_with_gaps_are_judged_by_what_was_seen():
    rng = np.random.default_rng(1)
    X, y = draw(rng, 2000)
    clf = lk.BayesClassifier().fit(X, y)
    new = draw(rng, 3000)[0]
    new[rng.random(new.shape) < 0.3] = np.nan
    assert np.mean(clf.decide(new, novelty=0.05) == lk.NOVEL) == pytest.approx(0.05, abs=0.02)
    odd = np.full((1, 5), np.nan)
    odd[0, 3] = 40.0
    assert clf.decide(odd, novelty=0.01)[0] is lk.NOVEL
    assert clf.decide(np.full((1, 5), np.nan), novelty=0.01)[0] is not lk.NOVEL


def test_streams_set_alarms_by_rows_not_yet_seen():
    rng = np.random.default_rng(2)
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled"))
    for _ in range(6):
        clf.partial_fit(*draw(rng, 300), classes=[0, 1, 2])
    assert np.mean(clf.decide(draw(rng, 5000)[0], novelty=0.05) == lk.NOVEL) == pytest.approx(0.05, abs=0.02)
    assert clf.calm_.shape[1] == 1200  # of the later half: a young model knew too little


@pytest.mark.parametrize("sizes", [[10_000, *[10] * 300], [6] * 60, [5000] * 3])
def test_chunks_of_any_size_keep_the_rate(sizes):
    rng = np.random.default_rng(5)
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled"))
    for n in sizes:
        clf.partial_fit(*draw(rng, n), classes=[0, 1, 2])
    share = np.mean(clf.decide(draw(rng, 5000)[0], novelty=0.05) == lk.NOVEL)
    assert share == pytest.approx(0.05, abs=0.025 if sum(sizes) > 1000 else 0.045)


def test_far_rows_are_found_and_reasons_given():
    rng = np.random.default_rng(3)
    clf = lk.BayesClassifier(novelty=0.01).fit(*draw(rng, 500))
    decided = clf.decide([[30.0] * 5, [0.0] * 5], full=True)
    assert decided.choice[0] is lk.NOVEL and decided.choice[1] in (0, 1, 2)
    assert "1 % of training rows" in decided.reasons[0]
    assert (clf.predict([[30.0] * 5]) < 3).all()  # predict never refuses


def test_a_rate_finer_than_the_rows_is_said():
    clf = lk.BayesClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    with pytest.warns(lk.FitWarning, match="finer than 4 rows"):
        clf.decide([[1.0]], novelty=0.001)
    with pytest.raises(lk.DomainError, match="rate"):
        clf.decide([[1.0]], novelty=1.5)
