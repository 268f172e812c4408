"""A stated rate of false alarms is the rate that new rows raise, with gaps and without."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import likely as lk
from likely.estimation.novelty.novelty_score import alarm, novelty_score, support_in_words, supported

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")


def draw(rng, n, d=5):
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, d)) * np.linspace(0.5, 2, d) + 2.0 * y[:, None] * np.eye(3, d)[y], y


@pytest.mark.some_cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 400, 30_000])
@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_false_alarms_come_at_the_stated_rate(n, rate):
    rates = []
    for seed in range(8 if n < 1000 else 2):
        rng = np.random.default_rng([seed, n])
        clf = lk.BayesClassifier().fit(*draw(rng, n))
        rates.append(np.mean(clf.decide(draw(rng, 4000)[0], novelty=rate) == lk.NOVEL))
    assert np.mean(rates) == pytest.approx(rate, abs=0.3 * rate + (0.01 if n < 100 else 0.004))


@pytest.mark.some_cases(5)
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


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize(("n", "d", "classes"), [(60, 10, 2), (60, 10, 10), (30, 3, 2), (150, 8, 3)])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_few_rows_and_many_columns_raise_no_more_alarms_than_stated(n, d, classes, gaps):
    rates = []
    for seed in range(3):
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


def test_rows_with_missing_values_are_judged_by_what_was_seen():
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
    assert clf.held_out_novelty_.shape[1] == 1200  # of the later half: a young model knew too little


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[10_000, *[10] * 60], [6] * 60, [5000] * 3])
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
    with pytest.warns(lk.FitWarning, match="too small for 4 rows"):
        clf.decide([[1.0]], novelty=0.001)
    with pytest.raises(lk.DomainError, match="rate"):
        clf.decide([[1.0]], novelty=1.5)


def overlapping(rng, n, d=2):
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + y[:, None], y


@pytest.mark.slow
@pytest.mark.parametrize("bins", ["doane", 6, "leave-one-out"])
def test_histograms_keep_the_rate(bins):
    """Left-out rows meet the edges of the others: those of all rows would hold them, and 8 to 13 % were novel here."""
    rates = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 4])
        clf = lk.BayesClassifier(lk.HistogramDensity(bins)).fit(*overlapping(rng, 150, 4))
        rates.append(np.mean(clf.decide(overlapping(rng, 3000, 4)[0], novelty=0.08) == lk.NOVEL))
    assert 0.08 / 1.5 < np.mean(rates) < 0.08 * 1.5


def test_fold_histograms_span_the_other_rows_alone():
    X = np.arange(20.0)[:, None]
    clf = lk.BayesClassifier(lk.HistogramDensity(4)).fit(X, [0] * 20)
    assert np.isposinf(clf.held_out_novelty_[0]).sum() == 2  # the least and the largest lie beyond what the others span
    fixed = lk.BayesClassifier(lk.HistogramDensity([0.0, 10.0, 20.0])).fit(X, [0] * 20)
    assert np.isfinite(fixed.held_out_novelty_[0]).all()  # given edges are everybody's


def test_a_rate_that_rows_without_support_exceed_is_said():
    rng = np.random.default_rng(0)
    clf = lk.BayesClassifier(lk.HistogramDensity()).fit(*overlapping(rng, 60, 12))
    kept = clf.held_out_novelty_[0]
    share = 100 * np.isposinf(kept).mean()
    with pytest.warns(lk.FitWarning, match=f"0.05 cannot be met: {share:.2g} % of the training rows"):
        done = clf.decide(overlapping(rng, 4000, 12)[0], novelty=0.05)
    assert np.mean(done == lk.NOVEL) == pytest.approx(share / 100, rel=0.5)  # what is said holds


def test_levels_of_one_row_are_novel_when_it_is_left_out():
    """Names that come once: the next row has another one, and is novel. Rates below that cannot be met."""
    names = np.array([[f"name {i}"] if i % 4 == 0 else ["a"] for i in range(80)], dtype=object)
    clf = lk.BayesClassifier(lk.CategoricalDensity()).fit(names, np.arange(80) % 2)
    assert np.isposinf(clf.held_out_novelty_[0]).sum() == 20
    with pytest.warns(lk.FitWarning, match="0.1 cannot be met: 25 % of the training rows"):
        assert clf.decide([["a"], ["new"]], novelty=0.1)[1] is lk.NOVEL


def test_many_rows_in_many_columns_keep_the_rate():
    """Of more than 20,000 rows some are left out, too: in sample, 7.4 % of new rows were novel here."""
    rng, y = np.random.default_rng(0), np.arange(20_100) % 10
    apart = 12.0 * np.eye(10, 60)
    clf = lk.BayesClassifier().fit(rng.normal(size=(20_100, 60)) + apart[y], y)
    share = np.mean(clf.decide(rng.normal(size=(4000, 60)) + apart[y[:4000]], novelty=0.05) == lk.NOVEL)
    assert share == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize(
    "density", [lk.KernelDensity(kernel="epanechnikov"), lk.HistogramDensity(), lk.UniformDensity()],
)  # fmt: skip
def test_rows_that_no_class_has_a_density_for_are_novel_at_any_rate(density):
    rng = np.random.default_rng(0)
    X, y = overlapping(rng, 60, 6)
    for clf in (lk.BayesClassifier(density).fit(X, y), lk.CalibratedClassifier(lk.BayesClassifier(density)).fit(X, y)):
        for rate in (1e-3, 0.05, 0.3):
            done = clf.decide([[90.0] * 6, [0.5] * 6], novelty=rate, full=True)
            assert done.choice[0] is lk.NOVEL
            assert "no class has a density" in done.reasons[0]


def test_a_distribution_that_cannot_hold_marks_what_it_excludes(recwarn):
    """Cells of a histogram without a row have p = 0 under every class: rows left out fall into such, too."""
    rng = np.random.default_rng(0)
    rows = rng.gamma(2.0, 3.0, 200)[:, None]
    clf = lk.BayesClassifier(lk.HistogramDensity(60, pseudo_count=0.0)).fit(rows, np.arange(200) % 2)
    recwarn.clear()
    done = clf.decide([[99.0], [5.0]], novelty=0.01)
    assert done[0] is lk.NOVEL and done[1] is not lk.NOVEL
    said = [str(w.message) for w in recwarn]
    assert any("0.01 cannot be met" in text for text in said)
    assert not any("the class prior decides" in text for text in said)
    assert "no class has a density here" in str(clf.explain([[99.0]]))
    assert "no class has a density" not in str(clf.explain([[5.0]]))


MAKES = {
    "full": lambda: lk.BayesClassifier(lk.GaussianDensity("full")),
    "pooled": lambda: lk.BayesClassifier(lk.GaussianDensity("pooled")),
    "diagonal": lambda: lk.BayesClassifier(lk.GaussianDensity("diagonal")),
    "t": lambda: lk.BayesClassifier(lk.StudentTDensity()),
    "parzen": lambda: lk.BayesClassifier(lk.KernelDensity()),
    "neighbor density": lambda: lk.BayesClassifier(lk.KNNDensity()),
    "mixture": lambda: lk.BayesClassifier(
        lk.MixtureDensity(lk.GaussianDensity("full"), n_components=6, random_state=0)
    ),
    "neighbors": lambda: lk.KNeighborsClassifier(5),
    "naive": lk.NaiveBayes,
    "histogram": lambda: lk.BayesClassifier(lk.HistogramDensity()),
    **{m: lambda m=m: lk.NearestCentroidClassifier(m) for m in ("mahalanobis", "scaled", "l2", "l1", "linf")},
}


def correlated(rng, n, d):
    y = np.arange(n) % 2
    mixing = np.random.default_rng(99 + d).normal(size=(2, d, d)) / np.sqrt(d) + np.eye(d)
    return np.einsum("nij,nj->ni", mixing[y], rng.normal(size=(n, d))) + 2.0 * y[:, None], y


def share_novel(make, n, d, rates, seeds, new):
    """Share of new rows called novel (len(rates),), the mean of several trainings with n rows of each class."""
    out = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n, d])
        clf = make().fit(*correlated(rng, 2 * n, d))
        Q = correlated(rng, new, d)[0]
        out.append([np.mean(clf.decide(Q, novelty=rate) == lk.NOVEL) for rate in rates])
    return np.mean(out, axis=0)


@pytest.mark.parametrize("name", ["full", "mahalanobis", "naive", "parzen", "neighbors"])
def test_every_model_keeps_the_rate(name):
    found = share_novel(MAKES[name], 60, 8, [0.1], 4, 2000)
    assert 0.1 / 1.6 < found[0] < 0.1 * 1.6


@pytest.mark.campaign
@pytest.mark.parametrize("name", list(MAKES))
@pytest.mark.parametrize("n", [60, 150, 400])
@pytest.mark.parametrize("d", [2, 8, 20])
def test_every_model_keeps_the_rate_over_many_trainings(name, n, d):
    """Mean of 20 trainings × 10,000 new rows, wherever the stated rate × rows of a class is 3 or more."""
    rates = [rate for rate in (0.01, 0.05, 0.1) if rate * n >= 3]
    found = share_novel(MAKES[name], n, d, rates, 20, 10_000)
    without_support = 1 - (1 - 2 / (2 * n + 1)) ** d if name == "histogram" else 0.0  # beyond the edges of some column
    for rate, share in zip(rates, found, strict=True):
        if rate < 1.2 * without_support:  # cannot be met, and is said
            assert share == pytest.approx(max(rate, without_support), rel=0.5)
        else:
            assert rate / 1.5 < share < rate * 1.5, (rate, share)


SET = [lk.BayesClassifier, lk.NaiveBayes, lk.NearestCentroidClassifier, lk.KNeighborsClassifier]


@pytest.mark.parametrize("kind", SET)
def test_fit_says_which_rate_the_rows_support(kind):
    """40 rows set 1 in 41 at the least; `fit` of a classifier with a finer setting said nothing."""
    X, y = draw(np.random.default_rng(0), 40)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kind(novelty=0.01).fit(X, y)
    said = [str(w.message) for w in told if "false-alarm" in str(w.message)]
    assert said == [f"{kind.__name__}: a false-alarm rate of 0.01 is too small for 40 rows; 0.024 is used"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kind(novelty=0.1).fit(X, y)
        kind().fit(X, y)
    assert not [w for w in told if "false-alarm" in str(w.message)]


def test_the_supported_rate_counts_rows_that_are_always_novel():
    kept = np.stack([np.r_[np.full(5, np.inf), np.zeros(45)], np.ones(50)])
    assert supported(kept, 0.05).rate == pytest.approx(5 / 51)
    assert supported(kept, 0.1) is None
    assert support_in_words(kept, 0.05)[1] == " (0.05 was requested; 10 % of the training rows are novel at any rate)"
    assert support_in_words(None, 0.05) == support_in_words(np.empty((3, 0)), 0.05) == ("0.05", "")


@pytest.mark.parametrize("kind", SET)
def test_folds_do_not_tell_of_a_rate_that_nobody_asks_them_for(kind):
    X, y = draw(np.random.default_rng(0), 40)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lk.evaluate(kind(novelty=0.01), X, y, cv=3)
    assert not [w for w in told if "false-alarm" in str(w.message)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lk.CalibratedClassifier(kind(novelty=0.01), cv=3).fit(X, y)
    said = [str(w.message) for w in told if "false-alarm" in str(w.message)]
    assert len(said) == 1 and "too small for 40 rows" in said[0]


def test_rows_are_compared_with_draws_that_lack_the_same_entries():
    x = np.array([[0.3, np.nan], [np.nan, 40.0], [0.1, 2.0]])
    make = lambda: lk.Gaussian([0.0, 0.0], [1.0, 400.0])  # noqa: E731
    together = novelty_score(make(), x)
    np.testing.assert_array_equal(together, [novelty_score(make(), x[i : i + 1])[0] for i in range(3)])
    assert together[1] - together[0] > 0.5  # two deviations off, where a third of one is ordinary
