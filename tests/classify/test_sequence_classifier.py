"""A classifier of sequences does all that a classifier of rows does, or says in words why not."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import likely as lk
from likely.core.errors import DataError, LikelyError
from likely.core.ragged import Ragged

CYCLE = np.array([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])
CORNERS = lk.Gaussian([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], np.tile(np.eye(2), (3, 1, 1)))
FORWARDS, BACKWARDS = (lk.HMM(np.full(3, 1 / 3), moves, CORNERS) for moves in (CYCLE, CYCLE.T.copy()))


def some(n: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Two classes with the same frames in another order: only the chain tells them apart."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(25, 60, n)
    half = n // 2
    both = [*FORWARDS.sample(half, rng, lengths[:half]), *BACKWARDS.sample(half, rng, lengths[half:])]
    return both, np.repeat(["forwards", "backwards"], half)


X, Y = some(40, 0)
NEW, TRUTH = some(200, 1)


def density(**settings: Any) -> Any:
    return lk.HMMDensity(lk.GaussianDensity("diagonal"), 3, random_state=0, max_iter=30, tol=1e-4, **settings)


def classifier(**settings: Any) -> lk.BayesClassifier:
    return lk.BayesClassifier(density(), **settings)


@pytest.fixture(scope="module")
def clf() -> lk.BayesClassifier:
    return classifier().fit(X, Y)


def test_the_order_of_frames_decides(clf: lk.BayesClassifier) -> None:
    assert clf.score(NEW, TRUTH) > 0.9
    frames = lk.BayesClassifier(density().set_params(n_states=1)).fit(X, Y)
    assert frames.score(NEW, TRUTH) < 0.7


def test_posteriors_are_those_of_bayes(clf: lk.BayesClassifier) -> None:
    logs = np.stack([clf.model_.components.member(c).log_prob(NEW) for c in range(2)], axis=1) + np.log(
        clf.class_prior_
    )
    assert_allclose(clf.log_posterior(NEW), logs - np.logaddexp.reduce(logs, axis=1)[:, None], atol=1e-9)
    assert_allclose(clf.score_samples(NEW), np.logaddexp.reduce(logs, axis=1), rtol=1e-12)


@pytest.mark.parametrize("form", ["list", "ragged", "block"])
def test_sequences_in_any_form(clf: lk.BayesClassifier, form: str) -> None:
    cut = [x[:25] for x in NEW]
    given: Any = {"list": cut, "ragged": Ragged.from_list(cut), "block": np.stack(cut)}[form]
    assert_array_equal(clf.predict(given), clf.predict(cut))
    assert clf.predict(NEW[0]).shape == (1,)


def test_weights_are_copies_and_zero_is_absence() -> None:
    w = np.arange(40) % 3
    copies = np.repeat(np.arange(40), w)
    one = classifier().fit(X, Y, sample_weight=w)
    other = classifier().fit([X[i] for i in copies], Y[copies])
    assert_allclose(one.log_posterior(NEW), other.log_posterior(NEW), atol=1e-6)


def test_decisions_costs_priors_and_rejections(clf: lk.BayesClassifier) -> None:
    dear = classifier(cost=[[0.0, 1.0], [1e30, 0.0]]).fit(X, Y)
    assert set(dear.decide(NEW)) == {"backwards"}
    assert lk.REJECT in set(clf.decide(NEW, reject_below=1 - 1e-6))
    fixed = classifier(class_prior={"forwards": 0.9, "backwards": 0.1}).fit(X, Y)
    assert_allclose(fixed.class_prior_, [0.1, 0.9])
    moved = clf.with_class_prior([0.1, 0.9])
    assert_allclose(moved.log_posterior(NEW), fixed.log_posterior(NEW), atol=1e-6)
    assert_allclose(classifier(class_prior=3.0).fit(X[:30], Y[:30]).class_prior_, [13 / 36, 23 / 36])


@pytest.mark.slow
def test_each_sequence_left_out(clf: lk.BayesClassifier) -> None:
    some_of = np.arange(0, 40, 4)
    x, y = [X[i] for i in some_of], Y[some_of]
    found = classifier().leave_one_out(x, y)
    for i in (0, 7):
        rest = np.delete(np.arange(10), i)
        alone = classifier().fit([x[j] for j in rest], y[rest])
        assert_allclose(found[i], alone.log_posterior([x[i]])[0], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("form", [list, Ragged.from_list])
def test_folds_and_searches(form: Any) -> None:
    x = form(X)
    assert cross_val_score(classifier(), x, Y, cv=3).mean() > 0.7
    assert cross_val_predict(classifier(), x, Y, cv=3, method="predict_proba").shape == (40, 2)
    search = GridSearchCV(classifier(), {"density__n_states": [1, 3]}, cv=3).fit(x, Y)
    assert search.best_params_ == {"density__n_states": 3}
    judged = lk.evaluate(classifier(), x, Y, cv=5)
    assert judged.error.value < 0.4


@pytest.mark.slow
def test_calibrated() -> None:
    honest = lk.CalibratedClassifier(classifier()).fit(X, Y)
    shares = honest.predict_proba(NEW)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert honest.score(NEW, TRUTH) > 0.85


def test_labels_that_are_missing(clf: lk.BayesClassifier) -> None:
    labels = Y.astype(object)
    labels[::3] = None
    assert classifier().fit(X, labels).score(NEW, TRUTH) > 0.8
    assert clf.score(X, labels) == clf.score([X[i] for i in np.arange(40) if i % 3], Y[np.arange(40) % 3 > 0])


def test_a_stream(clf: lk.BayesClassifier) -> None:
    stream = classifier()
    for part in (slice(0, 40, 2), slice(1, 40, 2)):
        stream.partial_fit(X[part], Y[part])
    assert stream.score(NEW, TRUTH) > 0.85
    assert stream.class_count_.tolist() == [20, 20]
    assert np.isfinite(stream.novelty_score(NEW)).all()
    with pytest.raises(LikelyError, match="sideways"):
        stream.partial_fit(X[:1], ["sideways"])


def test_entries_and_frames_that_are_missing(clf: lk.BayesClassifier) -> None:
    rng = np.random.default_rng(2)
    holed = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    assert classifier().fit(holed, Y).score(NEW, TRUTH) > 0.85
    dark = np.full((9, 2), np.nan)
    assert_allclose(clf.predict_proba([dark, np.empty((0, 2))]), np.tile(clf.class_prior_, (2, 1)), atol=1e-12)
    padded = [np.concatenate([x, dark]) for x in NEW[:5]]
    assert_allclose(clf.log_posterior(padded), clf.log_posterior(NEW[:5]), atol=1e-9)


def test_frames_in_single_precision(clf: lk.BayesClassifier) -> None:
    small = [x.astype(np.float32) for x in NEW[:20]]
    assert clf.log_posterior(small).dtype == np.float64
    assert_allclose(clf.log_posterior(small), clf.log_posterior(NEW[:20]), atol=1e-3)


def test_levels_never_seen_are_novel() -> None:
    words = [list("aabbaab"), list("aaabab"), list("bbbabb"), list("bbbbab")]
    clf = lk.BayesClassifier(lk.HMMDensity(lk.CategoricalDensity(), 2, random_state=0)).fit(words, [0, 0, 1, 1])
    assert np.isposinf(clf.novelty_score([list("abz")])[0])
    with pytest.warns(lk.FitWarning, match="too small for 4 rows"):
        assert clf.decide([list("abz")], novelty=0.1)[0] is lk.NOVEL


def test_sequences_too_short_for_a_word() -> None:
    words = classifier().set_params(density__topology="left-to-right").fit(X, Y)
    assert_allclose(words.predict_proba([NEW[0][:2]])[0], words.class_prior_)  # nobody can explain it
    assert np.isposinf(words.novelty_score([NEW[0][:2]])[0])
    with pytest.raises(DataError, match="at least 3 frames"):
        classifier().set_params(density__topology="left-to-right").fit([x[:2] for x in X], Y)


def test_draws(clf: lk.BayesClassifier) -> None:
    words = classifier().set_params(density__topology="left-to-right").fit(X, Y)
    x, y = words.sample(20, 0)
    assert len(x) == len(y) == 20
    assert (x.lengths >= 3).all()
    with pytest.raises(LikelyError, match="never stops"):
        clf.sample(3, 0)


def test_one_class_and_one_sequence_a_class() -> None:
    assert set(classifier().fit(X, ["same"] * 40).predict(NEW)) == {"same"}
    with pytest.warns(lk.FitWarning, match="one row each"):
        lone = classifier().fit([X[0], X[-1]], ["u", "v"])
    assert np.isfinite(lone.log_posterior(NEW)).all()


def test_copies_are_the_same(clf: lk.BayesClassifier) -> None:
    assert_array_equal(pickle.loads(pickle.dumps(clf)).log_posterior(NEW), clf.log_posterior(NEW))
    assert not hasattr(clone(clf), "model_")
    assert_allclose(clone(clf).fit(X, Y).log_posterior(NEW), clf.log_posterior(NEW))


def test_what_is_wrong_is_said_in_words(clf: lk.BayesClassifier) -> None:
    with pytest.raises(DataError, match="sequence 1, frame 2, column 0"):
        clf.predict([X[0], np.array([[0.0, 0.0], [0.0, 0.0], [np.inf, 0.0]])])
    with pytest.raises(DataError, match="at least one sequence"):
        clf.predict([])
    with pytest.raises(DataError, match="sequences of frames are needed"):
        clf.predict(None)
    with pytest.raises(DataError, match=r"one label per sequence of X, got \d+ labels for \d+ sequences"):
        classifier().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="3 features"):
        clf.predict([np.zeros((5, 3))])


def test_columns_of_sequences_are_explained(clf: lk.BayesClassifier) -> None:
    told = clf.explain(NEW[:3])
    assert told.log_odds.shape == (3, 2)
    dark = [np.column_stack([np.full(len(x), np.nan), x[:, 1]]) for x in NEW[:3]]
    both, one = clf.model_.log_joint(Ragged.from_list(NEW[:3])), clf.model_.log_joint(Ragged.from_list(dark))
    gain, at = both - one, np.arange(3)
    won, lost = (np.searchsorted(clf.classes_, names) for names in (told.decided, told.runner_up))
    assert_allclose(told.log_odds[:, 0], gain[at, won] - gain[at, lost])
    assert "x1" in str(told)


def test_frames_of_sequences_are_explained_and_add_up(clf: lk.BayesClassifier) -> None:
    told, joint, at = clf.explain(NEW[:3]), clf.model_.log_joint(Ragged.from_list(NEW[:3])), np.arange(3)
    won, lost = (np.searchsorted(clf.classes_, names) for names in (told.decided, told.runner_up))
    assert told.frames is not None and [len(one) for one in told.frames] == [len(x) for x in NEW[:3]]
    whole = told.prior_log_odds + [one.sum() for one in told.frames]
    assert_allclose(whole, joint[at, won] - joint[at, lost])
    a, b = (clf.model_.components.member(int(side[0])) for side in (won, lost))
    first = [a.log_prob([NEW[0][: t + 1]])[0] - b.log_prob([NEW[0][: t + 1]])[0] for t in range(3)]  # of the beginning
    assert_allclose(told.frames[0][:3].cumsum(), first)
    page = told.pages(["n0", "n1", "n2"])[0]
    assert page.title.startswith("sequence n0: ") and page["frames with the most evidence"].rows[-1][0] == "all frames"
    assert next(iter(told.records()))["frames"] == told.frames[0].tolist() and told.note.endswith(
        "log-odds of the posterior."
    )


def test_rows_have_no_frames() -> None:
    told = lk.BayesClassifier().fit([[0.0], [1.0], [4.0], [5.0]], list("aabb")).explain([[0.5]])
    assert told.frames is None and "frame" not in str(told) and "frames" not in next(iter(told.records()))


def test_draws_of_a_length(clf: lk.BayesClassifier) -> None:
    x, y = clf.sample(7, 0, length=5)
    assert x.lengths.tolist() == [5] * 7
    assert len(y) == 7


@pytest.mark.slow
def test_the_summary_of_a_chain() -> None:
    page = density().fit(X).summary()
    assert len([row for row in page["parameters"].rows if row.parameter.startswith("to ")]) == 9
    assert "HMMPrior" in str(page)
