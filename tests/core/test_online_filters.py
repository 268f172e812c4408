"""Online learners as filters: predict, then learn; the sum of scores is what a fair observer would have paid."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import likely as lk
from likely.core.errors import DataError, DomainError
from likely.core.filter_protocol import step
from likely.io.follow_stream import follow


def rows(n: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 4 * rng.integers(2, size=(n, 1))


def test_a_prior_becomes_the_posterior_and_scores_add_to_the_evidence():
    x = rows()
    prior = lk.priors.NormalInverseWishart([0.0, 0.0], 1.0, np.eye(2), 4.0)
    steps = list(follow(prior, x))
    stats = prior.point().collect(x)
    assert sum(news for _, news in steps) == pytest.approx(float(prior.log_evidence(stats)), rel=1e-10)
    assert steps[-1][0].mean == pytest.approx(prior.update(stats).mean, rel=1e-10)
    assert steps[3][1] == pytest.approx(float(steps[2][0].predictive().log_prob(x[3:4])[0]), rel=1e-8)


def test_a_coin_learned_toss_by_toss():
    steps = list(follow(lk.Dirichlet([1.0, 1.0]), [0, 0, 1, 0]))
    assert np.exp([news for _, news in steps]) == pytest.approx([1 / 2, 2 / 3, 1 / 4, 3 / 5])  # Laplace
    assert steps[-1][0].alpha.tolist() == [4.0, 2.0]


@pytest.mark.parametrize("make", [lambda: lk.MixtureDensity(n_components=2, random_state=0), lk.GaussianDensity])
def test_a_density_scores_each_row_before_it_learns_from_it(make):
    x = rows()
    learner, again = make().fit(x[:20]), make().fit(x[:20])
    before = learner.model_
    steps = list(follow(learner, x[20:]))
    for row, (_, news) in zip(x[20:], steps, strict=True):
        assert news == float(again.score_samples(row[None])[0])
        again.partial_fit(row[None])
    assert steps[-1][0].score_samples(x).tolist() == again.score_samples(x).tolist()
    assert learner.model_ is before and len({id(belief) for belief, _ in steps}) == 20  # beliefs are values


@pytest.mark.slow
def test_classifiers_are_asked_for_the_label():
    rng = np.random.default_rng(1)
    y = np.array(["a", "b"], dtype=object)[rng.integers(2, size=60)]
    x = rng.normal(size=(60, 2)) + 2.0 * (y == "b")[:, None]
    learner = lk.BayesClassifier().fit(x[:20], y[:20])
    steps = list(follow(learner, zip(x[20:], y[20:], strict=True)))
    again = lk.BayesClassifier().fit(x[:20], y[:20])
    expected = []
    for i in range(20, 60):
        expected.append(again.log_posterior(x[i : i + 1])[0, int(y[i] == "b")])
        again.partial_fit(x[i : i + 1], y[i : i + 1])
    assert [news for _, news in steps] == expected
    assert learner.stats_.total_weight == 20 and steps[-1][0].stats_.total_weight == 60
    _, news = step(learner, None, (x[0], None))  # no label, nothing to predict
    assert news == 0.0


def test_other_libraries_learners_too():
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=60)
    x = rng.normal(size=(60, 2)) + 3.0 * y[:, None]
    first = GaussianNB().partial_fit(x[:10], y[:10], classes=[0, 1])
    (belief, news), *_ = follow(first, [(x[10], y[10])])
    assert news == pytest.approx(first.predict_log_proba(x[10:11])[0, y[10]])
    assert belief.class_count_.sum() == 11


def test_what_cannot_learn_is_told_so():
    with pytest.raises(DataError, match="be fitted before"):
        step(lk.GaussianDensity(), None, [0.0, 1.0])
    with pytest.raises(DataError, match="rows with labels"):
        step(lk.BayesClassifier().fit(rows(), np.arange(40) % 2), None, [0.0, 1.0])
    with pytest.raises(DomainError, match="with the methods initial_belief"):
        step(lk.Gaussian([0.0], 1.0), None, 0.0)
