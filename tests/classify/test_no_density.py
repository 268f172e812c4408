"""Rows that no class has a density for: the prior decides, and that is said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import likely as lk


@pytest.mark.parametrize(
    "density", [lk.KernelDensity(kernel="epanechnikov"), lk.HistogramDensity(5), lk.UniformDensity()],
)  # fmt: skip
def test_rows_without_any_density_are_reported(density):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    clf = lk.BayesClassifier(density).fit(X, y)
    far = np.array([[50.0, 50.0], [0.0, 0.0], [-50.0, 50.0]])
    for use in (clf.predict, clf.predict_proba, clf.log_posterior):
        with pytest.warns(lk.FitWarning, match="2 of 3 rows have density 0 under every class: the class prior decides"):
            use(far)
    assert np.allclose(clf.predict_proba(far)[[0, 2]], clf.class_prior_)
    assert (clf.predict(far) == clf.classes_[clf.predict_proba(far).argmax(axis=1)]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.BayesClassifier(lk.GaussianDensity()).fit(X, y).predict(far)
