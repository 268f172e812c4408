"""One prior a part."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DomainError, Gamma, Gaussian, Poisson, Product
from likely.priors import NormalInverseWishart, ProductPrior


@pytest.fixture
def pair(rng):
    model = Product({"a": Gaussian([0.0, 0.0], np.eye(2)), "b": Poisson(2.0)})
    prior = ProductPrior({"a": NormalInverseWishart([0.0, 1.0], 1.0, np.eye(2), 5.0), "b": Gamma(2.0, 1.0)})
    return model, prior, model.collect(model.sample(20, rng))


def test_parts_are_updated_each_on_its_own(pair):
    model, prior, stats = pair
    post = prior.update(stats)
    assert np.array_equal(post["a"].scale, prior["a"].update(stats["a"]).scale)
    assert np.array_equal(post["b"].shape, prior["b"].update(stats["b"]).shape)
    assert prior.log_evidence(stats) == pytest.approx(sum(prior[n].log_evidence(stats[n]) for n in "ab"), rel=1e-14)
    assert prior.log_density(model) == pytest.approx(sum(prior[n].log_density(model[n]) for n in "ab"), rel=1e-14)


def test_points_draws_and_predictives_are_products(pair, rng):
    _, prior, _ = pair
    for made in (prior.point("mode"), prior.point("mean"), prior.draw(rng), prior.predictive()):
        assert isinstance(made, Product) and made.names == ["a", "b"]


def test_a_part_may_go_without(pair):
    model, prior, stats = pair
    some = ProductPrior((("a", prior["a"]), ("b", None)))
    assert some.update(stats)["b"] is None and some.log_density(model) == prior["a"].log_density(model["a"])
    assert model.refit(stats, some)["b"].rate == model.refit(stats)["b"].rate
    for doing in ("point", "predictive"):
        with pytest.raises(DomainError, match=rf"ProductPrior\.{doing}: every part needs a prior, got none for b"):
            getattr(some, doing)()
    with pytest.raises(DomainError, match="none for b"):
        some.log_evidence(stats)
