"""lk.compare: probabilities by evidence, paired log scores, averages; of densities, classifiers and regressions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity

import likely as lk
from likely.metrics.confidence_intervals import errors_to_best, mean, paired_difference, simplest_within_error
from likely.model_selection.comparable_models import ConjugateModel, interleaved


def clouds(rng, n=150):
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 2.0 * np.array([[0, 0], [1, 1], [0, 2]])[y], np.array(["a", "b", "c"])[y]


# ------------------------------------------------------------------ a regression


class KnownNoise(RegressorMixin, BaseEstimator):
    """Polynomial regression with w ~ N(0, 1/alpha) and known noise: everything in closed form."""

    def __init__(self, degree=1, alpha=1.0, beta=25.0):
        self.degree = degree
        self.alpha = alpha
        self.beta = beta

    def design(self, X):
        return lk.basis.Polynomial(self.degree).design(X)

    def fit(self, X, y):
        Phi = self.design(X)
        self.covariance_ = np.linalg.inv(self.alpha * np.eye(Phi.shape[1]) + self.beta * Phi.T @ Phi)
        self.mean_ = self.beta * self.covariance_ @ Phi.T @ y
        marginal = np.eye(len(y)) / self.beta + Phi @ Phi.T / self.alpha
        self.log_evidence_ = float(multivariate_normal.logpdf(y, np.zeros(len(y)), marginal))
        return self

    def predict(self, X):
        return self.design(X) @ self.mean_

    def predictive(self, X):
        Phi = self.design(X)
        variance = 1 / self.beta + np.einsum("ij,jk,ik->i", Phi, self.covariance_, Phi)
        return lk.Gaussian(self.predict(X)[:, None], variance[:, None], "diagonal")


def waves(rng, n=40):
    X = rng.uniform(0, 1, (n, 1))
    return X, np.sin(2 * np.pi * X[:, 0]) + 0.2 * rng.normal(size=n)


def test_probabilities_of_regressions_are_those_of_their_evidence(rng):
    X, y = waves(rng)
    models = {f"degree {d}": KnownNoise(d) for d in range(6)}
    found = lk.compare(models, X, y)
    evidence = np.array([m.fit(X, y).log_evidence_ for m in models.values()])
    assert found.kind == "regression" and found.names == tuple(models)
    np.testing.assert_allclose(found.log_evidence, evidence, rtol=1e-12)
    np.testing.assert_allclose(found.probabilities, np.exp(evidence - logsumexp(evidence)), rtol=1e-9)
    np.testing.assert_array_equal(found.weights, found.probabilities)
    assert found.best == f"degree {np.argmax(evidence)}" and int(np.argmax(evidence)) >= 2
    first = lk.compare(models, X, y, prior={f"degree {d}": float(d == 1) for d in range(6)})
    np.testing.assert_allclose(first.probabilities, np.eye(6)[1])
    tilted = lk.compare(models, X, y, prior=[6, 5, 4, 3, 2, 1]).probabilities
    wanted = np.exp(evidence) * np.arange(6, 0, -1)
    np.testing.assert_allclose(tilted, wanted / wanted.sum(), rtol=1e-9)


def test_scores_are_log_densities_of_held_out_rows(rng):
    X, y = waves(rng)
    cv = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    found = lk.compare([KnownNoise(3), BayesianRidge()], X, y, cv=cv)
    for i, model in enumerate([KnownNoise(3), BayesianRidge()]):
        wanted = []
        for train, test in cv:
            model.fit(X[train], y[train])
            if i == 0:
                own = model.predictive(X[test])
                center, spread = own.mean[:, 0], np.sqrt(own.variance[:, 0])
            else:
                center, spread = model.predict(X[test], return_std=True)
            wanted.append(-0.5 * ((y[test] - center) / spread) ** 2 - np.log(spread) - 0.5 * np.log(2 * np.pi))
        np.testing.assert_allclose(found.scores[i], np.concatenate(wanted), rtol=1e-9)
        assert found.log_score[i].value == pytest.approx(np.mean(wanted), rel=1e-12)
    best, other = (0, 1) if found.scores[0].sum() > found.scores[1].sum() else (1, 0)
    gap = mean(found.scores[best] - found.scores[other])
    assert found.difference[best].value == 0 and found.difference[other].value == pytest.approx(gap.value)
    assert found.difference[other].se == pytest.approx(gap.se) and found.difference[other].low == pytest.approx(gap.low)
    assert found.probabilities is None and "BayesianRidge() has no log evidence" in str(found)


def test_the_average_of_regressions_is_a_stack_of_mixtures(rng):
    X, y = waves(rng)
    found = lk.compare([KnownNoise(d) for d in (3, 4, 5)], X, y)
    new = np.linspace(0, 1, 7)[:, None]
    average = found.predictive(new)
    assert average.members == 7 and isinstance(average.components, lk.Gaussian)
    means = np.stack([m.predict(new) for m in found.models])
    np.testing.assert_allclose(average.mean[:, 0], found.probabilities @ means, rtol=1e-12)
    at = rng.normal(size=7)
    pairs = np.stack([np.diagonal(m.predictive(new).log_prob(at[:, None])) for m in found.models])
    wanted = logsumexp(pairs + np.log(found.probabilities)[:, None], axis=0)
    np.testing.assert_allclose(found.log_prob(new, at), wanted, rtol=1e-10)
    np.testing.assert_allclose(np.diagonal(average.log_prob(at[:, None])), wanted, rtol=1e-10)
    with pytest.raises(lk.DataError, match="y is needed to score a regression"):
        found.log_prob(new)


def test_stacks_of_unlike_densities_interleave():
    one, other = lk.Gaussian([[0.0], [1.0]], [[1.0], [2.0]]), lk.StudentT([[5.0], [6.0]], [[[1.0]], [[2.0]]], 4.0)
    found = interleaved([one, other])
    x = np.array([[0.3]])
    wanted = [one.log_prob(x)[0, 0], other.log_prob(x)[0, 0], one.log_prob(x)[0, 1], other.log_prob(x)[0, 1]]
    np.testing.assert_allclose(found.log_prob(x)[0], wanted)
    shared = lk.Gaussian([[0.0], [1.0]], [4.0])
    np.testing.assert_allclose(interleaved([one, shared]).log_prob(x)[0, [1, 3]], shared.log_prob(x)[0])


# ------------------------------------------------------------------- classifiers


def test_classifiers(rng):
    X, y = clouds(rng)
    models = {"bayes": lk.BayesClassifier(), "neighbors": lk.KNeighborsClassifier(15), "logistic": LogisticRegression()}
    found = lk.compare(models, X, y)
    assert found.kind == "classifier" and found.probabilities is None and np.isnan(found.log_evidence).all()
    held = lk.evaluate(models["bayes"], X, y)
    assert found.log_score[0].value == pytest.approx(-held.log_loss.value, rel=1e-12)  # the same folds
    assert found.weights.sum() == pytest.approx(1) and (found.weights >= 0).all()
    average = found.predictive(X[:9])
    wanted = sum(w * m.predict_proba(X[:9]) for w, m in zip(found.weights, found.models, strict=True))
    np.testing.assert_allclose(average, wanted, rtol=1e-12)
    assert found.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found.log_prob(X[:9], y[:9]), np.log(wanted[np.arange(9), np.arange(9) % 3]), rtol=1e-9)
    with pytest.raises(lk.DataError, match="labels must be among the classes"):
        found.log_prob(X[:1], ["z"])


def test_weights_of_an_average_have_the_largest_held_out_likelihood(rng):
    X, y = clouds(rng)
    found = lk.compare([lk.BayesClassifier(), lk.KNeighborsClassifier(9), lk.PriorClassifier()], X, y)
    with np.errstate(divide="ignore"):

        def held_out(w):
            return logsumexp(found.scores + np.log(np.asarray(w))[:, None], axis=0).sum()

        best = held_out(found.weights)
        for other in np.random.default_rng(0).dirichlet(np.ones(3), 200):
            assert held_out(other) <= best + 1e-3


def test_a_class_of_probability_zero_makes_an_infinite_difference(rng):
    X, y = clouds(rng)
    found = lk.compare([lk.BayesClassifier(), lk.KNeighborsClassifier(1)], X, y)
    if np.isneginf(found.scores[1]).any():
        assert found.log_score[1].value == -np.inf and found.difference[1].value == np.inf
    assert found.best.startswith("BayesClassifier") and np.isfinite(found.weights).all()
    assert str(found).splitlines()


# --------------------------------------------------------------------- densities


def test_densities_and_conjugate_priors(rng):
    X = rng.normal([0.0, 3.0], 1.0, (60, 2))
    niw = lk.priors.NormalInverseWishart([0.0, 0.0], 0.01, np.eye(2), 4.0)
    nig = lk.priors.NormalInverseGamma([0.0, 0.0], 0.01, [0.5, 0.5], 1.5)
    models = {"full": niw, "diagonal": nig, "estimator": lk.GaussianDensity(prior=niw)}
    found = lk.compare(models, X)
    stats = lk.Gaussian.blank(X).collect(X)
    wanted = float(niw.log_evidence(stats))
    assert found.kind == "density" and found.log_evidence[0] == pytest.approx(wanted, rel=1e-12)
    assert found.log_evidence[2] == pytest.approx(wanted, rel=1e-12)
    assert found.probabilities[0] == pytest.approx(
        found.probabilities[2]
    ) and found.probabilities.sum() == pytest.approx(1.0, abs=1e-15)
    average = found.predictive()
    np.testing.assert_allclose(average.log_prob(X[:5]), found.log_prob(X[:5]), rtol=1e-12)
    assert found.best == "diagonal"  # the columns are independent


def test_a_fair_coin_in_closed_form():
    for heads, n in ((15, 20), (10, 20)):
        coin = np.repeat([[1.0], [0.0]], [heads, n - heads], axis=0)
        any_coin = ConjugateModel(lk.Beta(1.0, 1.0)).fit(coin).log_evidence_
        found = lk.compare([lk.Beta(1.0, 1.0), lk.Beta(1e9, 1e9)], coin)
        odds = np.exp(n * np.log(0.5) - any_coin)
        assert found.probabilities[1] == pytest.approx(odds / (1 + odds), rel=1e-5)


def test_a_prior_that_the_data_scale_gives_no_evidence(rng):
    X = rng.normal(size=(80, 2))
    found = lk.compare([lk.GaussianDensity(), lk.MixtureDensity(n_components=2, random_state=0)], X)
    assert found.probabilities is None and np.isnan(found.log_evidence).all()
    assert found.log_score[0].value > found.log_score[1].value
    assert not hasattr(lk.GaussianDensity().fit(X), "log_evidence_")
    with pytest.raises(AttributeError, match=r"after a fit with a conjugate prior: prior=…"):
        _ = lk.GaussianDensity().fit(X).log_evidence_
    foreign = lk.compare([KernelDensity(), lk.GaussianDensity()], X)
    assert np.isfinite(foreign.log_prob(X)).all()
    with pytest.raises(lk.DomainError, match="an average needs models of likely"):
        lk.compare([KernelDensity()], X).predictive()


def test_sequences(rng):
    x = [rng.normal(size=(12, 1)) for _ in range(10)]
    found = lk.compare([lk.HMMDensity(n_states=k, random_state=0, max_iter=5) for k in (1, 2)], x)
    assert found.scores.shape == (2, 10)


# ------------------------------------------------------- weights, failures, errors


def test_a_weight_is_a_number_of_copies(rng):
    X, y = clouds(rng, 60)
    w = rng.integers(0, 3, 60)
    models = [lk.BayesClassifier(), lk.KNeighborsClassifier(5)]
    weighted = lk.compare(models, X, y, sample_weight=w)
    copied = lk.compare(models, np.repeat(X, w, axis=0), np.repeat(y, w))
    assert [s.value for s in weighted.log_score] == pytest.approx([s.value for s in copied.log_score], rel=1e-9)
    assert weighted.difference[1].se == pytest.approx(copied.difference[1].se, rel=1e-9)


def test_a_model_that_fails_is_listed_and_the_others_are_compared(rng):
    X = np.abs(rng.normal(size=(40, 2)))
    found = lk.compare({"normal": lk.GaussianDensity(), "counts": lk.PoissonDensity()}, X)
    assert found.failures[0] == "" and "counts failed" in str(found) and found.best == "normal"
    assert found.log_score[1] is None and found.weights.tolist() == [1.0, 0.0]
    with pytest.raises(lk.DataError, match="at least one model must be fitted, got counts: "):
        lk.compare({"counts": lk.PoissonDensity()}, X)


def test_clusters_widen_the_error(rng):
    X, y = clouds(rng, 120)
    models = [lk.BayesClassifier(), lk.PriorClassifier()]
    group = np.arange(120) // 4
    found = lk.compare(models, X, y, groups=group)
    tested = np.concatenate([found.scores[0] - found.scores[1]])
    assert found.difference[1].value == pytest.approx(tested.mean())
    assert found.difference[1].se != pytest.approx(mean(tested).se)


def test_bad_input_is_an_error(rng):
    X, y = clouds(rng, 30)
    with pytest.raises(lk.DomainError, match=r"one kind, got a classifier \(BayesClassifier\) and a regression"):
        lk.compare([lk.BayesClassifier(), BayesianRidge()], X, y)
    with pytest.raises(lk.DomainError, match=r"with y, a classifier with probabilities or a regression.*got Ridge"):
        lk.compare([Ridge()], X, np.arange(30.0))
    with pytest.raises(lk.DomainError, match="without y, models must be densities, got BayesClassifier: pass y"):
        lk.compare([lk.BayesClassifier()], X)
    with pytest.raises(lk.DomainError, match="models must be a list"):
        lk.compare(lk.GaussianDensity(), X)
    with pytest.raises(lk.DomainError, match="at least one model is needed"):
        lk.compare([], X)
    with pytest.raises(lk.DomainError, match="prior must be 1 numbers from 0 on"):
        lk.compare([lk.GaussianDensity()], X, prior=[0.5, 0.5])
    with pytest.raises(lk.DomainError, match="prior must have one number per model, got b"):
        lk.compare({"a": lk.GaussianDensity()}, X, prior={"a": 1.0, "b": 1.0})
    with pytest.raises(lk.DomainError, match="models must be instances, got the class GaussianDensity"):
        lk.compare([lk.GaussianDensity], X)
    with pytest.raises(lk.ShapeError, match=r"y must have one number per row \(30\)"):
        lk.compare([BayesianRidge()], X, np.arange(29.0))


def test_names_and_the_table(rng):
    X = rng.normal(size=(40, 2))
    found = lk.compare([lk.GaussianDensity(), lk.GaussianDensity(), lk.GaussianDensity("diagonal")], X)
    assert found.names == ("GaussianDensity()", "GaussianDensity() (2)", "GaussianDensity(covariance='diagonal')")
    assert sorted(row[0] for row in found.table.rows) == sorted(found.names)
    assert found.describe().to_dict()["facts"]["tested rows"] == "40"
    assert "log score" in found._repr_html_()


# ----------------------------------------------------------- shared small functions


def test_paired_differences_and_the_simplest_within_an_error(rng):
    loss, least = rng.normal(size=30), rng.normal(size=30)
    assert paired_difference(loss, least).value == pytest.approx((loss - least).mean())
    folds = rng.normal(size=(4, 5))
    gap = folds - folds[folds.mean(axis=1).argmax()]
    np.testing.assert_allclose(errors_to_best(folds), gap.std(axis=1, ddof=1) / np.sqrt(5))
    assert errors_to_best(folds[:, :1]) is None and errors_to_best(np.full((2, 3), np.nan)) is None
    scores = np.array([np.nan, 0.0, 1.0, 2.0, 5.0, 4.9])
    assert simplest_within_error(scores, np.array([9.0, 1.0, 4.0, 9.0, 0.0, 1.0])) == 2
    assert simplest_within_error(scores, None) == 4
    assert simplest_within_error(scores, np.full(6, np.nan)) == 4


# ------------------------------------------------------- what the table must say


def lines(rng, n=60):
    x = rng.uniform(-1, 1, (n, 1))
    return x, 2.0 + x[:, 0] + 0.3 * rng.standard_normal(n)


def test_flat_priors_give_probabilities_only_among_themselves(rng):
    """The evidence of a flat constant has the unit of one target less: a ratio to others would depend on it."""
    x, y = lines(rng)
    flat = {f"flat {d}": lk.BayesianLinearRegression(lk.basis.Polynomial(d)) for d in (1, 2)}
    alike = [lk.compare(flat, x, unit * y).probabilities for unit in (1.0, 1e3)]
    np.testing.assert_allclose(*alike, rtol=1e-6)
    proper = {"proper": lk.BayesianLinearRegression(lk.basis.Polynomial(1), penalize_constant=True)}
    mixed = lk.compare(flat | proper, x, y)
    assert mixed.probabilities is None and np.isfinite(mixed.log_evidence).all()
    told = "flat 1 has a flat prior of 'constant', and proper has not; the ratio of their evidences would depend on"
    assert told in str(mixed)
    both = proper | {"given": lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(2), 100.0))}
    assert lk.compare(both, x, y).probabilities is not None


def test_rows_without_a_target_are_left_out_of_the_scores(rng):
    x, y = lines(rng)
    gaps = np.concatenate([y, np.full(20, np.nan)])
    models = {"line": lk.LinearRegression(), "ridge": lk.Ridge(1.0), "peer": BayesianRidge()}
    found, whole = lk.compare(models, np.concatenate([x, x[:20]]), gaps), lk.compare(models, x, y)
    assert found.scores.shape == (3, 60) and "20 rows without a target were left out" in str(found)
    assert found.failures == ("", "", "") and not (found.scores == 0).any()
    assert [s.value for s in found.log_score] == pytest.approx([s.value for s in whole.log_score], rel=0.1)
    given = [(np.arange(40), np.arange(40, 80))]
    assert lk.compare(models, np.concatenate([x, x[:20]]), gaps, cv=given).scores.shape == (3, 20)
    with pytest.raises(lk.DataError, match="some rows must have a target, got 60 of NaN"):
        lk.compare(models, x, np.full(60, np.nan))


def test_weights_that_a_model_does_not_take_are_told(rng):
    x, y = lines(rng)
    w = rng.uniform(0.5, 2.0, 60)
    models = {"line": lk.LinearRegression(), "process": GaussianProcessRegressor(alpha=0.1)}
    with pytest.warns(lk.FitWarning, match="process: fit takes no weights, so rows count alike in training"):
        found = lk.compare(models, x, y, sample_weight=w)
    assert "process: fit takes no weights" in str(found) and "line: fit" not in str(found)
    assert "takes no weights" not in str(lk.compare(models, x, y, sample_weight=np.full(60, 2)))


def test_warnings_of_the_fits_are_in_the_notes(rng):
    x, y = lines(rng)
    twice = np.concatenate([x, x], axis=1)
    found = lk.compare({"least squares": lk.LinearRegression(), "ridge": lk.Ridge(1.0)}, twice, y)
    assert any(note.startswith("least squares: LinearRegression:") for note in found.notes)
    assert not any("ridge:" in note for note in found.notes)
