"""Hazards of mixtures: uninformative columns, row order, small streams, ties of every component."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.em_loop import StoppingRule, fit, iterate, mean_log_prob

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")


def blobs(seed=0, n=160, centers=((0, 0), (6, 0), (3, 6))):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, 1.0, (n, len(c))) for c in centers])


# ------------------------------------------------------- columns that say nothing


@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_a_constant_column_changes_nothing(kind, prior):
    X = blobs()
    m = lk.MixtureDensity(lk.GaussianDensity(kind), 3, prior=prior, random_state=0, max_iter=300)
    plain, more = m.fit(X), lk.MixtureDensity(lk.GaussianDensity(kind), 3, prior=prior, random_state=0, max_iter=300)
    more.fit(np.c_[X, np.full(len(X), 3.0)])
    assert more.report_.converged and more.report_.iterations > 0
    order = np.argsort(plain.model_.components.mean[:, 0]), np.argsort(more.model_.components.mean[:, 0])
    a, b = plain.model_.components.mean[order[0]], more.model_.components.mean[order[1], :2]
    np.testing.assert_allclose(a, b, atol=0.02)


@pytest.mark.slow
@pytest.mark.some_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_columns_does_not_multiply_clusters(seed):
    X = blobs(seed)
    found = lk.MixtureClusterer(n_components=None, random_state=0).fit(np.c_[X, X.sum(axis=1)])
    assert found.n_components_ == 3
    one = np.random.default_rng(seed).normal(size=(400, 2))
    assert lk.MixtureClusterer(n_components=None, random_state=0).fit(np.c_[one, one.sum(axis=1)]).n_components_ == 1


# --------------------------------------------------------------- order and copies


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [0.0, 0.25])
def test_neither_order_nor_copies_matter(gaps):
    X = blobs(n=700)
    X = np.where(np.random.default_rng(1).random(X.shape) < gaps, np.nan, X)
    m = lk.MixtureDensity(n_components=3, random_state=0, max_iter=15)
    a, b = m.fit(X).report_.objective, m.fit(X[::-1]).report_.objective
    assert a == pytest.approx(b, rel=1e-9)
    w = np.random.default_rng(2).integers(1, 4, 300)
    a, b = m.fit(X[:300], sample_weight=w).report_.objective, m.fit(np.repeat(X[:300], w, axis=0)).report_.objective
    assert a == pytest.approx(b, rel=1e-9)


# ------------------------------------------------------------------------ streams


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3])
def test_a_stream_of_very_small_blocks_finds_all_components(rows):
    X = blobs()[np.random.default_rng(3).permutation(480)]
    m = lk.MixtureDensity(n_components=3, random_state=0)
    for block in np.array_split(X, 480 // rows):
        m.partial_fit(block)
    assert (
        m.weights_.min() > 0.2 and m.score(X) > lk.MixtureDensity(n_components=3, random_state=0).fit(X).score(X) - 0.2
    )
    assert "stream" in str(m.report_) and "NOT" not in str(m.report_)


# -------------------------------------------------------------------------- ties

COUNTS = np.abs(blobs()).round()
LABELS = np.repeat(["a", "b", "a"], 160)
COMPONENTS = [
    lk.ProductDensity(lk.GaussianDensity("diagonal")), lk.MultinomialDensity(prior=2.0),
    lk.mixture.ContaminatedDensity(),
    lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2), lk.CategoricalDensity(), lk.FactorAnalysis(1),
    lk.decomposition.PPCA(1),
    lk.PoissonDensity(), lk.BernoulliDensity(), lk.GaussianDensity("pooled"), lk.GaussianDensity("full"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.some_cases(4)
@pytest.mark.parametrize("tie", [None, "all"])
@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: type(c).__name__)
def test_every_component_learns_in_classes_with_every_tie(component, tie):
    clf = lk.BayesClassifier(lk.MixtureDensity(component, 2, tie=tie, random_state=0, max_iter=5)).fit(COUNTS, LABELS)
    clf.partial_fit(COUNTS[:50], LABELS[:50])
    posterior = clf.predict_proba(COUNTS)
    assert np.isfinite(posterior).all() and posterior.sum(axis=1) == pytest.approx(1.0)
    assert clf.report_.component_counts is None or clf.report_.component_counts.sum() == pytest.approx(530.0)


def test_components_of_classes_are_in_the_report():
    clf = lk.BayesClassifier(lk.MixtureDensity(n_components=4, random_state=0)).fit(
        np.repeat([[0.0], [9.0]], 8, 0), [0] * 8 + [1] * 8
    )
    assert clf.report_.component_counts.shape == (2, 4) and len(clf.report_.empty_components) == 6


# -------------------------------------------------------------------------- labels


def test_a_fixed_class_prior_holds_within_em():
    X = blobs()
    y = np.where(np.random.default_rng(0).random(480) < 0.9, None, LABELS)
    for shares in ([0.9, 0.1], [0.5, 0.5]):
        clf = lk.BayesClassifier(lk.GaussianDensity(), class_prior=shares).fit(X, y)
        given = np.where(y[:, None] == None, 0.0, np.where(y[:, None] == clf.classes_, 0.0, -np.inf))  # noqa: E711
        again = clf.model_.refit(
            clf.model_.collect(X, log_mask=given), clf.prior_
        )  # a fixed point of EM with these weights
        np.testing.assert_allclose(clf.model_.weights, shares)
        np.testing.assert_allclose(again.components.mean, clf.model_.components.mean, atol=2e-2)


@pytest.mark.parametrize("hard", [False, True])
def test_a_label_stands_also_where_its_class_finds_the_row_impossible(hard):
    m = lk.Mixture([0.9, 0.1], lk.Bernoulli([[0.5, 0.5], [0.0, 0.5]]))
    given = np.tile([-np.inf, 0.0], (3, 1))
    assert m.collect(np.ones((3, 2)), log_mask=given, hard=hard).counts == pytest.approx([0.0, 3.0])


def test_hard_streams_of_classifiers_count_whole_rows():
    X = blobs()
    clf = lk.BayesClassifier(lk.MixtureDensity(n_components=2, hard=True, random_state=0)).fit(X, LABELS)
    clf.partial_fit(X[:100], LABELS[:100])
    counts = clf.stats_.components.counts
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)


def test_clusters_of_rows_with_a_level_never_seen_go_by_the_rest():
    place = np.repeat([-4.0, 0.0, 4.0], 50) + np.random.default_rng(0).normal(0, 0.3, 150)
    rows = lk.core.Columns(a=place[:, None], c=np.tile(["x", "y"], 75))
    parts = [("a", lk.GaussianDensity()), ("c", lk.CategoricalDensity())]
    m = lk.MixtureClusterer(lk.ProductDensity(parts), 3, random_state=0).fit(rows)
    new = lk.core.Columns(a=np.array([[-4.0], [0.0], [4.0]]), c=["zzz"] * 3)
    assert len(set(m.predict(new))) == 3 and (m.predict(new) == m.predict_proba(new).argmax(axis=1)).all()


# ------------------------------------------------------------------------ stopping


@pytest.mark.parametrize("stop", [StoppingRule(3, 0.0), StoppingRule(100, 0.02), StoppingRule(100, 0.0)])
def test_rows_set_aside_choose_the_model_however_learning_ends(stop):
    rng = np.random.default_rng(5)
    X, aside = rng.normal(size=(40, 2)), rng.normal(size=(400, 2))
    start = lk.Mixture(np.full(6, 1 / 6), lk.Gaussian(X[:6], np.full((6, 2), 0.5), kind="diagonal"))
    report = fit(start, X, prior="weak", held_out=aside, stop=stop)
    seen = [
        mean_log_prob(s.model, aside)
        for s, _ in zip(iterate(start, X, prior="weak"), range(len(report.held_out)), strict=False)
    ]
    assert mean_log_prob(report.model, aside) == pytest.approx(max(seen), rel=1e-12)


@pytest.mark.slow
def test_a_checkpoint_goes_on_where_more_is_asked_for_and_refuses_another_prior(tmp_path):
    X, path = blobs(), str(tmp_path / "em")
    settings = {"n_components": 4, "random_state": 0}
    short = lk.MixtureDensity(**settings, max_iter=3).fit(X, checkpoint=path)
    long = lk.MixtureDensity(**settings, max_iter=400).fit(X, checkpoint=lk.core.Checkpoint(path))
    whole = lk.MixtureDensity(**settings, max_iter=400).fit(X)
    assert short.report_.iterations == 3 and long.report_.trace == whole.report_.trace
    assert (long.model_.components.mean == whole.model_.components.mean).all()
    with pytest.raises(lk.DataError, match="the prior must be the requested one, none"):
        lk.MixtureDensity(**settings, prior=None).fit(X, checkpoint=path)
    finer = lk.MixtureDensity(**settings, max_iter=2000, tol=1e-9).fit(X, checkpoint=path)
    assert finer.report_.iterations > long.report_.iterations


def test_rows_that_no_part_can_explain_are_said():
    m = lk.Mixture([0.5, 0.5], lk.mixture.FixedComponents(lk.Gaussian([[0.0], [1.0]], 1.0)))
    report = fit(m, np.array([[0.0], [1e200]]), stop=StoppingRule(5))
    assert not report.converged and "density 0 under every component" in report.reason


# -------------------------------------------------------------------------- starts


@pytest.mark.parametrize("start", ["split", "random", "responsibilities"])
@pytest.mark.parametrize("prior", ["weak", None])
def test_every_start_takes_products_of_unlike_parts(start, prior):
    rows = lk.core.Columns(place=blobs(), word=np.tile(["x", "y", "x"], 160))
    parts = [("place", lk.GaussianDensity()), ("word", lk.CategoricalDensity())]
    given = np.random.default_rng(0).dirichlet(np.ones(3), 480) if start == "responsibilities" else start
    m = lk.MixtureDensity(lk.ProductDensity(parts), 3, init=given, prior=prior, random_state=0, max_iter=300).fit(rows)
    assert m.report_.converged and np.isfinite(m.score(rows))
