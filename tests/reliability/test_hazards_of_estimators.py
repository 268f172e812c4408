"""The hazard matrix for estimators: every hazard is answered with finite numbers, or refused in one sentence of ours.

RuntimeWarnings are errors: no bare LinAlgError, ZeroDivisionError, IndexError or warning may escape.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import likely as lk

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")

GAUSSIANS = {
    **{
        kind: {"covariance": kind}
        for kind in ("full", "diagonal", "spherical", "pooled", "shrunk-pooled", "shrunk-diagonal")
    },
    "by class": {"covariance": "pooled", "pooling": "class"},
    "mean": {"predictive": "mean"},
    "t": {"predictive": "all"},
    "t diagonal": {"covariance": "diagonal", "predictive": "all"},
    "maximum likelihood": {"prior": None},
    "maximum likelihood pooled": {"prior": None, "covariance": "pooled"},
    "noisy": {"noise": 0.1},
}
ESTIMATORS = {
    **{f"density {name}": lk.GaussianDensity(**how) for name, how in GAUSSIANS.items()},
    **{f"classifier {name}": lk.BayesClassifier(lk.GaussianDensity(**how)) for name, how in GAUSSIANS.items()},
    "density of directions": lk.distributions.VonMisesDensity(),
    "classifier of directions": lk.BayesClassifier(lk.distributions.VonMisesDensity()),
    "density of shares": lk.BetaDensity(low=-1e9, high=1e9),
    "density product": lk.ProductDensity(),
    **{f"density t {kind}": lk.StudentTDensity(kind) for kind in ("full", "diagonal", "spherical", "independent")},
    "density t by maximum likelihood": lk.StudentTDensity(prior=None),
    "density t of 4": lk.StudentTDensity(dof=4.0),
    "classifier t": lk.BayesClassifier(lk.StudentTDensity()),
    "density windows": lk.KernelDensity(),
    "density ellipses": lk.KernelDensity(kernel="elliptical", bandwidth="maximum"),
    "density t windows": lk.KernelDensity(kernel="t", bandwidth="silverman"),
    "density cubes": lk.KernelDensity(kernel="cube", bandwidth="scott"),
    "density histogram": lk.HistogramDensity(),
    "density balls": lk.KNNDensity(2),
    "classifier windows": lk.BayesClassifier(lk.KernelDensity()),
    "classifier histogram": lk.BayesClassifier(lk.HistogramDensity("sturges")),
    "classifier balls": lk.BayesClassifier(lk.KNNDensity(2)),
    "classifier votes": lk.BayesClassifier(lk.KNNDensity(2, shared=True)),
    "density uniform": lk.UniformDensity(),
    "density plateau": lk.UniformDensity(predictive=True),
    "density triangular": lk.distributions.TriangularDensity(),
    "density laplace": lk.LaplaceDensity(),
    "density cauchy": lk.distributions.CauchyDensity(prior=None),
    "classifier plateau": lk.BayesClassifier(lk.UniformDensity(predictive=True)),
    "classifier triangular": lk.BayesClassifier(lk.distributions.TriangularDensity()),
    "classifier laplace": lk.BayesClassifier(lk.LaplaceDensity()),
    "classifier cauchy": lk.BayesClassifier(lk.distributions.CauchyDensity()),
    "naive Bayes": lk.NaiveBayes(),
    "neighbors": lk.KNeighborsClassifier(),
    "neighbors by l1": lk.KNeighborsClassifier("leave-one-out", "l1", weights="distance", prototypes="edited"),
    "neighbors scaled": lk.KNeighborsClassifier(3, "scaled", prototypes="condensed"),
    "neighbors lp": lk.KNeighborsClassifier(3, "lp", p=3.0),
    "nearest center": lk.NearestCentroidClassifier(),
    "nearest median": lk.NearestCentroidClassifier("l1", "median"),
    "nearest center, scaled": lk.NearestCentroidClassifier("scaled"),
    "nearest center, whitened": lk.NearestCentroidClassifier("mahalanobis"),
    "nearest center, linf": lk.NearestCentroidClassifier("linf"),
    "classifier of products": lk.BayesClassifier(lk.ProductDensity()),
    "calibrated": lk.CalibratedClassifier(LogisticRegression()),
}


def table(n=40, d=3):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + y[:, None], np.array(["a", "b"], dtype=object)[y]


def changed(f):
    def make():
        X, y = table()
        return f(X, y) or (X, y)

    return make


def column(values):
    def f(X, y):
        X[:, 1] = values(X)

    return changed(f)


def some_nan(X, y):
    X[::3, 1] = np.nan


def all_nan_in_a_class(X, y):
    X[y == "a", 1] = np.nan


ANSWERED = {
    "plain": changed(lambda X, y: None),
    "constant column": column(lambda X: 7.0),
    "column of zeros": column(lambda X: 0.0),
    "duplicate column": column(lambda X: X[:, 0]),
    "almost duplicate column": column(lambda X: X[:, 0] * (1 + 1e-14)),
    "constant in a class": changed(lambda X, y: X.__setitem__((y == "a", 1), 3.0)),
    "fewer rows than columns": changed(lambda X, y: (np.tile(X, 20)[:8], y[:8])),
    "two rows": changed(lambda X, y: (X[:2], y[:2])),
    "a class of one row": changed(lambda X, y: (X[y != "b"].tolist() + X[1:2].tolist(), ["a"] * 20 + ["b"])),
    "duplicated rows": changed(lambda X, y: (np.repeat(X[:2], 10, axis=0), np.repeat(y[:2], 10))),
    "tiny scale": changed(lambda X, y: (X * 1e-140, y)),
    "huge scale": changed(lambda X, y: (X * 1e140, y)),
    "unlike scales": changed(lambda X, y: (X * [1e-100, 1.0, 1e100], y)),
    "offset": changed(lambda X, y: (X + 1e8, y)),
    "an outlier": changed(lambda X, y: X.__setitem__((0, 0), 1e12)),
    "int8": changed(lambda X, y: (np.clip(np.round(10 * X), -128, 127).astype(np.int8), y)),
    "bool": changed(lambda X, y: (X > 0, y)),
    "float32": changed(lambda X, y: (X.astype(np.float32), y)),
    "big-endian": changed(lambda X, y: (X.astype(">f8"), y)),
    "F-order": changed(lambda X, y: (np.asfortranarray(X), y)),
    "read-only": changed(lambda X, y: X.setflags(write=False)),
    "not contiguous": changed(lambda X, y: (np.repeat(X, 2, axis=0)[::2], y)),
    "one column": changed(lambda X, y: (X[:, :1], y)),
}
GAPS = {
    "gaps": changed(some_nan),
    "a column never seen": column(lambda X: np.nan),
    "a column never seen in a class": changed(all_nan_in_a_class),
    "a row never seen": changed(lambda X, y: X.__setitem__(0, np.nan)),
    "everything missing but one": changed(lambda X, y: X.__setitem__((slice(1, None), slice(None)), np.nan)),
}
NOTHING_TO_GO_BY = {
    ("density product", "a column never seen"),
    ("classifier of products", "a column never seen"),
}
REFUSED = {
    "infinity": (changed(lambda X, y: X.__setitem__((4, 1), np.inf)), "infinity|finite|inf"),
    "no rows": (changed(lambda X, y: (X[:0], y[:0])), "0 sample|at least|row"),
    "no columns": (changed(lambda X, y: (X[:, :0], y)), "0 feature|column"),
    "a vector": (changed(lambda X, y: (X[:, 0], y)), "2D array|shape"),
    "three axes": (changed(lambda X, y: (X[None], y[:1])), "dim 3|shape"),
    "complex": (changed(lambda X, y: (X + 1j, y)), "[Cc]omplex"),
    "words": (
        changed(lambda X, y: (np.array([["x", "1", "2"]] * len(X), dtype=object), y)),
        "number|could not convert",
    ),
    "objects": (changed(lambda X, y: (np.array([[{}, 1.0, 2.0]] * len(X), dtype=object), y)), "number|must be"),
}


def fitted(name, X, y):
    estimator = clone(ESTIMATORS[name])
    return estimator.fit(X) if name.startswith("density") else estimator.fit(X, y)


def numbers_of(estimator, X):
    if hasattr(estimator, "predict_proba"):
        P = estimator.predict_proba(X)
        assert np.allclose(P.sum(axis=1), 1)
        estimator.predict(X)
        estimator.decide(X, reject_below=0.7)
        return P
    return estimator.score_samples(X)


@pytest.mark.some_cases(200)
@pytest.mark.parametrize("hazard", ANSWERED)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hazards_that_have_an_answer(name, hazard):
    X, y = ANSWERED[hazard]()
    if name == "calibrated" and hazard in ("two rows", "huge scale", "unlike scales", "an outlier"):
        pytest.skip("the wrapped estimator's own business")
    assert np.isfinite(numbers_of(fitted(name, X, y), X)).all()


@pytest.mark.slow
@pytest.mark.some_cases(46)
@pytest.mark.parametrize("hazard", GAPS)
@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n != "calibrated"])
def test_missing_values_have_an_answer(name, hazard):
    X, y = GAPS[hazard]()
    if (name, hazard) in NOTHING_TO_GO_BY:
        with pytest.raises(lk.LikelyError, match=r"part 'x1'.*at least one row|at least one row.*give a prior"):
            fitted(name, X, y)
        return
    if name == "density t" and (np.isnan(X).any(axis=1) & ~np.isnan(X).all(axis=1)).any():  # no closed form
        with pytest.raises(lk.DomainError, match=r"needs complete rows.*use predictive"):
            fitted(name, X, y)
        return
    assert np.isfinite(numbers_of(fitted(name, X, y), X)).all()


@pytest.mark.some_cases(30)
@pytest.mark.parametrize("unit", [1e-160, 1e160])
@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n != "calibrated" and "histogram" not in n])
def test_spreads_whose_squares_are_no_numbers_are_refused(name, unit):
    X, y = table()
    columns = name.split()[-1] in ("uniform", "plateau", "triangular", "laplace", "cauchy", "directions", "shares")
    if columns or name in ("neighbors", "neighbors by l1", "neighbors lp"):  # these need no squares of spreads
        assert np.isfinite(numbers_of(fitted(name, X * unit, y), X * unit)).all()
        return
    with pytest.raises(lk.DataError, match=r"(spread|variance) of column 0 .* rescale|overflow: rescale"):
        fitted(name, X * unit, y)


@pytest.mark.some_cases(90)
@pytest.mark.parametrize("hazard", REFUSED)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hazards_that_are_refused(name, hazard):
    make, says = REFUSED[hazard]
    X, y = make()
    if name == "naive Bayes" and hazard == "words":
        assert np.isfinite(numbers_of(fitted(name, X, y), X)).all()  # words are categories there
        return
    with pytest.raises((ValueError, TypeError), match=says):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            fitted(name, X, y)


@pytest.mark.some_cases(17)
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ESTIMATORS if not n.startswith("density") and n != "calibrated"])
def test_far_rows_are_answered(name):
    X, y = table()
    clf = fitted(name, X, y)
    far = np.array([[1e300] * 3, [-1e300, 0.0, 1e300], [1e160, 0.0, 0.0]])
    assert np.isfinite(numbers_of(clf, far)).all()
    if name != "classifier of directions":  # nothing is far on a circle
        assert all(d is lk.NOVEL for d in clf.decide(far, novelty=0.1))
