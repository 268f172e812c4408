"""Calibration maps: against SciPy, scikit-learn and a plain optimizer; weights are copies; no probability is 0."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import isotonic_regression as sklearn_isotonic

import likely as lk
from likely.classify.calibration.calibration_maps import (
    METHODS,
    IsotonicMap,
    LogisticMap,
    Temperature,
    calibrate,
    choose_method,
    log_loss,
    one_against_rest,
    rising_curve,
)
from likely.classify.calibration.newton_minimizer import minimize


def overconfident(rng, n=600, C=3, factor=4.0):
    """Scores whose softmax at 1 / factor is the truth."""
    z = rng.normal(size=(n, C)) * 1.5
    p = np.exp(log_softmax(z, axis=1))
    labels = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=C - 1)
    return factor * z, labels


# ----------------------------------------------------------------- rising curves


@pytest.mark.parametrize("n", [1, 2, 5, 50, 2000])
@pytest.mark.parametrize("kind", ["noise", "labels", "falling", "rising", "crawl"])
def test_rising_curve_is_scikit_learns_isotonic_regression(rng, n, kind):
    y = {
        "noise": rng.random(n),
        "labels": (rng.random(n) < np.linspace(0, 1, n)).astype(float),
        "falling": -np.arange(n, dtype=float),
        "rising": np.arange(n, dtype=float),
        "crawl": np.append(np.arange(n - 1, dtype=float), -(float(n) ** 2)),  # one more merge in each pass
    }[kind]
    x, w = np.arange(n, dtype=float), rng.integers(1, 5, n).astype(float)
    knots, levels = rising_curve(x, y, w)
    ends = np.concatenate([[1.0], y, [0.0]]), np.concatenate([[1.0], w, [1.0]])
    expected = sklearn_isotonic(ends[0], sample_weight=ends[1])[1:-1]
    np.testing.assert_allclose(np.interp(x, knots, levels), expected, rtol=1e-9, atol=1e-9)


def test_isotonic_regression_takes_any_input_in_linear_time():
    n = 200_000
    knots, levels = rising_curve(np.arange(float(n)), np.append(np.arange(n - 1.0), -1e12), np.ones(n))
    assert len(knots) < n and (np.diff(levels) >= 0).all()


def test_rising_curve_has_one_row_of_the_other_kind_at_either_end():
    knots, levels = rising_curve(np.array([0.0, 1.0, 2.0]), np.array([0, 0, 1]), np.array([3.0, 1.0, 4.0]))
    np.testing.assert_allclose(levels, [1 / 5, 1 / 5, 4 / 5])
    np.testing.assert_array_equal(knots, [0, 1, 2])


# ------------------------------------------------------------------ linear maps


def test_two_classes_are_platt_as_scikit_learn_has_it(rng):
    s = rng.normal(size=300) * 3
    labels = (rng.random(300) < expit(0.7 * s - 1)).astype(int)
    w = rng.integers(1, 4, 300).astype(float)
    a, b = _sigmoid_calibration(s, labels, sample_weight=w)  # p = σ(−(a s + b))
    ours = LogisticMap.fit(np.stack([-s / 2, s / 2], axis=1), labels, w)
    x = np.linspace(-9, 9, 7)
    p = np.exp(ours.log_posterior(np.stack([-x / 2, x / 2], axis=1)))[:, 1]
    np.testing.assert_allclose(p, expit(-(a * x + b)), rtol=2e-4)


def lapsing_loss(z, labels, log_t, logit):
    """Minus log-likelihood of a temperature and a lapse rate, with half a fictitious lapse and half a row without."""
    lapse = expit(logit)
    p = (1 - lapse) * softmax(z / np.exp(log_t), axis=1)[np.arange(len(z)), labels] + lapse / z.shape[1]
    return -np.log(p).sum() - 0.5 * (np.log(lapse) + np.log1p(-lapse))


def test_temperature_is_half_a_standard_error_above_the_best(rng):
    z, labels = overconfident(rng)
    found = scipy_minimize(lambda t: lapsing_loss(z, labels, *t), [1.0, -5.0], method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-12})  # fmt: skip
    fitted = Temperature.fit(z, labels)
    t, lapse = float(fitted.temperature), float(fitted.lapse)
    assert t > np.exp(found.x[0])
    assert lapsing_loss(z, labels, np.log(t), logit(lapse)) == pytest.approx(found.fun + 0.125, abs=1e-6)
    other = [lapsing_loss(z, labels, np.log(t), logit(lapse) + step) for step in (-0.05, 0.05)]
    assert min(other) > found.fun + 0.125  # the lapse rate is the best for that temperature
    assert 3 < t < 5.5  # the truth is 4


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [300, 2000])
def test_scores_far_off_do_not_set_the_temperature(seed, n):
    """Two rows in a hundred whose score means nothing: with a lapse rate the others keep their temperature."""
    rng, few = np.random.default_rng(seed), n // 50
    z, labels = overconfident(rng, n)
    z[:few, :] = 0.0
    z[np.arange(few), (labels[:few] + 1) % 3] = 1000.0
    fitted = Temperature.fit(z, labels)
    t, lapse = float(fitted.temperature), float(fitted.lapse)
    assert 1.5 < t < 8.0 and 0.02 < lapse < 0.4  # the truth is 4
    loss = lapsing_loss(z, labels, np.log(t), logit(lapse))
    for log_t in np.linspace(0.0, 3.0, 13):  # nothing on a grid is better by more than half a standard error
        for share in (0.01, 0.03, 0.1, 0.2, 0.4):
            assert loss <= lapsing_loss(z, labels, log_t, logit(share)) + 0.125 + 1e-6
    np.testing.assert_allclose(np.exp(fitted.log_posterior(z)).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("size", [1e4, 1e8, 1e200])
def test_one_score_of_any_size_does_not_set_the_temperature(rng, size):
    z, labels = overconfident(rng, 300)
    usual = float(Temperature.fit(z, labels).temperature)
    z[0, (labels[0] + 1) % 3] = size
    assert float(Temperature.fit(z, labels).temperature) == pytest.approx(usual, rel=0.4)


def test_no_mistakes_give_confidence_of_their_number():
    """Forty rows decided rightly by wide margins: neither certain nor modest (Laplace says 0.976, Jeffreys 0.988)."""
    margin = np.linspace(100.0, 900.0, 40)
    z, labels = np.stack([0 * margin, margin, 0 * margin, 0 * margin], axis=1), np.ones(40, dtype=int)
    confidence = np.exp(Temperature.fit(z, labels).log_posterior(z)).max(axis=1).mean()
    assert 0.975 < confidence < 0.99


def test_matrix_map_is_at_the_bottom_of_its_bowl(rng):
    z, labels = overconfident(rng, 400)
    fitted = LogisticMap.fit(z, labels)
    by_hand = log_softmax(z @ fitted.slope.T + fitted.offset, axis=1)
    np.testing.assert_allclose(fitted.log_posterior(z), by_hand, rtol=1e-12)
    # what is added to a row does not matter
    shifted = z + rng.normal(size=(len(z), 1)) * 50
    np.testing.assert_allclose(fitted.log_posterior(shifted), by_hand, atol=1e-9)
    assert log_loss(by_hand, labels) <= log_loss(Temperature.fit(z, labels).log_posterior(z), labels) + 1e-3


def test_few_rows_stay_near_one_common_slope(rng):
    z, labels = overconfident(rng, 30, factor=1.0)
    matrix = LogisticMap.fit(z, labels).slope
    off = matrix - matrix.mean(axis=1, keepdims=True)
    common = np.trace(off) / 2
    assert np.abs(off - common * (np.eye(3) - 1 / 3)).max() < 0.8 * common


def test_a_shifted_class_is_put_right(rng):
    z, labels = overconfident(rng, 4000, factor=1.0)
    wrong = z + np.array([2.0, 0.0, -1.0])
    p = np.exp(LogisticMap.fit(wrong, labels).log_posterior(wrong))
    assert np.abs(p - np.exp(log_softmax(z, axis=1))).mean() < 0.02
    assert np.abs(np.exp(log_softmax(wrong, axis=1)) - np.exp(log_softmax(z, axis=1))).mean() > 0.1


def test_unlucky_rows_do_not_turn_a_classifier_round():
    s = np.array([1.0, 1.0, -1.0, -1.0])
    p = LogisticMap.fit(np.stack([-s, s], axis=1), np.array([0, 0, 1, 1])).log_posterior([[-3.0, 3.0]])
    np.testing.assert_allclose(np.exp(p), 0.5)


# ---------------------------------------------------------------- every kind


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [2, 3, 5])
def test_posteriors_add_to_one_and_never_reach_0_or_1(rng, method, C):
    z, labels = overconfident(rng, 200, C)
    labels[:] = z.argmax(axis=1)  # not one mistake
    log_p = calibrate(z, labels, method=method).log_posterior(z)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(log_p).all() and (log_p < 0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [2, 4])
def test_weights_are_copies_and_zero_is_absence(rng, method, C):
    z, labels = overconfident(rng, 150, C)
    w = rng.integers(0, 4, 150)
    again = rng.permutation(np.repeat(np.arange(150), w))
    weighted = calibrate(z, labels, w, method=method).log_posterior(z)
    repeated = calibrate(z[again], labels[again], method=method).log_posterior(z)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_units_of_scores_do_not_matter(rng, method):
    z, labels = overconfident(rng, 200)
    plain = calibrate(z, labels, method=method).log_posterior(z)
    for factor in (1e-8, 1e8) if method != "isotonic" else ():
        scaled = calibrate(z * factor, labels, method=method).log_posterior(z * factor)
        np.testing.assert_allclose(scaled, plain, rtol=1e-7, atol=1e-9)
    assert log_loss(plain, labels) < log_loss(log_softmax(z, axis=1), labels)


@pytest.mark.parametrize("method", METHODS)
def test_a_class_without_rows_keeps_a_small_posterior(rng, method):
    z, labels = overconfident(rng, 200, 3)
    z, labels = z[labels < 2], labels[labels < 2]
    p = np.exp(calibrate(z, labels, method=method).log_posterior(z))
    assert np.isfinite(p).all() and (p > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_copies_and_pickles_are_the_same(rng, method):
    import copy

    z, labels = overconfident(rng, 100)
    fitted = calibrate(z, labels, method=method)
    np.testing.assert_array_equal(copy.deepcopy(fitted).log_posterior(z), fitted.log_posterior(z))
    rebuilt = type(fitted)(**fitted.field_values())
    np.testing.assert_array_equal(rebuilt.log_posterior(z), fitted.log_posterior(z))


# ------------------------------------------------------------------- choosing


@pytest.mark.slow
def test_the_choice_follows_the_truth(rng):
    fold = np.arange(3000) % 5
    z, labels = overconfident(rng, 3000)
    assert choose_method(z, labels, fold)[0] == "temperature"
    assert choose_method(z + np.array([3.0, 0.0, -3.0]), labels, fold)[0] == "logistic"
    bent = np.sign(z) * np.abs(z) ** 5
    method, losses = choose_method(bent, labels, fold)
    assert method == "isotonic" and losses["isotonic"] < losses["temperature"]


@pytest.mark.slow
def test_what_is_simplest_for_two_classes_depends_on_the_scores(rng):
    """A slope and an offset, or a slope and a lapse rate: two numbers either way; the kind of scores decides a tie."""
    fold = np.arange(400) % 5
    z, labels = overconfident(rng, 400, 2)
    assert choose_method(z, labels, fold)[0] == "temperature"
    assert choose_method(z, labels, fold, discriminant=True)[0] == "logistic"
    z[:20] *= 100 * np.sign(z[:20, 1] - z[:20, 0])[:, None]  # rows that are far off, half of them wrong
    labels[:20] = np.arange(20) % 2
    assert choose_method(z, labels, fold, discriminant=True)[0] != "logistic"
    z, labels = overconfident(rng, 400, 3)
    assert choose_method(z, labels, fold, discriminant=True)[0] == "temperature"


def test_one_fold_leaves_the_simplest(rng):
    z, labels = overconfident(rng, 50)
    assert choose_method(z, labels, np.zeros(50, dtype=int)) == ("temperature", {})
    assert choose_method(z[:, :2], labels % 2, np.zeros(50, dtype=int), discriminant=True) == ("logistic", {})


def test_one_against_rest_is_the_log_odds(rng):
    p = rng.dirichlet(np.ones(4), 20)
    np.testing.assert_allclose(one_against_rest(np.log(p)), np.log(p / (1 - p)), rtol=1e-9)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: calibrate([[0.0, 1.0]], [0], method="beta"), lk.DomainError, "isotonic"),
        (lambda: calibrate([[0.0, np.nan]], [0]), lk.DataError, "row 0, class 1"),
        (lambda: calibrate([[0.0, -np.inf]], [0]), lk.DataError, "clip"),
        (lambda: calibrate([0.0, 1.0], [0, 1]), lk.ShapeError, "one column per class"),
        (lambda: calibrate([[0.0, 1.0]], [2]), lk.DataError, "0 … 1"),
        (lambda: calibrate([[0.0, 1.0]], [0, 1]), lk.ShapeError, "one per row"),
        (lambda: calibrate([[0.0, 1.0]], [0], [0.0]), lk.DataError, "weight"),
        (lambda: calibrate([[0.0, 1.0]], [0], [-1.0]), lk.DataError, "negative"),
        (lambda: Temperature(0.0, 2), lk.DomainError, "positive"),
        (lambda: Temperature(1.0, 3).log_posterior([[1.0, 2.0]]), lk.ShapeError, "(n, 3)"),
        (lambda: LogisticMap(np.eye(3), [0.0, 0.0]), lk.ShapeError, "slope"),
        (lambda: IsotonicMap([0.0, 1.0], [0.9, 0.1], [0, 2]), lk.DomainError, "increase"),
        (lambda: IsotonicMap([0.0, 1.0], [0.1, 0.9], [0, 1]), lk.ShapeError, "knots"),
    ],
)
def test_bad_input_is_named(make, error, word):
    with pytest.raises(error, match=word.replace("(", r"\(").replace(")", r"\)")):
        make()


def test_what_does_not_settle_is_said():
    def never(theta):  # a slope that never ends
        return -float(theta[0]), np.array([-1.0]), lambda v: v

    with pytest.warns(lk.FitWarning, match="converge"):
        minimize(never, np.zeros(1), "CalibratedClassifier")


def test_a_tiny_temperature_decides_for_the_best_class():
    for lapse, other in ((0.0, 0.0), (0.1, 0.05)):
        p = np.exp(Temperature(1e-310, 2, lapse).log_posterior([[0.0, 4.0], [-3.0, -3.0]]))
        assert np.allclose(p, [[other, 1 - other], [0.5, 0.5]])


def test_a_slope_that_overflows_is_an_error_of_the_row():
    steep = LogisticMap([[-1e308, 1e308], [1e308, -1e308]], [0.0, 0.0])
    with pytest.raises(lk.DataError, match=r"slope · scores must be finite, got an overflow in row 1: rescale"):
        steep.log_posterior([[0.0, 0.0], [5.0, -5.0]])
