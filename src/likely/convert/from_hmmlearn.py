"""Conversion of hidden Markov models of hmmlearn."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.convert.foreign_models import KINDS, converter_of, fitted_attributes, normalized
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.univariate.poisson import Poisson
from likely.hmm.hmm import HMM
from likely.mixture.mixture import Mixture

ME = "from_hmmlearn"


def from_hmmlearn(model: Any) -> HMM:
    """Hidden Markov model with the parameters of a fitted model of hmmlearn.

    `log_prob`, `posterior` and `viterbi` of the result give the numbers of `score`, `predict_proba` and `decode` of
    the model: log p(x) per sequence instead of the sum over sequences, posterior state probabilities, and the most
    probable path. hmmlearn itself is not imported.

    Parameters
    ----------
    model : hmmlearn model
        A fitted `GaussianHMM` or `GMMHMM` of any covariance type, `CategoricalHMM`, `MultinomialHMM` or `PoissonHMM`.

    Returns
    -------
    HMM
        With emissions `Gaussian`, `Mixture`, `Categorical`, `Multinomial` or `Poisson`. A model file
        (`lk.save`) holds it without hmmlearn.

    Raises
    ------
    DomainError
        If the model is of another class; the message lists the supported ones.
    DataError
        If the model is not fitted.

    See Also
    --------
    from_sklearn, from_statsmodels, from_pykalman : The same for other libraries.

    Examples
    --------
    ::

        h = hmmlearn.hmm.GaussianHMM(3).fit(X, lengths)
        model = lk.from_hmmlearn(h)
        model.log_prob(lk.Ragged.of(X, lengths)).sum()  # h.score(X, lengths)
    """
    emission = converter_of(model, "hmmlearn", EMISSIONS, ME, REASONS)
    initial, transition = fitted_attributes(model, "startprob_ transmat_", ME)
    return HMM(normalized(initial), normalized(transition), emission(model))


def _gaussian(model: Any) -> Gaussian:
    means, covariances = fitted_attributes(model, "means_ covars_", ME)  # covars_ (K, d, d) for every covariance type
    covariances = np.asarray(covariances, dtype=np.float64)
    taken = {
        "full": covariances,
        "tied": covariances[0],
        "diag": np.diagonal(covariances, axis1=1, axis2=2),
        "spherical": covariances[:, 0, 0].reshape(len(means), -1)[:, 0],  # hmmlearn repeats each for every column
    }
    return Gaussian(means, taken[model.covariance_type], kind=KINDS[model.covariance_type])


def _gaussian_mixture(model: Any) -> Mixture:
    weights, means, covariances = fitted_attributes(model, "weights_ means_ covars_", ME)
    K, M, d = np.shape(means)
    covariances = np.asarray(covariances, dtype=np.float64)
    if model.covariance_type == "tied":  # one per state
        covariances = np.repeat(covariances[:, None], M, axis=1)
    covariances = covariances.reshape(K * M, *covariances.shape[2:])
    kind = KINDS[model.covariance_type]
    return Mixture(normalized(weights), Gaussian(np.reshape(means, (K * M, d)), covariances, kind=kind))


def _categorical(model: Any) -> Categorical:
    (probabilities,) = fitted_attributes(model, "emissionprob_", ME)
    return Categorical(normalized(probabilities))


def _multinomial(model: Any) -> Multinomial:
    (probabilities,) = fitted_attributes(model, "emissionprob_", ME)
    trials = np.asarray(1 if model.n_trials is None else model.n_trials, dtype=np.float64)
    return Multinomial(normalized(probabilities), trials.max())


def _poisson(model: Any) -> Poisson:
    (rates,) = fitted_attributes(model, "lambdas_", ME)
    return Poisson(rates)


EMISSIONS = {
    "GaussianHMM": _gaussian,
    "GMMHMM": _gaussian_mixture,
    "CategoricalHMM": _categorical,
    "MultinomialHMM": _multinomial,
    "PoissonHMM": _poisson,
}
_VARIATIONAL = "its scores are bounds under a distribution of the parameters, not those of one hidden Markov model"
REASONS = {"VariationalGaussianHMM": _VARIATIONAL, "VariationalCategoricalHMM": _VARIATIONAL}
