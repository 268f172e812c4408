"""The suites of properties catch faults: a density, statistic or prior that breaks one property fails its check."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import Phase

from likely import Gaussian
from likely.distributions.gaussian.moments import Moments
from tests.properties import density, learnable, stats, suite
from tests.properties.members import Member, shifted


@dataclass(frozen=True, eq=False, repr=False)
class Broken(Gaussian):
    """A Gaussian with one fault."""

    fault: str = ""

    def log_prob(self, x):
        z = np.asarray(x)
        out = super().log_prob(z)
        if self.fault == "height":
            return out + 1e-7
        if self.fault == "gaps":
            filled = np.where(np.isnan(z), self.mean, z)  # fills gaps in, instead of integrating them out
            return super().log_prob(filled)
        if self.fault == "bits":
            return out + 1e-15 * np.isnan(np.asarray(z)).any()
        return out.astype(np.float64) if self.fault == "single" else out

    def sample(self, n, rng):
        x = super().sample(n, rng)
        if self.fault == "width":
            return self.mean + (x - self.mean) * 1.05
        return x[:, ::-1] if self.fault == "order" else x

    def entropy(self, bits=False):
        return super().entropy(bits) + (0.03 if self.fault == "entropy" else 0.0)

    def kl(self, other, bits=False):
        return super().kl(other, bits) * (1.1 if self.fault == "divergence" else 1.0)

    def cdf(self, x):
        return super().cdf(x) ** (1.01 if self.fault == "cdf" else 1.0)

    def quantile(self, p):
        return super().quantile(p) + (1e-6 if self.fault == "quantile" else 0.0)

    def collect(self, x, weight=None, labels=None):
        s = super().collect(x, weight, labels)
        if self.fault == "smoothing" and isinstance(s, Moments):  # scikit-learn's GaussianNB: a floor in the statistics
            return s.replace(scatter=s.scatter + 1e-9 * np.eye(self.dim))
        if self.fault == "weights":
            return super().collect(x, None if weight is None else np.sqrt(weight), labels)
        if self.fault == "plain sums" and len(x):
            z = np.asarray(x)
            w = np.ones(len(z)) if weight is None else np.asarray(weight, float)
            mean = w @ z / w.sum() if w.sum() else self.origin
            second = (w[:, None] * z).T @ z - w.sum() * np.outer(mean, mean)
            return s.replace(scatter=second) if np.isfinite(second).all() else s
        return s

    def refit(self, s, prior=None, unbiased=False):
        g = super().refit(s, prior, unbiased)
        if self.fault == "floor":  # an absolute one
            return self.replace(mean=g.mean, covariance=g.covariance + 0.5 * np.eye(self.dim))
        if self.fault == "lazy":
            return self.replace(mean=0.5 * (g.mean + self.mean), covariance=g.covariance)
        return self.replace(mean=g.mean, covariance=g.covariance)

    def objective(self, s, prior=None):
        wrong = 1.001 if self.fault == "objective" else 1.0
        return super().objective(s, prior) * wrong


FULL = np.array([[2.0, -1.1], [-1.1, 1.0]])


def member(fault, d=2):
    mean, c = ([1.0, -1.0], FULL) if d == 2 else ([2.0], [[0.25]])
    make = lambda: Broken(mean, c, None, fault)  # noqa: E731
    other = lambda: Gaussian(np.zeros(d), np.eye(d))  # noqa: E731
    return Member(
        fault, make, ("real",) * d, other=other, moved=lambda g, by: Broken(shifted(g, by).mean, c, None, fault)
    )


CATCHES = [
    (density.adds_up_to_one, "height", 2),
    (density.leaving_out_is_integrating, "gaps", 2),
    (density.a_gap_elsewhere_changes_no_bit, "bits", 2),
    (density.single_precision_comes_back_as_such, "single", 2),
    (density.samples_follow_the_density_column_by_column, "width", 2),
    (density.samples_follow_the_density_jointly, "order", 2),
    (density.entropy_is_the_mean_surprisal, "entropy", 2),
    (density.divergence_is_what_the_other_loses, "divergence", 2),
    (density.the_distribution_function_is_the_integral, "cdf", 1),
    (density.quantiles_undo_the_distribution_function, "quantile", 1),
    (stats.chunks_are_the_batch, "smoothing", 2),
    (stats.nothing_is_the_zero_of_the_sum, "smoothing", 2),
    (stats.a_weight_is_a_repetition, "weights", 2),
    (stats.a_factor_is_a_weight, "weights", 2),
    (stats.chunks_are_the_batch, "plain sums", 2),
    (learnable.the_objective_is_the_likelihood, "objective", 2),
    (learnable.refitting_never_lowers_the_objective, "floor", 2),
    (learnable.a_fit_is_a_fixed_point, "lazy", 2),
    (learnable.a_weight_fits_as_a_repetition, "weights", 2),
]


def plain(m):
    """The member without its fault."""
    return replace(
        m,
        make=lambda: Broken(m.value.mean, m.value.covariance, None, ""),
        moved=lambda g, by: Broken(shifted(g, by).mean, g.covariance),
    )


@pytest.mark.parametrize(("check", "fault", "d"), CATCHES, ids=[f"{f}-{check.__name__}" for check, f, _ in CATCHES])
def test_each_fault_is_caught(check, fault, d, monkeypatch):
    monkeypatch.setattr(suite, "PHASES", (Phase.generate,))
    with pytest.raises((AssertionError, ExceptionGroup)):
        check(member(fault, d))


@pytest.mark.parametrize(("check", "fault", "d"), CATCHES, ids=[f"{f}-{check.__name__}" for check, f, _ in CATCHES])
def test_and_the_faultless_pass(check, fault, d):
    check(plain(member(fault, d)))
