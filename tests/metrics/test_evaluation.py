"""An evaluation against scikit-learn, against counting, and against copies of its rows."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn import metrics

from likely.core.errors import DataError, DomainError, ShapeError
from likely.decision.cost import Cost
from likely.metrics.confidence_intervals import proportion_interval
from likely.metrics.evaluation import Evaluation

CLASSES = ["a", "b", "c"]
COSTS = [[0, 1, 9], [5, 0, 1], [1, 1, 0]]


def posteriors(n=400, C=3, seed=0):
    """Log-posteriors, and a truth drawn from them."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, C))
    log_posterior = z - np.logaddexp.reduce(z, axis=1, keepdims=True)
    truth = (np.cumsum(np.exp(log_posterior), axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return log_posterior, np.minimum(truth, C - 1)


def example(n=400, seed=0, **more):
    log_posterior, truth = posteriors(n, seed=seed)
    return Evaluation(log_posterior, truth, CLASSES, **more)


# ------------------------------------------------------------------ against a peer


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_agree_with_scikit_learn(weighted):
    w = np.random.default_rng(1).random(400) if weighted else None
    e = example(weight=w)
    p, y = np.exp(e.log_posterior), e.truth
    assert e.error.value == pytest.approx(1 - metrics.accuracy_score(y, e.predicted, sample_weight=w))
    assert e.log_loss.value == pytest.approx(metrics.log_loss(y, p, sample_weight=w))
    assert e.brier.value == pytest.approx(np.average(((p - np.eye(3)[y]) ** 2).sum(axis=1), weights=w))
    np.testing.assert_allclose(e.confusion, metrics.confusion_matrix(y, e.predicted, sample_weight=w))
    recall = metrics.recall_score(y, e.predicted, average=None, sample_weight=w)
    precision = metrics.precision_score(y, e.predicted, average=None, sample_weight=w)
    np.testing.assert_allclose([r.recall.value for r in e.by_class], recall)
    np.testing.assert_allclose([r.precision.value for r in e.by_class], precision)
    auc = metrics.roc_auc_score(y == 1, p[:, 1], sample_weight=w)
    assert e.roc("b").auc == pytest.approx(auc)


def test_error_has_the_exact_interval():
    e = example()
    assert e.error == proportion_interval((e.predicted != e.truth).sum(), 400)
    assert e.error_at(0.9, "wilson") == proportion_interval(e.wrong.sum(), 400, 0.9, "wilson")


# ----------------------------------------------------------------------- decisions


def test_decisions_by_enumeration():
    e = example(cost=COSTS, reject_cost=0.5)
    p = np.exp(e.log_posterior)
    table = np.array(COSTS, dtype=float)
    for i in range(len(e)):
        expected = [sum(p[i, c] * table[a, c] for c in range(3)) for a in range(3)]
        assert e.predicted[i] == int(np.argmin(expected))
        assert e.decided[i] == (int(np.argmin(expected)) if min(expected) <= 0.5 else 3)
    paid = table[e.predicted, e.truth]
    assert e.mean_cost.value == pytest.approx(paid.mean())
    assert e.mean_cost.se == pytest.approx(paid.std(ddof=1) / 20)
    refused = e.decided == 3
    assert e.reject_rate == proportion_interval(refused.sum(), 400)
    assert e.decision_cost.value == pytest.approx(np.where(refused, 0.5, paid).mean())
    assert e.error_of_accepted == proportion_interval(e.wrong[~refused].sum(), (~refused).sum())


def test_confusion_has_a_column_for_every_action():
    cost = Cost([*COSTS, [2, 2, 2]], actions=["ask"])
    e = example(cost=cost, reject_cost=0.4)
    assert e.actions == ["a", "b", "c", "ask", "reject"]
    assert e.confusion.shape == (3, 5) and e.confusion.sum() == 400
    assert e.confusion_cost.sum() / 400 == pytest.approx(e.decision_cost.value)
    assert e.confusion_predicted.shape == (3, 3)
    assert e.confusion[1, 4] == ((e.truth == 1) & (e.decided == 4)).sum() > 0


def test_a_cost_by_names_is_put_in_order():
    by_name = {"c": {"c": 0, "a": 1, "b": 1}, "a": {"c": 9, "a": 0, "b": 1}, "b": {"c": 1, "a": 5, "b": 0}}
    assert example(cost=by_name).mean_cost == example(cost=COSTS).mean_cost


def test_risk_coverage_ends_at_the_mean_cost():
    e = example(cost=COSTS)
    assert e.risk_coverage().risk[-1] == pytest.approx(e.mean_cost.value)
    assert e.risk_coverage().risk[0] <= e.mean_cost.value


def test_standard_error_over_folds_stands_beside_that_over_rows():
    fold = np.arange(400) // 80
    e = example(fold=fold, cost=COSTS)
    means = [np.array(COSTS)[e.predicted, e.truth][fold == f].mean() for f in range(5)]
    assert e.mean_cost.se_folds == pytest.approx(np.std(means, ddof=1) / np.sqrt(5))
    assert example().mean_cost.se_folds is None


# -------------------------------------------------------------------------- weights


def test_weights_are_copies():
    log_posterior, truth = posteriors(80)
    w = np.random.default_rng(2).integers(0, 4, 80)
    fold = np.arange(80) % 4
    ours = Evaluation(log_posterior, truth, CLASSES, weight=w, fold=fold, cost=COSTS, reject_cost=0.6)
    copies = Evaluation(
        np.repeat(log_posterior, w, axis=0), np.repeat(truth, w), CLASSES,
        fold=np.repeat(fold, w), cost=COSTS, reject_cost=0.6,
    )  # fmt: skip
    for name in ("error", "mean_cost", "decision_cost", "reject_rate", "log_loss", "brier", "error_of_accepted"):
        np.testing.assert_allclose(getattr(ours, name), getattr(copies, name), rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(ours.confusion, copies.confusion)
    np.testing.assert_allclose(ours.calibration().low, copies.calibration().low)
    assert ours.roc("a").auc == pytest.approx(copies.roc("a").auc)
    assert ours.risk_coverage().area == pytest.approx(copies.risk_coverage().area)
    for mine, theirs in zip(ours.by_class, copies.by_class, strict=True):
        np.testing.assert_allclose(mine.recall, theirs.recall)


def test_scaling_shares_changes_nothing():
    w = np.random.default_rng(3).random(400)
    one, other = example(weight=w), example(weight=7.3 * w)
    np.testing.assert_allclose(one.error, other.error)
    np.testing.assert_allclose(one.log_loss[:4], other.log_loss[:4])
    assert one.error.high - one.error.low > example().error.high - example().error.low


# --------------------------------------------------------------------------- curves


def test_calibration_is_of_the_top_label_or_of_a_class():
    e = example(4000)
    top = e.calibration(bins=15)
    assert top.frequency @ top.weight / 4000 == pytest.approx((e.log_posterior.argmax(axis=1) == e.truth).mean())
    assert top.ece < 0.03
    assert [r.ece for r in e.class_calibration()] == [e.calibration(of=c).ece for c in CLASSES]
    b = e.calibration(of="b", equal="count")
    assert b.frequency @ b.weight / 4000 == pytest.approx((e.truth == 1).mean())


def test_two_classes_err_alike_from_both_sides():
    log_posterior, truth = posteriors(300, C=2)
    e = Evaluation(log_posterior, truth, [0, 1])
    assert e.roc(0).auc == pytest.approx(e.roc(1).auc)
    assert e.equal_error_rate(0).rate == pytest.approx(e.equal_error_rate(1).rate)
    np.testing.assert_allclose(e.det(1).miss, 1 - e.roc(1).detection)
    assert "equal error rate" in e.summary()


def test_certain_posteriors_have_curves_too():
    with np.errstate(divide="ignore"):
        log_posterior = np.log([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    e = Evaluation(log_posterior, [0, 1, 2, 2], CLASSES)
    assert [e.roc(c).auc for c in CLASSES] == [1.0, 1.0, 1.0]
    assert e.log_loss.value == pytest.approx(np.log(2) / 4)


def test_worst_rows_come_first_and_count():
    e = example(weight=np.r_[0, np.ones(399)])
    cases = e.worst(5)
    own = np.exp(e.log_posterior_of_truth)
    assert [c.row for c in cases] == (1 + np.argsort(own[1:], kind="stable")[:5]).tolist()
    assert cases[0].posterior_of_truth == own[1:].min()
    assert cases[0].truth == CLASSES[e.truth[cases[0].row]]


# --------------------------------------------------------------------------- output


def test_an_impossible_truth_is_infinite_and_said_so():
    with np.errstate(divide="ignore"):
        e = Evaluation(np.log([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]]), [1, 0, 1], ["no", "yes"])
    assert e.log_loss == (np.inf, np.inf, np.inf, np.inf, None)
    assert "33.33% of true classes had posterior 0" in e.summary()
    assert json.loads(json.dumps(e.as_dict(), allow_nan=False))["log_loss"]["value"] is None


def test_summary_and_dict_hold_the_numbers():
    e = example(cost=COSTS, reject_cost=0.3, fold=np.arange(400) % 5, weight=np.full(400, 2))
    text, plain = e.summary(), json.loads(json.dumps(e.as_dict(50), allow_nan=False))
    assert f"{e.error.value:.4f}" in text and "5 folds" in text and "effective number of rows 800" in text
    assert plain["error"]["value"] == e.error.value and plain["mean_cost"]["se_folds"] == e.mean_cost.se_folds
    assert plain["confusion"] == e.confusion.tolist() and plain["actions"][-1] == "reject"
    assert all(len(plain["roc"][c]["detection"]) <= 50 for c in CLASSES)
    assert len(plain["risk_coverage"]["risk"]) <= 50
    assert plain["by_class"][0]["label"] == "a" and plain["worst"][0]["row"] == e.worst(1)[0].row
    assert "Evaluation(400 rows, 3 classes" in repr(e)


def test_absent_classes_have_no_rate_and_no_curve():
    log_posterior, _ = posteriors(50)
    e = Evaluation(log_posterior, np.zeros(50, int), CLASSES)
    assert e.by_class[1].recall is None and e.by_class[0].recall is not None
    assert "–" in e.summary()
    assert e.as_dict()["roc"] == {}
    with pytest.raises(DataError, match="positive and negative rows"):
        e.roc("b")


def test_one_class_and_many_classes():
    one = Evaluation(np.zeros((3, 1)), [0, 0, 0], ["only"])
    assert one.error.value == 0 and "only" in one.summary() and one.as_dict()["roc"] == {}
    with pytest.raises(DomainError, match="two classes"):
        one.roc("only")
    log_posterior, truth = posteriors(500, C=40)
    assert "… and 10 more classes" in Evaluation(log_posterior, truth, np.arange(40)).summary()


def test_values_stay_as_they_were():
    log_posterior, truth = posteriors(20)
    e = Evaluation(log_posterior, truth, CLASSES, cost=COSTS)
    log_posterior[0] = 0.0
    assert e.log_posterior[0].max() < 0
    with pytest.raises(ValueError, match="read-only"):
        e.truth[0] = 1
    for again in (copy.deepcopy(e), pickle.loads(pickle.dumps(e))):
        assert again.mean_cost == e.mean_cost


# ------------------------------------------------------------------------ bad input


def test_labels_are_looked_up():
    log_posterior, truth = posteriors(30)
    e = Evaluation.of(log_posterior, np.array(CLASSES)[truth], CLASSES, cost=COSTS)
    assert e.truth.tolist() == truth.tolist()
    with pytest.raises(DataError, match="'d' at row 1"):
        Evaluation.of(log_posterior[:2], ["a", "d"], CLASSES)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"truth": [0, 1]}, ShapeError, "one per row"),
        ({"truth": [0.0, 1.0, 2.0]}, ShapeError, "integers"),
        ({"truth": [0, 1, 3]}, DataError, "3 at row 2"),
        ({"truth": [0, -1, 2]}, DataError, "-1 at row 1"),
        ({"weight": [1, -1, 1]}, DataError, "not negative"),
        ({"weight": [0, 0, 0]}, DataError, "positive weight"),
        ({"weight": [1, 1]}, ShapeError, "one entry per row"),
        ({"fold": [0, 1]}, ShapeError, "fold"),
        ({"score": [0.0, np.nan, 1.0]}, ShapeError, "score"),
        ({"reject_cost": -1}, DomainError, "rejection"),
        ({"reject_cost": float("nan")}, DomainError, "rejection"),
        ({"cost": [[0, 1], [1, 0]]}, ShapeError, "3 classes"),
        ({"classes": ["a", "b"]}, ShapeError, r"\(n, 2\)"),
        ({"log_posterior": np.zeros((0, 3)), "truth": np.zeros(0, int)}, DataError, "at least one row"),
    ],
)
def test_bad_input_is_named(change, error, words):
    good = {"log_posterior": np.log(np.full((3, 3), 1 / 3)), "truth": [0, 1, 2], "classes": CLASSES}
    with pytest.raises(error, match=words):
        Evaluation(**{**good, **change})


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.5, 0.3, 0.2], "sum of 4.2"),
        ([np.nan, 0.0, 0.0], "NaN at row 1"),
        ([np.inf, 0.0, 0.0], "row 1"),
        ([-np.inf] * 3, "sum of 0 at row 1"),
    ],
)
def test_posteriors_must_be_normalized_logarithms(row, words):
    with pytest.raises(DataError, match=words):
        Evaluation(np.array([np.log([0.2, 0.3, 0.5]), row]), [0, 1], CLASSES)
    with pytest.raises(DomainError, match="classes are"):
        example().roc("z")


def test_rows_of_one_cluster_are_one_witness():
    """Each row written ten times, as a cluster, says no more than once."""
    rng = np.random.default_rng(0)
    P, truth = rng.dirichlet([2.0, 2.0], 60), rng.integers(0, 2, 60)
    once = Evaluation(np.log(P), truth, ["a", "b"])
    ten = Evaluation(
        np.log(np.repeat(P, 10, 0)), np.repeat(truth, 10), ["a", "b"], cluster=np.repeat(np.arange(60), 10)
    )
    assert ten.mean_cost.se == pytest.approx(once.mean_cost.se, rel=0.02)
    assert ten.error.high - ten.error.low == pytest.approx(once.error.high - once.error.low, rel=0.1)


def test_actions_of_a_cost_table_are_decisions_and_no_rejection():
    """With fewer actions than classes the mean cost was infinite, and all rows were called refused."""
    table = np.array([[0.0, 1, 2], [1, 0, 2]])
    e = example(cost=Cost(table, actions=["go", "stop"]))
    chosen = (np.exp(e.log_posterior) @ table.T).argmin(axis=1)
    paid = table[chosen, e.truth]
    assert e.mean_cost.value == pytest.approx(paid.mean()) and e.decision_cost == e.mean_cost
    assert e.reject_rate.value == 0 and e.unclassified.value == 1 and not e.rejected.any()
    assert e.risk_coverage().risk[-1] == pytest.approx(paid.mean())
    text = e.summary()
    assert "error" not in e.describe().facts and "reject" not in text and "inf" not in text and "recall" not in text
    assert "go" in text and "stop" in text and "mean cost" in repr(e)
    told = e.as_dict()
    assert told["error"] is None and told["mean_cost"]["value"] == pytest.approx(paid.mean())
    may = example(cost=Cost(table, actions=["go", "stop"]), reject_cost=0.4)
    assert 0 < may.reject_rate.value < 1 and may.reject_rate.value == pytest.approx(np.mean(may.decided == 5))
    assert may.mean_cost == e.mean_cost and "cost with rejection" in may.summary()


def test_summary_print_and_notebook_render_one_description():
    e = example(unit="sequence")
    page = e.describe()
    assert page.facts["error"] == e.error and page.facts["log-loss"] == e.log_loss  # numbers, not their text
    assert [row[2:] for row in page.tables[0].rows] == [(one.recall, one.precision) for one in e.by_class]
    assert str(e) == e.summary() == page.to_text(indented=True) and e._repr_html_() == page.to_html()
    assert f"{len(e)} sequences" in repr(e) and "rows" not in str(e) and str(e.error) in str(e)
    assert json.loads(page.to_json())["facts"]["error"] == e.error._asdict()


def test_a_further_action_is_no_rejection():
    """Asking counted as refusing, and the mean cost was that of classes though asking was chosen."""
    table = np.array([*COSTS, [0.3, 0.3, 0.3]], dtype=float)
    e = example(cost=Cost(table, actions=["ask"]))
    chosen = (np.exp(e.log_posterior) @ table.T).argmin(axis=1)
    assert e.mean_cost.value == pytest.approx(table[chosen, e.truth].mean())
    assert (
        e.reject_rate.value == 0 and e.unclassified.value == pytest.approx(np.mean(chosen == 3)) and (chosen == 3).any()
    )
    assert "reject" not in e.summary() and "no class assigned" in e.summary()
