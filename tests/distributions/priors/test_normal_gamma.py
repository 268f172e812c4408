"""The normal-gamma distribution is the normal-inverse-gamma distribution in other coordinates."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import likely as lk

DISTRIBUTION = lk.priors.NormalGamma([0.5, -1.0], [2.0, 0.5], [3.0, 4.0], [1.0, 2.0])


def test_a_row_is_scored_as_its_definition_says():
    x = DISTRIBUTION.sample(50, np.random.default_rng(0))
    mu, lam = x[:, :2], x[:, 2:]
    want = stats.gamma(DISTRIBUTION.shape, scale=1 / DISTRIBUTION.rate).logpdf(lam)
    want = want + stats.norm(DISTRIBUTION.mean, 1 / np.sqrt(DISTRIBUTION.kappa * lam)).logpdf(mu)
    assert np.allclose(DISTRIBUTION.log_prob(x), want.sum(axis=1), rtol=1e-12)
    models = lk.Gaussian(mu, 1 / lam, kind="diagonal")
    assert np.allclose(DISTRIBUTION.log_prob(models), want.sum(axis=1), rtol=1e-12)


def test_mean_mode_and_entropy():
    x = DISTRIBUTION.sample(200_000, np.random.default_rng(1))
    assert np.allclose(x.mean(axis=0), DISTRIBUTION.mean_row, atol=0.02)
    logs = DISTRIBUTION.log_prob(x)
    assert -logs.mean() == pytest.approx(DISTRIBUTION.entropy(), abs=5 * logs.std() / np.sqrt(len(x)))
    top = DISTRIBUTION.log_prob(DISTRIBUTION.mode_row[None])
    near = DISTRIBUTION.mode_row + 0.01 * np.random.default_rng(2).standard_normal((200, 4))
    assert (DISTRIBUTION.log_prob(near) < top).all()


def test_the_predictive_is_that_of_variances():
    t = DISTRIBUTION.predictive()
    assert t.kind == "independent" and np.allclose(t.dof, 2 * DISTRIBUTION.shape)
    assert np.allclose(
        t.scale, DISTRIBUTION.rate * (DISTRIBUTION.kappa + 1) / (DISTRIBUTION.shape * DISTRIBUTION.kappa)
    )


def test_outside_and_bad_parameters():
    assert DISTRIBUTION.log_prob([[0.0, 0.0, 1.0, -1.0]]) == -np.inf
    with pytest.raises(lk.DomainError, match="rate must be positive"):
        lk.priors.NormalGamma(0.0, 1.0, 1.0, 0.0)
    with pytest.raises(lk.DomainError, match="above ½"):
        lk.priors.NormalGamma(0.0, 1.0, 0.4, 1.0).point("mode")
    assert lk.Gaussian.fit([[1.0, 2.0], [2.0, 5.0]], kind="diagonal", prior=DISTRIBUTION).kind == "diagonal"


@pytest.mark.parametrize(
    ("distribution", "row"),
    [
        ((1.0, 0.25, 1e-300), (0.0, 1e-30)),
        ((1.0, 2.0, 1e-200), (0.0, 1e-200)),
        ((1e-200, 2.0, 1e-200), (0.0, 1.0)),
        ((1e300, 2.0, 1e200), (0.0, 1e-200)),
        ((1e300, 2.0, 1e-200), (0.0, 1e200)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_products_of_parameters_may_leave_the_range_of_numbers(distribution, row):
    k, a, b = (mp.mpf(v) for v in distribution)
    lam = mp.mpf(row[1])
    exact = a * mp.log(b) - mp.loggamma(a) + (a - 1) * mp.log(lam) - b * lam + mp.log(k * lam / (2 * mp.pi)) / 2
    assert lk.priors.NormalGamma([0.0], *distribution).log_prob([row]) == pytest.approx([float(exact)], rel=1e-14)
