"""The mixture estimator against scikit-learn, SciPy and hand-made EM."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import logsumexp, softmax
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import likely as lk
from likely.core.em_loop import StoppingRule, fit
from likely.core.engine import Serial
from tests.properties.compare import arrays_of
from tests.reliability.plainly import log_probs

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")

RNG = np.random.default_rng(1)
CENTERS = np.array([[-4.0, 0.0], [0.0, 3.0], [4.0, -1.0]])
LABELS = RNG.integers(0, 3, 300)
X = CENTERS[LABELS] + RNG.standard_normal((300, 2)) * np.array([[1.0, 0.5]])


def gap(a, b):
    """The largest difference between two models of one shape, relative to the size of each field."""
    pairs = zip(arrays_of(a), arrays_of(b), strict=True)
    return max(float(np.abs(p - q).max(initial=0.0) / max(np.abs(p).max(initial=0.0), 1e-300)) for p, q in pairs)


# -------------------------------------------------------------------- beside scikit-learn


@pytest.mark.parametrize(("ours", "theirs"), [("full", "full"), ("diagonal", "diag"), ("spherical", "spherical"), ("pooled", "tied")])  # fmt: skip # noqa: E501
def test_where_we_settle_scikit_learn_stays(ours, theirs):
    """What we reach is a summit of theirs, too: begun there, it stays; no floor of ours or theirs intervenes here."""
    first = softmax(-((X[:, None] - CENTERS) ** 2).sum(axis=2), axis=1)
    m = lk.MixtureDensity(lk.GaussianDensity(ours, prior=None), 3, prior=None, init=first, tol=1e-13, max_iter=3000)
    m.fit(X)
    peer = GaussianMixture(3, covariance_type=theirs, reg_covar=0.0, tol=1e-13, max_iter=3000, weights_init=m.weights_,
                           means_init=m.model_.components.mean, random_state=0).fit(X)  # fmt: skip
    assert m.report_.converged
    assert m.score(X) == pytest.approx(peer.score(X), abs=1e-8)
    np.testing.assert_allclose(m.weights_, peer.weights_, atol=1e-5)
    np.testing.assert_allclose(m.model_.components.mean, peer.means_, atol=1e-4)
    np.testing.assert_allclose(m.score_samples(X), peer.score_samples(X), atol=1e-4)


def test_one_component_is_the_plain_density():
    for component in (lk.GaussianDensity(), lk.GaussianDensity("diagonal"), lk.GaussianDensity("spherical"),
                      lk.GaussianDensity("pooled")):  # fmt: skip
        one, plain = lk.MixtureDensity(component, 1).fit(X), component.fit(X)
        np.testing.assert_allclose(one.score_samples(X), plain.score_samples(X), rtol=1e-9, atol=1e-9)
    counts = np.random.default_rng(2).poisson(3.0, (60, 2))
    one, plain = lk.MixtureDensity(lk.PoissonDensity(), 1).fit(counts), lk.PoissonDensity().fit(counts)
    np.testing.assert_allclose(one.score_samples(counts), plain.score_samples(counts), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["k-means++", "random", "split"])
def test_plain_clusters_are_found_from_every_start(start):
    m = lk.MixtureClusterer(n_components=3, init=start, n_init=3, random_state=0).fit(X)
    assert adjusted_rand_score(LABELS, m.labels_) > 0.9 and m.report_.converged
    np.testing.assert_array_equal(m.labels_, m.predict(X))
    P = m.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(P.argmax(axis=1), m.labels_)
    joint = np.log(m.weights_) + log_probs(m.model_.components, X)
    np.testing.assert_allclose(P, softmax(joint, axis=1), atol=1e-9)
    np.testing.assert_allclose(m.score_samples(X), logsumexp(joint, axis=1), rtol=1e-9)


def test_starts_that_the_user_gives():
    by_means = lk.MixtureDensity(n_components=3, init=CENTERS, prior=None).fit(X)
    by_model = lk.MixtureDensity(n_components=3, init=by_means.model_, prior=None).fit(X)
    assert by_model.report_.trace[0] == by_means.report_.objective
    by_shares = lk.MixtureDensity(n_components=3, init=np.eye(3)[LABELS], prior=None).fit(X)
    np.testing.assert_allclose(by_shares.model_.components.mean, by_means.model_.components.mean, atol=0.05)
    with pytest.raises(lk.ShapeError, match=r"init must be means \(3, 2\) .* or responsibilities \(300, 3\)"):
        lk.MixtureDensity(n_components=3, init=np.zeros((2, 2))).fit(X)
    for bad in (np.zeros((300, 3)), np.full((300, 3), -1.0), np.full((300, 3), np.nan), np.full((3, 2), np.inf)):
        with pytest.raises(lk.DomainError, match=r"responsibilities must not be negative|init must be finite"):
            lk.MixtureDensity(n_components=3, init=bad).fit(X)
    with pytest.raises(lk.ShapeError, match="init must be a Mixture of 4 components"):
        lk.MixtureDensity(n_components=4, init=by_means.model_).fit(X)


# ------------------------------------------------------------------ promises


COMPONENTS = {
    "full": lk.GaussianDensity(), "diagonal": lk.GaussianDensity("diagonal"), "pooled": lk.GaussianDensity("pooled"),
    "Poisson": lk.PoissonDensity(), "multinomial": lk.MultinomialDensity(), "Bernoulli": lk.BernoulliDensity(),
    "product": lk.ProductDensity(lk.GaussianDensity("diagonal")), "mixture": lk.MixtureDensity(n_components=2),
}  # fmt: skip


def rows_for(name, n=120, seed=3):
    rng = np.random.default_rng(seed)
    if name in ("Poisson", "multinomial"):
        return rng.poisson(rng.gamma(1.0, 6.0, (3, 4))[rng.integers(0, 3, n)]).astype(float)
    if name == "Bernoulli":
        return (rng.random((n, 6)) < rng.random((3, 6))[rng.integers(0, 3, n)]).astype(float)
    return X[:n]


def learner(name, **more):
    how = {"n_components": 3, "random_state": 0, "tol": 1e-10, "max_iter": 400, **more}
    return lk.MixtureDensity(COMPONENTS[name], **how)


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("name", COMPONENTS)
def test_a_weight_is_so_many_copies(name, hard):
    x, times = rows_for(name), np.random.default_rng(4).integers(0, 4, 120)
    a = learner(name, hard=hard).fit(x, sample_weight=times)
    b = learner(name, hard=hard).fit(np.repeat(x, times, axis=0))
    c = learner(name, hard=hard).fit(x[times > 0], sample_weight=times[times > 0])
    assert a.report_.iterations == b.report_.iterations
    assert gap(a.model_, b.model_) <= 1e-9 and gap(a.model_, c.model_) == 0.0
    assert a.report_.objective == pytest.approx(b.report_.objective, rel=1e-12)


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("name", COMPONENTS)
def test_the_order_of_rows_does_not_matter(name):
    x = rows_for(name)
    order = np.random.default_rng(5).permutation(120)
    a, b = learner(name).fit(x), learner(name).fit(x[order])
    assert gap(a.model_, b.model_) <= 1e-9


@pytest.mark.some_cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["full", "diagonal", "Poisson", "Bernoulli", "multinomial"])
def test_the_order_of_columns_does_not_matter(name):
    x = rows_for(name)
    order = np.random.default_rng(6).permutation(x.shape[1])
    a = learner(name, n_init=5).fit(x)
    b = learner(name, n_init=5).fit(x[:, order])  # another sketch, other seeds: the same summit
    assert a.report_.objective == pytest.approx(b.report_.objective, rel=1e-6)
    start = np.abs(np.random.default_rng(7).random((120, 3)))  # from the same start, step by step
    a, b = (learner(name, init=start, max_iter=6, tol=0.0).fit(z) for z in (x, x[:, order]))
    np.testing.assert_allclose(a.report_.trace, b.report_.trace, rtol=1e-9)


def test_blocks_of_other_sizes_and_engines():
    m = learner("full").fit(X)
    start = m._initial_model(X, None)
    runs = [fit(start, lk.core.Blocks.of(X, rows=r, blocks=b), prior="weak", engine=e, stop=StoppingRule(25, 0.0))
            for r, b,
            e in ((4096, 16, None), (64, 2, Serial()), (64, 2, lk.core.Threads(2)), (17, 1, None))]  # fmt: skip
    assert runs[1].trace == runs[2].trace and gap(runs[1].model, runs[2].model) == 0.0
    for other in runs[1:]:
        assert gap(runs[0].model, other.model) <= 1e-9
        passes = min(len(other.trace), len(runs[0].trace))  # with tol=0 a run ends where rounding lets it
        np.testing.assert_allclose(other.trace[:passes], runs[0].trace[:passes], rtol=1e-11)


@pytest.mark.parametrize("name", ["full", "diagonal", "pooled"])
def test_single_precision_is_honored(name):
    small = X.astype(np.float32)
    a, b = learner(name).fit(small), learner(name).fit(small.astype(np.float64))
    assert gap(a.model_, b.model_) <= 1e-9
    assert a.score_samples(small).dtype == np.float32 and a.impute(small).dtype == np.float32
    a, c = learner(name, init=CENTERS).fit(small), learner(name, init=CENTERS).fit(X)
    agree = (c.model_.posterior(X).argmax(axis=1) == a.model_.posterior(small).argmax(axis=1)).mean()
    assert agree >= 0.999


def test_sparse_counts_stay_sparse_and_give_the_same():
    x = rows_for("multinomial", 200)
    for name in ("multinomial", "Bernoulli"):
        z = x if name == "multinomial" else (x > 2).astype(float)
        shares = np.random.default_rng(8).dirichlet(np.ones(3), 200)
        a, b = (learner(name, init=shares).fit(rows) for rows in (z, csr_matrix(z)))
        assert gap(a.model_, b.model_) <= 1e-8
        np.testing.assert_allclose(b.score_samples(csr_matrix(z)), a.score_samples(z), rtol=1e-9)


def test_products_of_unlike_parts_with_sparse_words():
    rng = np.random.default_rng(9)
    own = rng.integers(0, 2, 200)
    topics = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])
    words = csr_matrix(np.array([rng.multinomial(12, topics[k]) for k in own]))
    rows = lk.core.Columns(real=rng.normal(own[:, None] * 2.0, 1.0, (200, 2)), words=words)
    parts = [("real", lk.GaussianDensity("diagonal")), ("words", lk.MultinomialDensity(prior=2.0))]
    m = lk.MixtureDensity(lk.ProductDensity(parts), 2, random_state=0).fit(rows)
    found = m.model_.log_joint(rows).argmax(axis=1)
    assert adjusted_rand_score(own, found) > 0.9 and m.report_.converged
    assert m.model_.components["words"].probs.argmax(axis=1).tolist() in ([0, 3], [3, 0])


# ------------------------------------------------------------------------ streams


def test_after_fit_statistics_add_and_the_stream_learns():
    rng = np.random.default_rng(10)
    stream = [CENTERS[rng.integers(0, 3, 200)] + rng.standard_normal((200, 2)) for _ in range(12)]
    m = lk.MixtureDensity(n_components=3, random_state=0).partial_fit(stream[0])
    before = m.score(np.concatenate(stream))
    for rows in stream[1:]:
        m.partial_fit(rows)
    batch = lk.MixtureDensity(n_components=3, random_state=0, n_init=3).fit(np.concatenate(stream))
    assert m.score(np.concatenate(stream)) >= max(before, batch.score(np.concatenate(stream)) - 0.01)
    assert m.stats_.total_weight == pytest.approx(2400.0) and not m.report_.converged


def test_one_step_of_a_stream_is_the_formula():
    """A_t = (1 − η) A_{t−1} + η s_t a row, η = (n_t / N_t)^0.7; after `fit` the statistics just add."""
    a, b = X[:200], X[200:]
    m = lk.MixtureDensity(n_components=2, random_state=0, prior=None).partial_fit(a)
    old, model = m.stats_, m.model_
    new = model.collect(b)
    eta = (100 / 300) ** 0.7
    m.partial_fit(b)
    want = old.counts * (300 * (1 - eta) / 200) + new.counts * (300 * eta / 100)
    np.testing.assert_allclose(m.stats_.counts, want, rtol=1e-10)
    np.testing.assert_allclose(m.weights_, want / 300, rtol=1e-10)
    m = lk.MixtureDensity(n_components=2, random_state=0, prior=None).fit(a)
    old, new = m.stats_, m.model_.collect(b)
    np.testing.assert_allclose(m.partial_fit(b).stats_.counts, old.counts + new.counts, rtol=1e-10)


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("name", COMPONENTS)
def test_streams_take_weights_and_rows_of_any_number(name):
    x = rows_for(name)
    m = learner(name).partial_fit(x[:60])
    for a, b in ((60, 61), (61, 100), (100, 120)):
        m.partial_fit(x[a:b], sample_weight=np.full(b - a, 2.0))
    assert m.stats_.total_weight == pytest.approx(60 + 2 * 60)
    assert np.isfinite(m.score_samples(x)).all()
    same = learner(name).partial_fit(x[:60]).partial_fit(np.repeat(x[60:90], 2, axis=0))
    other = learner(name).partial_fit(x[:60]).partial_fit(x[60:90], sample_weight=np.full(30, 2.0))
    assert gap(same.model_, other.model_) <= 1e-9


# ------------------------------------------------------------------------ emptying


@pytest.mark.parametrize("a", [0.1, 0.5, 0.9])
def test_a_sparse_prior_empties_and_never_turns_negative(a):
    m = lk.MixtureDensity(n_components=12, prior=a, random_state=0, max_iter=500).fit(X[:60])
    assert (m.weights_ > 0).all() and m.weights_.sum() == pytest.approx(1.0, abs=1e-9)
    alive = m.model_.pruned()
    assert alive.size <= 12 and (m.model_.collect(X[:60]).counts[m.weights_ > 1e-9] > 1 - a - 1e-6).all()
    np.testing.assert_allclose(alive.log_prob(X), m.score_samples(X), rtol=1e-6)


@pytest.mark.slow
def test_a_price_for_parts_finds_how_many_there_are():
    price = lk.priors.SparseWeights.costing(12, 2.5)  # half of the five parameters of a part
    m = lk.MixtureDensity(n_components=12, prior=price, random_state=0, n_init=4, max_iter=2000).fit(X)
    assert m.model_.pruned().size == 3 and len(m.report_.empty_components) == 9
    assert adjusted_rand_score(LABELS, m.model_.log_joint(X).argmax(axis=1)) > 0.9
    assert (np.diff(m.report_.trace) >= -1e-8 * np.abs(m.report_.trace[0])).all()


def test_a_dirichlet_prior_pulls_weights_toward_each_other():
    few = X[:30]
    flat, strong = (lk.MixtureDensity(n_components=3, prior=p, init=CENTERS).fit(few) for p in (1.0, 1000.0))
    np.testing.assert_allclose(strong.weights_, 1 / 3, atol=0.01)
    counts = flat.stats_.counts
    refitted = flat.model_.refit(flat.stats_, flat.prior_).weights
    np.testing.assert_allclose(refitted, counts / counts.sum(), rtol=1e-10)


def test_empty_components_are_set_anew():
    """Two seeds on one point: one of the two dies, and is sent where it helps."""
    x = np.concatenate([np.random.default_rng(11).normal(m, 0.3, (50, 1)) for m in (0.0, 5.0, 10.0)])
    start = lk.Mixture([0.5, 0.5 - 1e-12, 1e-12], lk.Gaussian([[0.0], [7.0], [500.0]], [[[1.0]], [[9.0]], [[1e-3]]]))
    m = lk.MixtureDensity(n_components=3, init=start, max_iter=500).fit(x)
    assert not m.report_.empty_components and m.report_.reseeded >= 1 and "set anew" in str(m.report_)
    np.testing.assert_allclose(np.sort(m.model_.components.mean[:, 0]), [0.0, 5.0, 10.0], atol=0.3)


# ------------------------------------------------------------------------- gaps


def test_missing_values_are_learned_and_filled():
    x = X.copy()
    x[np.random.default_rng(12).random(x.shape) < 0.2] = np.nan
    m = lk.MixtureDensity(n_components=3, random_state=0, n_init=3).fit(x)
    assert m.report_.objective == pytest.approx(
        float(m.score_samples(x).sum()) + float(m.prior_.log_density(m.model_)), rel=1e-9
    )
    filled = m.impute(x)
    gaps = np.isnan(x)
    error = np.sqrt(np.mean((filled[gaps] - X[gaps]) ** 2))
    by_mean = np.where(gaps, np.nanmean(x, axis=0), x)
    assert error < 0.8 * np.sqrt(np.mean((by_mean[gaps] - X[gaps]) ** 2))
    drawn = m.impute(x, random_state=0)
    assert (drawn[~gaps] == x[~gaps]).all() and np.isfinite(drawn).all() and (drawn[gaps] != filled[gaps]).all()


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("tie", ["covariance", "covariance per class"])
def test_a_lone_mixture_can_have_one_covariance(kind, tie):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, [1.0, 0.5], (80, 2)) for m in (-4.0, 0.0, 4.0)])
    how = {"prior": None, "random_state": 0, "tol": 1e-12}
    m = lk.MixtureDensity(lk.GaussianDensity(kind), 3, tie=tie, **how).fit(x)
    assert m.model_.components.tied and m.report_.converged
    r = np.exp(m.model_.log_joint(x) - m.model_.log_prob(x)[:, None])
    means = (r.T @ x) / r.sum(axis=0)[:, None]
    z = x[:, None] - means
    pooled = np.einsum("nk,nki,nkj->ij", r, z, z) / len(x)
    wanted = {"full": pooled, "diagonal": np.diag(pooled), "spherical": np.trace(pooled) / 2}[kind]
    np.testing.assert_allclose(m.model_.components.covariance, wanted, rtol=1e-5)
    if kind == "full":
        peer = GaussianMixture(3, covariance_type="tied", tol=1e-10, random_state=0, max_iter=1000).fit(x)
        assert m.score(x) == pytest.approx(peer.score(x), abs=1e-6)


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_each_class_can_have_one_covariance_for_its_components(kind):
    density = lk.MixtureDensity(lk.GaussianDensity(kind), 2, tie="covariance per class", random_state=0)
    clf = lk.BayesClassifier(density).fit(X, LABELS)
    found = clf.model_.components.components.components.covariance
    C = len(clf.classes_)
    assert len(found) == 2 * C
    for c in range(C):
        np.testing.assert_array_equal(found[2 * c], found[2 * c + 1])
    assert not np.allclose(found[0], found[2])
    with pytest.raises(lk.DomainError, match="is redundant for these"):
        lk.MixtureDensity(lk.GaussianDensity("shrunk-diagonal"), 2, tie="covariance").fit(X)


@pytest.mark.parametrize("prior", [0.5, 0.0, -1.0])
@pytest.mark.parametrize("given", [False, True])
def test_the_objective_is_finite_where_a_prior_empties_components(prior, given):
    """More components than rows begin with a weight of 0, where a sparse prior has an infinite density."""
    x = np.random.default_rng(0).normal(size=(5, 2))
    start = "k-means++"
    if given:
        start = lk.Mixture([0.5, 0.5, *[0.0] * 6], lk.Gaussian(np.tile(x, (2, 1))[:8], np.stack([np.eye(2)] * 8)))
    report = lk.MixtureDensity(n_components=8, prior=prior, init=start, random_state=0).fit(x).report_
    assert np.isfinite(report.trace).all() and (np.diff(report.trace) > -1e-9).all() and report.converged


@pytest.mark.slow
@pytest.mark.some_cases(2)
@pytest.mark.parametrize("how", [{}, {"n_init": 3}, {"init": "random"}, {"tie": "covariance"}], ids=str)
def test_names_and_order_of_classes_do_not_matter(how):
    rng = np.random.default_rng(0)
    x, y = np.concatenate([rng.normal(m, 1.0, (50, 2)) for m in range(3)]), np.repeat([0, 1, 2], 50)
    other = np.array([2, 0, 1])
    density = lk.MixtureDensity(lk.GaussianDensity(), 3, random_state=0, **how)
    a = lk.BayesClassifier(density).fit(x, y).predict_proba(x)
    b = lk.BayesClassifier(density).fit(x, other[y]).predict_proba(x)
    np.testing.assert_allclose(b[:, other], a, atol=1e-8)


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="n_components"):
        lk.MixtureDensity(n_components=0).fit(X)
    with pytest.raises(ValueError, match="init"):
        lk.MixtureDensity(n_components=2, init="somewhere").fit(X)
    with pytest.raises(lk.DomainError, match='tie="covariance" needs Gaussian components'):
        density = lk.MixtureDensity(lk.PoissonDensity(), 2, tie="covariance")
        lk.BayesClassifier(density).fit(np.abs(np.round(X)), LABELS)
    with pytest.raises(ValueError, match="prior"):
        lk.MixtureDensity(n_components=2, prior="strong").fit(X)
    with pytest.raises(lk.DomainError, match="a distribution of 3 weights"):
        lk.MixtureDensity(n_components=3, prior=lk.Dirichlet([1.0, 1.0])).fit(X)
    with pytest.raises(lk.DataError, match="column 1 must be numbers"):
        lk.MixtureDensity(n_components=2).fit(np.array([["1", "a"], ["2", "b"]], dtype=object))


def test_files_bring_the_same_bits_back(tmp_path):
    for m in (lk.MixtureDensity(n_components=3, random_state=0).fit(X), lk.MixtureClusterer(n_components=3).fit(X)):
        m.save(tmp_path / "m.likely")
        again = lk.load(tmp_path / "m.likely")
        assert again.score_samples(X).tobytes() == m.score_samples(X).tobytes()
        more, same = again.partial_fit(X[:50]), m.partial_fit(X[:50])
        assert more.score_samples(X).tobytes() == same.score_samples(X).tobytes()


@pytest.mark.slow
def test_missing_entries_cost_the_weak_prior_no_more_than_their_information():
    """0.5 nats per row, when the prior was made of rows that parts without correlations had filled."""

    def draw(n, rng):
        causes = np.random.default_rng(7).normal(size=(2, 6))
        one, other = (rng.normal(size=(n, 2)) @ causes + 0.1 * rng.normal(size=(n, 6)) for _ in range(2))
        return np.where(rng.random((n, 1)) < 0.4, one, other[:, ::-1] + 3)

    new, lost = draw(2000, np.random.default_rng(98)), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = draw(100, rng)
        gaps = np.where(rng.random(rows.shape) < 0.15, np.nan, rows)
        scores = [lk.MixtureDensity(n_components=2, random_state=0).fit(X).score(new) for X in (rows, gaps)]
        lost.append(scores[0] - scores[1])
    assert np.mean(lost) < 0.35
