"""Names used by other libraries, with the equivalent here, for error messages."""

from __future__ import annotations

OURS = {
    # scikit-learn
    "GaussianMixture": "MixtureDensity(GaussianDensity(), n_components=…)",
    "BayesianGaussianMixture": "MixtureDensity(GaussianDensity(), n_components=…, prior=…)",
    "LinearDiscriminantAnalysis": 'BayesClassifier(GaussianDensity("pooled")), or FisherDiscriminant() to project',
    "LDA": 'BayesClassifier(GaussianDensity("pooled")), or FisherDiscriminant() to project',
    "QuadraticDiscriminantAnalysis": "BayesClassifier(GaussianDensity())",
    "QDA": "BayesClassifier(GaussianDensity())",
    "GaussianNB": "NaiveBayes()",
    "MultinomialNB": "BayesClassifier(MultinomialDensity())",
    "BernoulliNB": "BayesClassifier(BernoulliDensity())",
    "CategoricalNB": 'NaiveBayes("categorical")',
    "NearestCentroid": "NearestCentroidClassifier()",
    "DummyClassifier": "PriorClassifier()",
    "CalibratedClassifierCV": "CalibratedClassifier(…)",
    "ProbabilisticPCA": "decomposition.PPCA()",
    # hmmlearn, pykalman, filterpy, statsmodels
    "GaussianHMM": "HMMDensity(GaussianDensity(), n_states=…)",
    "GMMHMM": "HMMDensity(MixtureDensity(), n_states=…)",
    "CategoricalHMM": "HMMDensity(CategoricalDensity(), n_states=…)",
    "MultinomialHMM": "HMMDensity(MultinomialDensity(), n_states=…)",
    "PoissonHMM": "HMMDensity(PoissonDensity(), n_states=…)",
    "KalmanFilter": "LinearGaussian(…) with .filter and .smooth, or LinearGaussianDensity() to learn one",
    "IMMEstimator": "statespace.IMMFilter(…)",
    "UnobservedComponents": "LinearGaussian.local_level(…) and similar",
}


def hint(name: str) -> str:
    """The equivalent of another library's name, as the end of a message; empty if unknown.

    >>> hint("QDA")
    '; here it is BayesClassifier(GaussianDensity())'
    >>> hint("Nothing")
    ''
    """
    return f"; here it is {OURS[name]}" if name in OURS else ""
