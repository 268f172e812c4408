"""HMMDensity: input formats, initialization, known states, streams, classifiers, and invalid data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import likely as lk
from likely import DataError, LikelyError, Ragged

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")


def words(n=12, seed=0, d=2, swap=False):
    """Sequences that go from one cloud to another; swapped, the other way."""
    rng = np.random.default_rng(seed)
    clouds = [0.0, 6.0][:: -1 if swap else 1]
    return [np.concatenate([rng.normal(m, 1, (int(rng.integers(3, 9)), d)) for m in clouds]) for _ in range(n)]


def two(**how):
    how = {"n_states": 2, "random_state": 0, "max_iter": 30, **how}
    return lk.HMMDensity(how.pop("component", lk.GaussianDensity("diagonal")), **how)


# ------------------------------------------------------------------- forms of sequences


@pytest.mark.slow
def test_all_forms_of_sequences_agree():
    x = words()
    lengths = [len(s) for s in x]
    want = two().fit(x)
    for other in (two().fit(Ragged.from_list(x)), two().fit(np.concatenate(x), lengths=lengths),
                  two().fit([s.tolist() for s in x])):  # fmt: skip
        assert other.score_samples(x).tobytes() == want.score_samples(x).tobytes()
    assert want.score_samples(np.concatenate(x), lengths=lengths).tobytes() == want.score_samples(x).tobytes()
    cube = np.stack([s[:6] for s in x])
    assert two().fit(cube).score(cube) == two().fit(list(cube)).score(list(cube))
    assert want.predict(x[0]).shape == (len(x[0]),) and want.predict(x).lengths.tolist() == lengths
    assert np.allclose(want.predict_proba(x[0]).sum(axis=1), 1)


def test_single_precision_is_honored():
    x = [s.astype(np.float32) for s in words()]
    h = two().fit(x)
    assert h.score_samples(x).dtype == np.float32
    double = two().fit([s.astype(np.float64) for s in x])
    assert np.allclose(h.score_samples(x), double.score_samples(x), rtol=1e-5)


def test_order_of_sequences_does_not_matter():
    x = words(20)
    a, b = two().fit(x), two().fit(x[::-1])
    assert np.allclose(a.score_samples(x), b.score_samples(x), rtol=1e-7)


def test_weights_are_copies():
    x, w = words(6), np.array([2, 1, 0, 3, 1, 1])
    a = two(topology="left-to-right").fit(x, sample_weight=w)
    b = two(topology="left-to-right").fit([s for s, k in zip(x, w, strict=True) for _ in range(k)])
    assert np.allclose(a.score_samples(x), b.score_samples(x), rtol=1e-9)


def test_words_as_symbols():
    rng = np.random.default_rng(0)
    x = [rng.choice(["a", "b", "c"], int(rng.integers(2, 9))) for _ in range(10)]
    h = lk.HMMDensity(lk.CategoricalDensity(), n_states=2, random_state=0).fit(x)
    assert np.isfinite(h.score_samples(x)).all() and h.predict(x[0]).shape == x[0].shape
    assert set(np.unique(h.sample(5, random_state=0).values)) <= {"a", "b", "c"}
    strange = h.score_samples([np.array(["a", "zebra"])])
    assert not np.isnan(strange).any()


# ----------------------------------------------------------------------- scikit-learn


@pytest.mark.slow
def test_cross_validation_over_sequences():
    x = words(12)
    for data in (x, Ragged.from_list(x)):
        assert np.isfinite(cross_val_score(two(), data, cv=3)).all()
        found = GridSearchCV(two(max_iter=5), {"n_states": [1, 2]}, cv=2).fit(data)
        assert found.best_params_ == {"n_states": 2}
    y = np.array(["up", "down"] * 6)
    mixed = [s if c == "up" else s[::-1] for s, c in zip(x, y, strict=True)]
    clf = lk.BayesClassifier(two(topology="left-to-right"))
    for data in (mixed, Ragged.from_list(mixed)):
        assert cross_val_score(clf, data, y, cv=3).mean() == 1.0
    assert clone(two(tie=[0, 0])).get_params()["tie"] == [0, 0]


def test_a_classifier_of_sequences():
    x, y = words(10) + words(10, 1, swap=True), ["up"] * 10 + ["down"] * 10
    clf = lk.BayesClassifier(two(topology="left-to-right")).fit(x, y)
    assert (clf.predict(x) == y).all() and clf.predict_proba(x).shape == (20, 2)
    assert set(clf.decide(x, reject_below=0.95)) <= {"up", "down", lk.REJECT}
    separate = {c: two(topology="left-to-right").fit([s for s, k in zip(x, y, strict=True) if k == c])
                for c in ("down", "up")}  # fmt: skip
    scores = np.stack([separate[c].score_samples(x) for c in ("down", "up")], axis=1)
    assert (np.array(["down", "up"])[scores.argmax(axis=1)] == y).all()


# ---------------------------------------------------------------------------- learning


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"topology": "left-to-right"},
        {"topology": (0, 1, 2), "n_states": 3},
        {"topology": "cyclic"},
        {"topology": "parallel", "n_states": 4},
        {"hard": True},
        {"order": 2},
        {"durations": 3},
        {"emit": "transitions"},
        {"tie": [0, 1, 0], "n_states": 3},
        {"final": True},
        {"prior": None},
        {"prior": 1.5},
        {"init": "segments"},
        {"init": "random", "n_init": 3},
    ],
    ids=repr,
)
def test_settings(how):
    x = words(10)
    h = two(**how).fit(x)
    trace = np.array(h.report_.trace)
    assert (np.diff(trace) >= -1e-8 * np.abs(trace[:-1])).all()
    assert np.isfinite(h.score_samples(x)).all() and h.predict(x[0]).max() < h.n_states
    assert h.predict_proba(x[0]).shape == (len(x[0]), h.n_states)
    mask = lk.hmm.Topology.of(h.topology_, h.topology_.states)
    assert (h.model_.transition[~mask.transition] == 0).all() and (h.model_.initial[~mask.initial] == 0).all()
    draws = h.sample(3, random_state=1)
    assert len(draws) == 3 and np.isfinite(h.score_samples(draws)).all()


def test_known_states():
    x = words(8)
    truth = [(s[:, 0] > 3).astype(int) for s in x]
    h = two(prior=None).fit(x, states=truth)
    assert h.report_.converged and h.n_iter_ == 1
    flat, at = np.concatenate(x), np.concatenate(truth)
    assert np.allclose(h.model_.emission.mean, [flat[at == k].mean(axis=0) for k in (0, 1)])
    after = np.concatenate([s[1:] for s in truth])[np.concatenate([s[:-1] for s in truth]) == 0]
    assert h.model_.transition[0, 1] == pytest.approx(after.mean())
    some = [np.where(np.arange(len(s)) % 3 == 0, s, -1) for s in truth]
    part = two(prior=None).fit(x, states=some)
    assert np.allclose(part.model_.emission.mean, h.model_.emission.mean, atol=0.3)  # and the states keep their numbers


def test_known_states_that_the_topology_forbids_are_reported():
    x = words(3)
    back = [np.where(np.arange(len(s)) == 0, 1, 0) for s in x]  # from the last state to the first
    with pytest.raises(DataError, match="known states must be possible in this topology, got sequence 0"):
        two(topology="left-to-right").fit(x, states=back)


def test_ties_really_tie():
    h = two(n_states=3, tie=[0, 1, 0]).fit(words(10))
    distributions = [h.model_.emission.member(k) for k in range(3)]
    assert (distributions[0].mean == distributions[2].mean).all() and (
        distributions[0].covariance == distributions[2].covariance
    ).all()
    assert (distributions[0].mean != distributions[1].mean).any() and h.model_.emission.components.members == 2


def test_a_state_never_visited_is_reported():
    x = [np.zeros((3, 1)) + np.arange(3)[:, None] for _ in range(4)]
    start = lk.HMM([1.0, 0.0], [[1.0, 0.0], [0.5, 0.5]], lk.Gaussian([[1.0], [50.0]], [[1.0], [1.0]], kind="diagonal"))
    with pytest.warns(lk.FitWarning, match="state 1 was never visited"):
        h = two(init=start, prior=None).fit(x)
    assert h.model_.transition[1].tolist() == [0.5, 0.5]


def test_streams():
    x = words(12)
    h = two(topology="left-to-right").fit(x[:6])
    before = h.score(x)
    h.partial_fit(x[6:])
    assert h.stats_.sequences == pytest.approx(12) and np.isfinite(h.score(x)) and h.score(x) > before - 1.0
    live = two(topology="left-to-right")
    for s in range(0, 12, 4):
        live.partial_fit(x[s : s + 4])
    assert np.isfinite(live.score(x))


def test_a_live_belief():
    h, belief = two().fit(words(8)), None
    for frame in words(1, 5)[0]:
        belief, news = lk.step(h.model_, belief, frame)
        assert np.isfinite(news)


def test_checkpoints_go_on_to_the_same_bits(tmp_path):
    x = words(8)
    whole = two(max_iter=12, tol=0.0).fit(x)
    two(max_iter=4, tol=0.0).fit(x, checkpoint=tmp_path / "c")
    resumed = two(max_iter=12, tol=0.0).fit(x, checkpoint=tmp_path / "c")
    assert resumed.score_samples(x).tobytes() == whole.score_samples(x).tobytes()


# ----------------------------------------------------------------------------- hazards


def hazard(name):
    x = words(6)
    rng = np.random.default_rng(3)
    if name == "length 1":
        return [s[:1] for s in x]
    if name == "constant column":
        return [np.column_stack([s[:, 0], np.full(len(s), 7.0)]) for s in x]
    if name == "all constant":
        return [np.full((5, 2), 3.0)] * 4
    if name == "duplicates":
        return [x[0]] * 6
    if name == "one sequence":
        return x[:1]
    if name == "one frame":
        return [x[0][:1]]
    if name == "gaps":
        return [np.where(rng.random(s.shape) < 0.2, np.nan, s) for s in x]
    if name == "missing frames":
        return [np.where(rng.random((len(s), 1)) < 0.3, np.nan, s) for s in x]
    if name == "missing column":
        return [np.column_stack([s[:, 0], np.full(len(s), np.nan)]) for s in x]
    if name == "empty among others":
        return [x[0], np.empty((0, 2)), x[1], x[2], np.empty((0, 2))]
    if name == "more states than frames":
        return [x[0][:2]]
    return {"tiny": [s * 1e-100 for s in x], "huge": [s * 1e100 for s in x], "offset": [s + 1e8 for s in x]}[name]


HAZARDS = ["length 1", "constant column", "all constant", "duplicates", "one sequence", "one frame", "gaps",
           "missing frames", "missing column", "empty among others", "more states than frames", "tiny", "huge",
           "offset"]  # fmt: skip
COMPONENTS = {
    "full": lk.GaussianDensity(),
    "diagonal": lk.GaussianDensity("diagonal"),
    "spherical": lk.GaussianDensity("spherical"),
    "mixture": lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2),
    "tied": lk.MixtureDensity(n_components=2, tie="all"),
}


@pytest.mark.some_cases(14)
@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("name", HAZARDS)
def test_hazards_are_learned_from_or_told(name, component):
    x = hazard(name)
    h = two(component=clone(COMPONENTS[component]), n_states=3, max_iter=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            h.fit(x)
        except LikelyError as error:
            assert (name == "missing column" and "column" in str(error)) or "at least one" in str(error), error
            return
        scores = h.score_samples(x)
        assert not np.isnan(scores).any() and np.isfinite(scores[[len(s) > 0 for s in x]]).all()
        paths, shares = h.predict(x), h.predict_proba(x)
    assert len(paths.values) == sum(map(len, x)) and np.allclose(shares.values.sum(axis=1), 1)
    assert not np.isnan(np.asarray(h.sample(2, random_state=0).values, float)).any()


def test_scales_and_offsets_change_nothing_but_units():
    x = words(8)
    want = two().fit(x)
    for scale, offset in ((1e-100, 0.0), (1e100, 0.0), (1.0, 1e6), (1e-8, 5.0)):
        moved = [s * scale + offset * scale for s in x]
        h = two().fit(moved)
        change = [s.size * np.log(scale) for s in x]
        assert np.allclose(h.score_samples(moved) + change, want.score_samples(x), rtol=1e-6, atol=1e-4)
        assert all((a == b).all() for a, b in zip(h.predict(moved), want.predict(x), strict=True))


@pytest.mark.parametrize("what", ["fit", "score_samples", "predict"])
def test_infinity_is_named_by_its_place(what):
    x = words(5)
    bad = [s.copy() for s in x]
    bad[3][2, 1] = np.inf
    h = two().fit(x)
    with pytest.raises(ValueError, match="inf") as told:
        (two().fit if what == "fit" else getattr(h, what))(bad)
    assert "sequence 3, frame 2" in str(told.value)


def test_what_cannot_be_learned_from_is_said():
    with pytest.raises(ValueError, match=r"numbers|convert|string"):
        two().fit([np.array([["a"], ["b"]])])
    with pytest.raises(DataError, match="at least one frame"):
        two().fit([np.empty((0, 2))])
    with pytest.raises(DataError, match="got 2 in sequence 1"):
        two(n_states=4, topology="left-to-right").fit([np.zeros((5, 1)), np.zeros((2, 1))])
    with pytest.raises(ValueError, match=r"3 features, but .* is expecting 2"):
        two().fit(words()).score_samples([np.zeros((4, 3))])
    with pytest.raises(DataError, match="frames must have 2 columns"):
        two().fit(words()).score_samples([np.zeros(4)])
    with pytest.raises(LikelyError, match="one of order, durations and emit"):
        two(order=2, durations=3).fit(words())
    with pytest.raises(LikelyError, match="init must be an HMM of 2 states"):
        two(init=lk.HMM([1.0], [[1.0]], lk.Gaussian([[0.0, 0.0]], 1.0))).fit(words())
    with pytest.raises(ValueError, match="weight"):
        two().fit(words(3), sample_weight=[1.0, 2.0])
