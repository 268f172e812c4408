"""The Dirichlet distribution as a prior of word counts: against enumeration and the Dirichlet distribution itself."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DomainError, ShapeError
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.categorical.multinomial import Multinomial, all_rows
from likely.distributions.priors.multinomial_prior import MultinomialPrior

ALPHA = np.array([1.5, 2.0, 0.4])
MODEL = Multinomial([0.2, 0.3, 0.5], 4)


def test_the_evidence_adds_up_to_one_over_rows_of_their_totals():
    prior = MultinomialPrior(ALPHA)
    pairs = ((a, b) for a in all_rows(3, 3) for b in all_rows(2, 3))
    total = sum(np.exp(prior.log_evidence(MODEL.collect(np.stack(pair)))) for pair in pairs)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_counts_add_to_alpha_and_smooth():
    stats = MODEL.collect([[3, 0, 1], [2, 0, 0]])
    post = MultinomialPrior(Dirichlet(ALPHA), 4).update(stats)
    assert np.array_equal(post.belief.alpha, ALPHA + [5, 0, 1])
    assert np.allclose(post.point("mean").probs, (ALPHA + [5, 0, 1]) / (ALPHA.sum() + 6))
    assert post.point("mode").probs[2] == pytest.approx(0.4 / (5.5 + 1.0 + 0.4)) and post.point().length == 4
    one = MultinomialPrior.symmetric(3, 1.0).update(stats).point("mode")
    assert np.allclose(one.probs, [6 / 9, 1 / 9, 2 / 9])
    weak = MODEL.refit(stats, MODEL.weak_prior(stats))
    assert np.allclose(weak.probs, (np.array([5, 0, 1]) + 1 / 3) / 7) and weak.length == 4


def test_modes_below_one_are_guarded():
    probs = MultinomialPrior([0.5, 0.5, 0.5]).update(MODEL.collect([[1, 0, 0]])).point("mode").probs
    assert probs.tolist() == [1.0, 0.0, 0.0]


def test_a_plain_dirichlet_distribution_is_a_prior_too():
    stats = MODEL.collect([[3, 0, 1], [2, 0, 0]])
    a, b = MODEL.refit(stats, Dirichlet(ALPHA + 1)), MODEL.refit(stats, MultinomialPrior(ALPHA + 1, 4))
    assert isinstance(a, Multinomial) and np.array_equal(a.probs, b.probs)
    assert a.objective(stats, Dirichlet(ALPHA + 1)) == b.objective(stats, MultinomialPrior(ALPHA + 1, 4))


def test_a_stack():
    stack = Multinomial(np.full((2, 3), 1 / 3))
    stats = stack.collect([[3, 0, 1], [2, 0, 0]], labels=np.array([0, 1]))
    post = MultinomialPrior(ALPHA).update(stats)
    assert post.members == 2 and post.predictive().members == 2
    assert np.array_equal(post.member(1).belief.alpha, ALPHA + [2, 0, 0])
    assert np.shape(MultinomialPrior(ALPHA).log_evidence(stats)) == (2,)


def test_what_does_not_fit():
    with pytest.raises(DomainError):
        MultinomialPrior([0.0, 1.0])
    with pytest.raises(DomainError):
        MultinomialPrior([1.0, 1.0], 0.5)
    with pytest.raises(ShapeError):
        MultinomialPrior([1.0, 1.0]).update(MODEL.collect([[1, 2, 3]]))
    with pytest.raises(DomainError, match="without missing values"):
        MultinomialPrior(ALPHA).log_evidence(MODEL.collect([[1, np.nan, 3]]))
