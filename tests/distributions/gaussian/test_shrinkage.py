"""Covariances between a class's own and a target: the weight against leaving rows out and fitting again."""

import numpy as np
import pytest

import likely as lk
from likely.distributions.gaussian import shrinkage
from likely.distributions.gaussian.shrinkage import GRID
from likely.io import model_files
from likely.neighbors.distinct_rows import DistinctRows

KINDS = ("shrunk-pooled", "shrunk-diagonal")
SOME = np.array([0, 25, 34, 45])  # of the weights in the grid


def heavy_tailed(seed, n=20, d=4):
    """Two classes of t rows with two degrees of freedom."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(2 * n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    y = np.repeat([0, 1], n)
    X[n:] += 1.0
    return X, y


def criterion(X, y, w, kind, k, **how):
    """What the library maximizes (grid,), and the weights that it chose (K,)."""
    clf = lk.BayesClassifier(lk.GaussianDensity(kind, **how)).fit(X, y, w)
    assert clf.density_.shrinkage_method_ == "leave-one-out"
    rows = DistinctRows.of(X, w, y, 2).member(k)
    ends = clf.density_._ends(clf.stats_.components, clf.prior_.components)
    return ends.left_out(k, rows.rows, rows.weight), clf.density_.shrinkage_


def refitted(X, y, w, kind, k, share, **how):
    """Log-likelihood of the rows of class k, each with all its copies left out and everything else learned anew."""
    X, y, w = np.asarray(X), np.asarray(y), np.asarray(w)
    distinct, which = np.unique(X[y == k], axis=0, return_inverse=True)
    total = 0.0
    for g, x in enumerate(distinct):
        out = np.flatnonzero(y == k)[which == g]
        keep = np.setdiff1d(np.arange(len(X)), out)
        clf = lk.BayesClassifier(lk.GaussianDensity(kind, shrinkage=share, **how))
        total += w[out].sum() * clf.fit(X[keep], y[keep], w[keep]).model_.components.log_prob(x[None])[0, k]
    return total


def by_hand(X, y, kind, k):
    """The same in plain NumPy (grid,), by maximum likelihood, for rows that are all distinct."""
    others = X[y != k] - X[y != k].mean(axis=0)
    total = np.zeros(len(GRID))
    for x in X[y == k]:
        rest = X[y == k][(X[y == k] != x).any(axis=1)]
        z, n = rest - rest.mean(axis=0), len(rest)
        S = z.T @ z / n
        T = np.diag(np.diag(S)) if kind == "shrunk-diagonal" else (z.T @ z + others.T @ others) / (n + len(others))
        A = (1 - GRID)[:, None, None] * S + GRID[:, None, None] * T
        delta = x - rest.mean(axis=0)
        total -= 0.5 * (np.linalg.slogdet(A)[1] + np.einsum("i,gij,j->g", delta, np.linalg.inv(A), delta))
    return total


@pytest.mark.some_cases(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_weight_is_that_of_leaving_one_out_for_heavy_tailed_rows(kind, seed):
    X, y = heavy_tailed(seed)
    for k in (0, 1):
        ours, shares = criterion(X, y, np.ones(40), kind, k, prior=None)
        exact = by_hand(X, y, kind, k)
        np.testing.assert_allclose(ours - ours[-1], exact - exact[-1], rtol=1e-7, atol=1e-7)
        assert exact[GRID == shares[k]] > exact.max() - 1e-6


@pytest.mark.some_cases(7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["observation", "class"])
@pytest.mark.parametrize("weights", ["copies", "fractions"])
@pytest.mark.parametrize("prior", [None, "given", "weak"])
def test_the_criterion_is_that_of_fitting_without_the_row(kind, pooling, weights, prior):
    X, y = heavy_tailed(7, n=8, d=2)
    rng = np.random.default_rng(0)
    w = rng.integers(1, 4, 16).astype(float) if weights == "copies" else rng.random(16) + 0.5
    X[3] = X[5]
    given = lk.priors.NormalInverseWishart(X.mean(axis=0), 0.5, 3 * np.eye(2), 5.0) if prior == "given" else prior
    ours, _ = criterion(X, y, w, kind, 0, pooling=pooling, prior=given)
    exact = np.array([refitted(X, y, w, kind, 0, GRID[i], pooling=pooling, prior=given) for i in SOME])
    # the weak prior's mean and its shrinkage of correlations are held fixed
    atol = 1e-3 * w.sum() if prior == "weak" else 1e-6
    np.testing.assert_allclose(ours[SOME] - ours[-1], exact - exact[-1], atol=atol)


def unlike_classes(seed, n=(9, 14), d=3):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(k, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 2 for k in n])
    return X, np.repeat([0, 1], n)


def prior_for_each_class():
    scales = np.stack([4 * np.eye(3), 40 * np.eye(3)])
    return lk.priors.NormalInverseWishart(np.zeros((2, 3)), np.array([1.5, 1.0]), scales, np.array([6.0, 12.0]))


@pytest.mark.slow
@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("pooling", ["observation", "class"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_prior_for_each_class_is_left_as_it_is_when_a_row_is_left_out(kind, pooling, k):
    X, y = unlike_classes(2)
    how = {"pooling": pooling, "prior": prior_for_each_class()}
    ours, shares = criterion(X, y, np.ones(23), kind, k, **how)
    exact = np.array([refitted(X, y, np.ones(23), kind, k, GRID[i], **how) for i in SOME])
    np.testing.assert_allclose(ours[SOME] - ours[-1], exact - exact[-1], atol=1e-6)
    if (kind, pooling, k) == ("shrunk-pooled", "observation", 1):
        assert round(shares[1], 3) == 0.152  # by refitting for each weight of the grid


@pytest.mark.parametrize("pooling", ["observation", "class"])
def test_the_ends_with_a_prior_for_each_class_are_full_and_pooled(pooling):
    X, y = unlike_classes(2)

    def covariance(kind, **how):
        density = lk.GaussianDensity(kind, prior=prior_for_each_class(), pooling=pooling, **how)
        return np.broadcast_to(lk.BayesClassifier(density).fit(X, y).model_.components.covariance, (2, 3, 3))

    np.testing.assert_allclose(covariance("shrunk-pooled", shrinkage=0.0), covariance("full"), rtol=1e-12)
    np.testing.assert_allclose(covariance("shrunk-pooled", shrinkage=1.0), covariance("pooled"), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pooling", ["observation", "class", "none"])
@pytest.mark.parametrize("weights", ["ones", "fractions"])
def test_a_prior_that_follows_the_rows_is_followed(pooling, weights):
    """Its scale is c W/N of the rows that are left; the target pooled by class is not W/N."""
    X, y = unlike_classes(1, (12, 5), 2)
    X[y == 1] *= 5
    w = np.ones(17) if weights == "ones" else np.random.default_rng(1).random(17) + 0.5

    def ends(keep):
        stats = lk.Gaussian.blank(X, members=2).collect(X[keep], w[keep], labels=y[keep])
        within = stats.scatter.sum(axis=0) / stats.weight.sum()
        prior = lk.priors.NormalInverseWishart(np.zeros(2), 1e-9, 9.0 * within, 5.0)  # worth 5 + d + 2 rows
        return shrinkage.ShrunkCovariances.of(stats, prior, pooling, following=True)

    for k in (0, 1):
        exact = np.zeros(len(GRID))
        for i in np.flatnonzero(y == k):
            rest = ends(np.arange(17) != i)
            A = np.array([rest.at(np.full(2, share))[k] for share in GRID])
            delta = X[i] - rest.mean[k]
            exact -= 0.5 * w[i] * (np.linalg.slogdet(A)[1] + np.einsum("i,gij,j->g", delta, np.linalg.inv(A), delta))
        ours = ends(np.arange(17) >= 0).left_out(k, X[y == k], w[y == k])
        np.testing.assert_allclose(ours - ours[-1], exact - exact[-1], atol=1e-6)


def test_rows_of_nearly_equal_weight_may_share_a_diagonalization(monkeypatch):
    X, y = unlike_classes(0, (150, 60), 3)
    w = np.random.default_rng(0).random(210) + 0.5
    density = lk.GaussianDensity("shrunk-pooled", pooling="class")
    clf = lk.BayesClassifier(density).fit(X, y, w)
    ends = clf.density_._ends(clf.stats_.components, clf.prior_.components)
    shared = [ends.left_out(k, X[y == k], w[y == k]) for k in (0, 1)]
    monkeypatch.setattr(shrinkage, "SIZES", 10**9)
    for k in (0, 1):
        np.testing.assert_allclose(shared[k], ends.left_out(k, X[y == k], w[y == k]), atol=1e-5 * w[y == k].sum())


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_weights_and_order_is_no_matter(kind):
    X, y = heavy_tailed(3)
    w = np.random.default_rng(1).integers(1, 4, 40)
    weighted = lk.BayesClassifier(lk.GaussianDensity(kind)).fit(X, y, w).density_.shrinkage_
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(40), w))
    copied = lk.BayesClassifier(lk.GaussianDensity(kind)).fit(X[again], y[again]).density_.shrinkage_
    assert weighted.tolist() == copied.tolist()
    once, twice = (
        lk.GaussianDensity("shrunk-diagonal").fit(X, sample_weight=np.full(40, f)).shrinkage_ for f in (1.0, 2.0)
    )
    assert abs(once - twice) <= 0.05  # doubling all rows makes the prior weigh less, but leaves no copy behind


@pytest.mark.parametrize("kind", KINDS)
def test_equal_weights_give_the_smallest(kind):
    same = np.array([-1.0, -1.0 - 1e-13, -2.0])
    assert shrinkage._best(np.concatenate([same[:2], np.full(44, -2.0)])) == 0.0
    assert shrinkage._best(np.full(46, -np.inf)) == 1.0


def test_small_changes_of_a_diagonal_are_expanded_rightly(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, size=(900, 5)) @ (np.eye(5) + 0.4 * rng.normal(size=(5, 5)))
    w = np.where(np.arange(900) < 90, 2.0, 1.0)
    density = lk.GaussianDensity("shrunk-diagonal").fit(X, sample_weight=w)
    ends = density._ends(density.stats_, density.prior_)
    assert 0.8 < len(ends._expanded(0, X - ends.mean[0], 1.0)[0]) / 900 < 1
    fast = ends.left_out(0, X, w)
    monkeypatch.setattr(shrinkage, "MANY", 10**9)
    np.testing.assert_allclose(fast, ends.left_out(0, X, w), atol=1e-5 * 900)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_statistics_say_is_called_an_approximation(kind):
    X, y = heavy_tailed(0)
    clf = lk.BayesClassifier(lk.GaussianDensity(kind)).partial_fit(X, y)
    assert clf.density_.shrinkage_method_.startswith("approximate")
    clf.fit(X, y)
    assert clf.density_.shrinkage_method_ == "leave-one-out"
    holes = X.copy()
    holes[0, 0] = np.nan
    assert clf.fit(holes, y).density_.shrinkage_method_.startswith("approximate")
    lone = lk.GaussianDensity("shrunk-diagonal").fit(X)
    assert lone.summary().facts["covariance shrinkage"].endswith("(leave-one-out)")
    assert "approximate" in lk.GaussianDensity("shrunk-diagonal").partial_fit(X).summary().facts["covariance shrinkage"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_keeps_the_weights_and_how_they_were_found(kind):
    X, y = heavy_tailed(0)
    part = lk.GaussianDensity(kind)
    product = lk.ProductDensity([("a", part, [0, 1]), ("b", lk.GaussianDensity(), [2, 3])])
    found = [
        (lk.BayesClassifier(part).fit(X, y), lambda c: c.density_),
        (lk.BayesClassifier(product).fit(X, y), lambda c: c.density_.densities_[0][1]),
        (lk.MixtureDensity(part, 2, random_state=0).fit(X), lambda m: m.component_),
        (lk.GaussianDensity("shrunk-diagonal", shrinkage=0.3).fit(X), lambda d: d),
    ]
    for estimator, density in found:
        again = density(model_files.loads(model_files.dumps(estimator)))
        assert again.shrinkage_.tolist() == density(estimator).shrinkage_.tolist()
        assert again.shrinkage_method_ == density(estimator).shrinkage_method_


WRONG = [
    {"shrinkage_": np.array([0.5])}, {"shrinkage_": np.array([0.5, 1.5])}, {"shrinkage_": np.array([0.5, np.nan])},
    {"shrinkage_": "half"}, {"shrinkage_method_": "a guess"}, {"shrinkage_method_": 3},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_weights_in_a_file_are_checked(wrong):
    clf = lk.BayesClassifier(lk.GaussianDensity("shrunk-pooled"), novelty=0.1).fit(*heavy_tailed(0))
    vars(clf.density_).update(wrong)
    with pytest.raises(lk.ModelFileError):
        model_files.dumps(clf)  # which reads back what it writes


def test_files_without_weights_still_open():
    X, y = heavy_tailed(0)
    clf = lk.BayesClassifier(lk.GaussianDensity("shrunk-pooled")).fit(X, y)
    wanted, kept = clf.predict_proba(X), clf.held_out_novelty_
    assert kept.shape == (3, len(X))  # computed before the weights are taken away
    del clf.density_.shrinkage_
    with pytest.raises(lk.ModelFileError):
        model_files.dumps(clf)  # one without the other
    del clf.density_.shrinkage_method_
    old = model_files.loads(model_files.dumps(clf))
    assert np.array_equal(old.predict_proba(X), wanted)
    assert old.partial_fit(X, y).density_.shrinkage_method_.startswith("approximate")


def test_a_fit_without_a_shrunk_covariance_leaves_no_weights_behind():
    X, _ = heavy_tailed(0)
    density = lk.GaussianDensity("shrunk-diagonal").fit(X)
    for covariance in ("full", "shrunk-pooled"):  # alone, there is nothing to move toward
        density.set_params(covariance="shrunk-diagonal").fit(X)
        density.set_params(covariance=covariance).fit(X)
        assert not {"shrinkage_", "shrinkage_method_"} & set(vars(density))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_nothing_but_missing_values_have_no_say(kind):
    X, y = heavy_tailed(2)
    more, labels = np.concatenate([X, np.full((3, 4), np.nan)]), np.append(y, [0, 0, 1])
    found, wanted = (
        lk.BayesClassifier(lk.GaussianDensity(kind)).fit(*data).density_ for data in ((more, labels), (X, y))
    )
    assert found.shrinkage_method_ == "leave-one-out" and found.shrinkage_.tolist() == wanted.shrinkage_.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [15, 100])
def test_statistics_come_near_for_gaussian_rows(kind, n):
    rng = np.random.default_rng(n)
    root = np.eye(5) + rng.normal(size=(5, 5)) / 2
    X, y = rng.normal(size=(2 * n, 5)) @ root.T, np.repeat([0, 1], n)
    shares = lk.BayesClassifier(lk.GaussianDensity(kind, prior=None)).partial_fit(X, y).density_.shrinkage_
    for k in (0, 1):
        exact = by_hand(X, y, kind, k) / n
        assert exact[GRID == shares[k]] > exact.max() - 0.1  # nats per row


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_a_product_look_at_their_own_rows(kind):
    X, y = heavy_tailed(4)
    part = lk.GaussianDensity(kind)
    whole = lk.BayesClassifier(lk.ProductDensity([("a", part, [0, 1]), ("b", lk.GaussianDensity(), [2, 3])])).fit(X, y)
    alone = lk.BayesClassifier(part).fit(X[:, :2], y)
    assert whole.density_.densities_[0][1].shrinkage_.tolist() == alone.density_.shrinkage_.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_dependent_columns_do_not_make_a_shrunk_covariance_worse_than_its_ends(data_dir, kind):
    """Columns of `segment` are dependent (rank 15 of 19): before, the blends lost 1.3 nats to the full covariance."""
    a = np.loadtxt(data_dir / "tables" / "segment_keel.csv", delimiter=",", skiprows=1)
    X, y = a[:, :-1], a[:, -1].astype(int)
    test = np.arange(len(X)) % 3 == 0

    def log_loss(**how):
        with pytest.warns(lk.FitWarning):
            clf = lk.BayesClassifier(lk.GaussianDensity(**how)).fit(X[~test], y[~test])
        found = np.searchsorted(clf.classes_, y[test])
        return -np.maximum(clf.predict_log_proba(X[test])[np.arange(test.sum()), found], -700).mean()

    ends = [log_loss(covariance="full"), log_loss(covariance="pooled" if kind == "shrunk-pooled" else "diagonal")]
    assert log_loss(covariance=kind) < max(ends) + 0.02
