"""EM of linear-Gaussian models against numerical maximization, another library, and its invariants."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from likely import DomainError, LinearGaussian, Ragged, ShapeError, StoppingRule, fit
from likely.core.covariates import with_covariates
from likely.core.em_loop import iterate
from likely.priors import LinearPrior
from likely.statespace import ConstrainedLinearGaussian
from likely.statespace.linear.linear_em import expected_log_prob
from likely.statespace.linear.log_likelihood_gradient import Coordinates, gradients
from likely.statespace.linear.predicted_observations import imputed
from likely.statespace.linear.quasi_newton import fit_quasi_newton
from tests.reference.make_linear_em import START, series

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "linear_em.json").read_text())
FORMS = [
    ("all", None, {}),
    (
        "variances",
        ["process_covariance", "observation_covariance"],
        {"process_covariance": "diagonal", "observation_covariance": "spherical"},
    ),
    ("a mask", ["transition", "process_covariance"], {"transition": np.array([[True, False], [True, True]])}),
    (
        "shared",
        ["observation", "observation_covariance"],
        {"observation": np.array([[1, 2], [2, 1]]), "observation_covariance": np.array([1, 0])},
    ),
    (
        "sizes",
        ["process_covariance", "observation_covariance", "initial_mean"],
        {"process_covariance": "scale", "observation_covariance": "scale"},
    ),
]


def model(**other):
    return LinearGaussian(**{**START, **other})


def gappy(seed=0, n=6, offset=0.0):
    rng = np.random.default_rng(seed)
    x = model().sample(n, rng, rng.integers(4, 20, n))
    y = np.where(rng.random(x.values.shape) < 0.15, np.nan, x.values + offset)
    y[::7] = np.nan
    return Ragged(y, x.offsets)


# ------------------------------------------------------------------------ the M-step


@pytest.mark.slow
@pytest.mark.parametrize("name, learn, form", FORMS, ids=[f[0] for f in FORMS])
def test_one_step_is_the_maximum_of_what_is_expected(name, learn, form):
    """Searched for numerically, from several places, in coordinates that know nothing of the M-step's formulas."""
    start = ConstrainedLinearGaussian.of(model(), learn, form)
    start = start.refit(start.collect(gappy()))  # now it has the form
    stats = start.collect(gappy(1))
    best = start
    for _ in range(40):  # matrices and covariances in turn: the joint maximum where entries are fixed
        best = best.refit(stats)
    coordinates = Coordinates(start.model, stats, start.structure)

    def minus(theta):
        return -expected_log_prob(coordinates.at(theta), stats)

    found = min(
        (minimize(minus, x0, method="BFGS", options={"gtol": 1e-9}) for x0 in 0.1 * np.eye(len(coordinates))[:2]),
        key=lambda r: r.fun,
    )
    assert expected_log_prob(best.model, stats) == pytest.approx(-found.fun, rel=1e-9, abs=1e-7)
    assert expected_log_prob(best.model, stats) >= -found.fun - 1e-9
    assert expected_log_prob(start.refit(stats).model, stats) > expected_log_prob(start.model, stats)


@pytest.mark.parametrize("name, learn, form", FORMS, ids=[f[0] for f in FORMS])
def test_the_score_is_the_slope_of_log_p(name, learn, form):
    y = gappy()
    learner = ConstrainedLinearGaussian.of(model(), learn, form)
    learner = learner.refit(learner.collect(y))
    coordinates = Coordinates(learner.model, learner.collect(y), learner.structure)
    m = len(coordinates)
    theta = 0.1 * np.sin(np.arange(1.0, m + 1))
    here = coordinates.at(theta)
    score = coordinates.gradient(theta, gradients(here, here.collect(y)))

    def total(x):
        return coordinates.at(x).log_prob(y).sum()

    h = 1e-5
    plain = [(total(theta + h * e) - total(theta - h * e)) / (2 * h) for e in np.eye(m)]
    np.testing.assert_allclose(score, plain, rtol=1e-6, atol=1e-6 * np.abs(plain).max())
    assert m == learner.n_parameters


def test_the_score_of_sizes_of_what_changes():
    T = 12
    sizes = np.linspace(0.0, 2.0, T)[:, None, None]  # the first noise is not used; nothing says it is regular
    m = model(
        process_covariance=np.array(START["process_covariance"]) * sizes,
        observation=np.array(START["observation_covariance"]) * (sizes + 0.5),
    )
    learner = ConstrainedLinearGaussian.of(
        m,
        ["process_covariance", "observation_covariance"],
        {"process_covariance": "scale", "observation_covariance": "scale"},
    )
    y = Ragged.of(np.sin(np.arange(2.0 * T) ** 2).reshape(T, 2))
    coordinates = Coordinates(m, m.collect(y), learner.structure)
    score = coordinates.gradient(np.zeros(2), gradients(m, m.collect(y)))
    plain = approx_fprime(np.zeros(2), lambda x: coordinates.at(x).log_prob(y).sum(), 1e-6)
    np.testing.assert_allclose(score, plain, rtol=1e-4)


# ------------------------------------------------------------------------ EM as others do it


def test_ten_passes_are_those_of_pykalman():
    report = fit(model(), Ragged.of(series()), stop=StoppingRule(10, 0.0))
    want = REFERENCE["ten passes"]
    for name in START:
        np.testing.assert_allclose(getattr(report.model, name), want[name], rtol=1e-8, atol=1e-8, err_msg=name)
    assert report.model.log_prob(series()).sum() == pytest.approx(want["log_prob"], rel=1e-9)


def test_inputs_that_only_observations_feel_leave_the_transition_alone():
    """[A 0]: an input that moves no state must not explain moves either."""
    rng = np.random.default_rng(3)
    m = model(feedthrough=[[1.0], [0.5]])
    u = rng.normal(size=(200, 1))
    y = m.sample(1, rng, inputs=Ragged.of(u))
    own = ConstrainedLinearGaussian.of(m, ["transition"])
    stats = own.model.collect(with_covariates(y, Ragged.of(u)))
    better = own.refit(stats)
    coordinates = Coordinates(better.model, stats, better.structure)
    slope = coordinates.gradient(np.zeros(len(coordinates)), gradients(better.model, stats))
    assert np.abs(slope).max() < 1e-8 * 200


# ------------------------------------------------------------------------ statistics add


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_parts_add_up_to_the_whole(offset):
    y = gappy(n=8, offset=offset)
    m = model(transition=np.eye(2), initial_mean=np.linalg.solve(START["observation"], [offset, offset]))
    whole = m.collect(y)
    parts = m.collect(y[:3]) + m.collect(y[3:7]) + m.collect(y[7:8])
    for name in (
        "n_initial",
        "n_transitions",
        "n_observed",
        "process_scatter",
        "observation_scatter",
        "initial_scatter",
        "transition_cross",
        "entropy",
        "n_frames",
    ):
        a, b = getattr(whole, name), getattr(parts, name)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(a).max(initial=1.0), err_msg=name)
    one, other = m.refit(whole), m.refit(parts)
    np.testing.assert_allclose(one.process_covariance, other.process_covariance, rtol=1e-9)
    assert (m.collect(y[:0]) + whole).n_frames == whole.n_frames


def test_statistics_about_other_models_add():
    """What a second model saw joins what a first one saw, at either's matrices."""
    y, a = gappy(), model()
    b = a.refit(a.collect(y))
    both, other = a.collect(y) + b.collect(y), b.collect(y) + a.collect(y)
    for m in (a, b):
        assert expected_log_prob(m, both) == pytest.approx(expected_log_prob(m, other), rel=1e-12)
        assert expected_log_prob(m, both) == pytest.approx(
            expected_log_prob(m, a.collect(y)) + expected_log_prob(m, b.collect(y)), rel=1e-12
        )


@pytest.mark.usefixtures("compiled_loops")
def test_a_weight_is_so_many_copies():
    y = gappy()
    times = [1, 2, 0, 3, 1, 2]
    copies = Ragged.joined([y[i : i + 1] for i, k in enumerate(times) for _ in range(k)])
    one = fit(model(), y_blocks(y, times), stop=StoppingRule(30, 0.0)).model
    other = fit(model(), copies, stop=StoppingRule(30, 0.0)).model
    for name in START:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


def y_blocks(y, weight):
    from likely.core import Blocks

    return Blocks.of(y, np.asarray(weight, dtype=float))


# ------------------------------------------------------------------------ structure


@pytest.mark.usefixtures("compiled_loops")
def test_a_singular_noise_stays_singular():
    push = np.array([[0.05], [0.1], [0.7]])
    m = LinearGaussian(
        transition=np.eye(3),
        process_covariance=push @ push.T,
        observation=[[1.0, 0.0, 0.0]],
        observation_covariance=[[1.0]],
        initial_mean=np.zeros(3),
        initial_covariance=np.diag([1.0, 1.0, 0.0]),
    )
    y = Ragged.of(np.cumsum(np.sin(np.arange(60.0) ** 2)))
    found = fit(m, y, stop=StoppingRule(20, 0.0))
    assert np.linalg.matrix_rank(found.model.process_covariance, tol=1e-9 * found.model.process_covariance.max()) == 1
    assert np.array_equal(found.model.initial_covariance[2], np.zeros(3)) and found.model.initial_mean[2] == 0
    assert (np.diff(found.trace) > -1e-9).all()


def test_a_mask_cannot_lead_off_the_flat_of_a_singular_noise():
    """Only a row that noise does not reach is free: any change would be impossible, so there is none."""
    m = LinearGaussian(
        transition=[[1.0, 1.0], [0.0, 1.0]],
        process_covariance=np.diag([0.0, 1.0]),
        observation=[[1.0, 0.0]],
        observation_covariance=[[1.0]],
        initial_mean=np.zeros(2),
        initial_covariance=np.eye(2),
    )
    learner = ConstrainedLinearGaussian.of(m, ["transition"], {"transition": np.array([[True, True], [False, False]])})
    y = Ragged.of(np.cumsum(np.sin(np.arange(40.0) ** 2)))
    assert np.array_equal(learner.refit(learner.collect(y)).model.transition, m.transition)


@pytest.mark.slow
def test_sizes_of_what_changes_with_time_reach_the_maximum():
    """Irregular steps, one of which takes no time at all: its noise is 0 and says nothing."""
    dt = np.abs(np.sin(np.arange(39.0))) + 0.1
    dt[5] = 0.0
    m = LinearGaussian.constant_velocity(dim=1, dt=dt, spectral_density=3.0, observation_variance=1.0)
    y = Ragged.of(np.cumsum(np.sin(np.arange(40.0) ** 2)))
    learner = ConstrainedLinearGaussian.of(
        m, ["process_covariance", "observation_covariance"], {"process_covariance": "scale"}
    )
    report = fit_quasi_newton(learner, y)

    def minus(x):
        size, seen = np.exp(x)
        return (
            -m.replace(
                process_covariance=m.process_covariance * size, observation_covariance=m.observation_covariance * seen
            )
            .log_prob(y)
            .sum()
        )

    found = report.model.model
    here = np.log(
        [found.process_covariance[1, 0, 0] / m.process_covariance[1, 0, 0], found.observation_covariance.item()]
    )
    best = minimize(minus, here, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    assert report.objective == pytest.approx(-best.fun, abs=1e-6) and report.objective > report.trace[0] + 1
    stats = learner.collect(y)
    better = learner.refit(stats)
    assert better.objective(stats) > learner.objective(stats)  # also where moments are of another size


def test_what_cannot_be_learned_is_refused_in_words():
    m = model()
    for learn, form, words in [
        (["speed"], None, "learn must be names"),
        (["control"], None, "control can be learned if the model has one"),
        (["process_covariance"], {"observation": "full"}, "a form is for learned parameters"),
        (["process_covariance"], {"process_covariance": "round"}, "must be one of"),
    ]:
        with pytest.raises(DomainError, match=words):
            ConstrainedLinearGaussian.of(m, learn, form)
    with pytest.raises(ShapeError, match="integers in shape"):
        ConstrainedLinearGaussian.of(m, ["transition"], {"transition": np.ones((3, 3), dtype=bool)})
    with pytest.raises(DomainError, match="initial state is not diffuse"):
        ConstrainedLinearGaussian.of(LinearGaussian.local_level(), ["initial_mean"])
    with pytest.raises(DomainError, match="scale"):
        ConstrainedLinearGaussian.of(
            model(process_covariance=np.tile(START["process_covariance"], (4, 1, 1))),
            ["process_covariance"],
            {"process_covariance": np.array([1, 1])},
        )


# ------------------------------------------------------------------------ priors


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("prior", ["weak", "earlier"])
def test_a_prior_leads_to_the_mode_of_the_penalized_objective(prior):
    y = gappy()
    m = model()
    earlier = prior if prior == "weak" else LinearPrior(m.collect(gappy(9)) * 0.5)
    learner = ConstrainedLinearGaussian.of(m, ["transition", "process_covariance", "observation_covariance", "initial"])
    report = fit_quasi_newton(learner, y, earlier, StoppingRule(500, 1e-12))
    found, distribution = report.model.model, report.prior
    coordinates = Coordinates(found, report.stats, learner.structure)

    def total(x):
        here = coordinates.at(x)
        return here.log_prob(y).sum() + distribution.log_density(here)

    h = 1e-4
    slope = [(total(h * e) - total(-h * e)) / (2 * h) for e in np.eye(len(coordinates))]
    assert np.abs(slope).max() < 1e-3
    assert report.objective == pytest.approx(total(np.zeros(len(coordinates))), rel=1e-12)


def test_a_prior_is_data_that_came_before():
    m = model()
    a, b = m.collect(gappy()), m.collect(gappy(1))
    one, other = m.refit(a, LinearPrior(b)), m.refit(a + b)
    for name in START:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-13)
    assert m.refit(a, LinearPrior(b)).process_covariance == pytest.approx(
        m.refit(b, LinearPrior(a)).process_covariance, rel=1e-9
    )
    with pytest.raises(DomainError, match="call model"):
        LinearPrior(a).update(b).point()


# ------------------------------------------------------------------------ climbing


@pytest.mark.slow
def test_climbing_reaches_what_em_creeps_toward():
    y = gappy(n=20)
    start = ConstrainedLinearGaussian.of(model(), ["process_covariance", "observation_covariance"])
    slow = list(zip(range(300), iterate(start, y), strict=False))[-1][1]
    fast = fit_quasi_newton(start, y, stop=StoppingRule(500, 1e-10))
    assert fast.converged and fast.iterations < 400
    assert fast.objective >= slow.objective - 1e-6
    assert (np.diff(fast.trace) >= -1e-9).all()


@pytest.mark.usefixtures("compiled_loops")
def test_climbing_that_is_cut_off_says_so():
    report = fit_quasi_newton(ConstrainedLinearGaussian.of(model()), gappy(n=20), stop=StoppingRule(15, 1e-12))
    assert not report.converged and "15 passes made" in report.reason and report.iterations <= 17


def test_nothing_to_learn_is_one_look():
    report = fit_quasi_newton(ConstrainedLinearGaussian.of(model(), []), gappy())
    assert report.converged and report.objective == pytest.approx(model().log_prob(gappy()).sum())


# ------------------------------------------------------------------------ what is missing


@pytest.mark.slow
def test_draws_of_what_is_missing_have_its_distribution():
    y = gappy(n=1)
    rng = np.random.default_rng(0)
    expected_values = imputed(model(), y, None)
    drawn = np.stack([imputed(model(), y, None, rng).values for _ in range(600)])
    gone = np.isnan(y.values)
    assert np.array_equal(drawn[0][~gone], y.values[~gone])
    error = drawn[:, gone].std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn[:, gone].mean(axis=0) - expected_values.values[gone]) < 5 * error).all()
    smoothed = model().smooth(y[0])
    f = int(np.flatnonzero(gone.all(axis=1))[0])
    C = np.array(START["observation"])
    want = C @ smoothed.covariance[f] @ C.T + START["observation_covariance"]
    np.testing.assert_allclose(np.cov(drawn[:, f].T), want, rtol=0.25, atol=0.15)
