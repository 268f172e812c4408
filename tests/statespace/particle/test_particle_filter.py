"""Particle filters against exact answers: unbiased evidence, means within Monte Carlo error, reproducibility."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, FitWarning, ShapeError
from likely.distributions.stacks.one_row_per_member import log_prob_each
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.particle.noise_draws import FRAMES, NUMBERS, FrameNoise, noise_of
from likely.statespace.particle.particle_belief import ParticleBelief, keyed
from likely.statespace.particle.particle_filter import ParticleFilter
from tests.statespace.exact_states import Linear, level, turning, velocity

SEEDS = 200
FALSE_ALARM = 4.9  # standard errors: 1e-6 for a normal mean of 200


def ratios(model: StateSpace, y: np.ndarray, exact: float, n: int, seeds: int = SEEDS, **how) -> np.ndarray:
    """Ẑ / Z over many seeds."""
    logs = [ParticleFilter(model, n, random_state=s, **how).run(y, keep=False).log_evidence for s in range(seeds)]
    return np.exp(np.array(logs) - exact)


def unbiased(found: np.ndarray) -> bool:
    """Whether the mean is 1 within so many standard errors; they must vary little enough for that to mean much."""
    assert found.std() < 0.7
    return abs(found.mean() - 1.0) < FALSE_ALARM * found.std(ddof=1) / np.sqrt(len(found))


def optimal(m: Linear):
    """The best proposal of a linear model: p(x | x′, y)."""
    gain = m.Q @ m.C.T @ np.linalg.inv(m.C @ m.Q @ m.C.T + m.R)
    spread = m.Q - gain @ m.C @ m.Q

    def propose(x, y, t):
        if x is None:
            return lk.Gaussian(m.m, m.P).posterior(y, m.C, noise=m.R)
        mean = x @ m.A.T
        return lk.Gaussian(mean + (y - mean @ m.C.T) @ gain.T, 0.5 * (spread + spread.T))

    return propose


# ------------------------------------------------------------------- evidence


CASES = [("bootstrap", 0.0), ("bootstrap", 0.5), ("bootstrap", 1.0), ("auxiliary", 0.5), ("auxiliary", 1.0)]


@pytest.mark.slow
@pytest.mark.some_cases(3)
@pytest.mark.parametrize("proposal, threshold", [*CASES, ("guided", 0.5), ("optimal", 0.5)])
def test_evidence_is_unbiased(proposal, threshold):
    m = turning(1.0)
    _, y = m.simulate(5, 3)
    exact = m.given(y)[2]
    proposal = optimal(m) if proposal == "optimal" else proposal
    assert unbiased(ratios(m.distributions(), y, exact, 150, proposal=proposal, ess_threshold=threshold))


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("resample", ["systematic", "stratified", "residual", "multinomial"])
def test_evidence_is_unbiased_with_every_resampling(resample):
    m = level()
    _, y = m.simulate(12, 4)
    assert unbiased(ratios(m.distributions(), y, m.given(y)[2], 100, resample=resample, ess_threshold=0.7))


def test_weights_before_the_step_belong_to_its_increment():
    """The plain mean of α (the textbook's slip) is far off where weights were uneven: the test would see it."""
    m = level()
    _, y = m.simulate(40, 5)
    run = ParticleFilter(m.distributions(), 20_000, random_state=1).run(y)
    exact = m.filtered(y)[2]
    assert abs(run.log_evidence - exact.sum()) < 0.1
    plain = []
    for t, b in enumerate(run.beliefs):
        before = run.beliefs[t - 1].log_weights if t and b.ancestors is None else np.full(20_000, -np.log(20_000))
        alpha = b.log_weights - before + run.log_evidences[t]  # log p(y | x) of each particle
        plain.append(np.log(np.mean(np.exp(alpha))))
    assert abs(np.sum(plain) - exact.sum()) > 0.5


def test_forty_steps_of_a_local_level():
    """EXAMPLES F 13: the general rule comes within a hundredth of the exact evidence, the plain mean does not."""
    m = level()
    _, y = m.simulate(40, 13)
    exact = m.given(y)[2]
    logs = [ParticleFilter(m.distributions(), 20_000, random_state=s).log_prob(y)[0] for s in range(5)]
    assert abs(np.mean(logs) - exact) < 0.06  # deviation of one run 0.03, measured


def test_increments_add_up():
    m = turning()
    _, y = m.simulate(10, 1)
    run = ParticleFilter(m.distributions(), 5000, random_state=3).run(y)
    np.testing.assert_allclose(run.log_evidences, m.filtered(y)[2], atol=0.12)
    assert run.log_evidence == run.log_evidences.sum() == run.log_prob


# --------------------------------------------------------------------- moments


@pytest.mark.parametrize("proposal", ["bootstrap", "guided", "auxiliary"])
@pytest.mark.parametrize("make", [level, turning, velocity])
def test_means_and_covariances(make, proposal):
    m = make()
    _, y = m.simulate(15, 7)
    y[4] = np.nan
    mean, covariance, _ = m.filtered(y)
    run = ParticleFilter(m.distributions(), 20_000, random_state=2, proposal=proposal).run(y)
    deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    assert np.abs((run.mean - mean) / deviation).max() < 0.1  # 1/√(N/10) is 0.02: five deviations
    scale = deviation[:, :, None] * deviation[:, None, :]
    assert np.abs((run.covariance - covariance) / scale).max() < 0.15
    np.testing.assert_allclose(run.variance, np.diagonal(run.covariance, axis1=1, axis2=2))


def test_quantiles_and_histories():
    m = level()
    _, y = m.simulate(8, 2)
    mean, covariance, _ = m.filtered(y)
    run = ParticleFilter(m.distributions(), 20_000, random_state=2).run(y)
    low, high = run.quantile([0.1, 0.9])[:, :, 0].T
    want = mean[:, 0] + np.array([[-1.2816], [1.2816]]) * np.sqrt(covariance[:, 0, 0])
    np.testing.assert_allclose([low, high], want, atol=0.08)
    assert run.quantile(0.5).shape == (8, 1)
    assert run.particles.shape == (8, 20_000, 1) and run.weights.shape == run.ancestors.shape == (8, 20_000)
    np.testing.assert_allclose(np.einsum("tn,tnd->td", run.weights, run.particles), run.mean)
    paths = run.genealogy()
    assert paths.shape == (20_000, 8, 1)
    np.testing.assert_array_equal(paths[:, -1], run.particles[-1])
    np.testing.assert_array_equal(paths[:, -2], run.particles[-2][run.ancestors[-1]])


@pytest.mark.slow
def test_better_proposals_vary_less():
    """A sharp observation: whoever looks at it first needs fewer particles."""
    m = turning(noise=0.003)
    _, y = m.simulate(8, 9)
    exact = m.given(y)[2]
    spread = {
        p: np.log(ratios(m.distributions(), y, exact, 300, 30, proposal=p)).std() for p in ("bootstrap", "guided")
    }
    assert spread["guided"] < 0.4 * spread["bootstrap"]


@pytest.mark.slow
def test_looking_ahead_varies_less():
    """Little noise in moves: the mean of a move tells which ancestors an outlier will need."""
    one = np.eye(1)
    m = Linear(0.95 * one, 0.05 * one, one, 0.5 * one, np.zeros(1), one)
    _, y = m.simulate(15, 2)
    y[10] += 3 * np.sqrt(0.55)
    exact = m.given(y)[2]
    spread = {
        p: np.log(ratios(m.distributions(), y, exact, 200, 60, proposal=p)).std() for p in ("bootstrap", "auxiliary")
    }
    assert spread["auxiliary"] < 0.85 * spread["bootstrap"]


def test_guided_is_the_exact_update_of_a_linear_model():
    """Then weights before the observation and after it depend on the old state alone: α = p(y | x′)."""
    m = turning()
    f = ParticleFilter(m.distributions(), 50, proposal="guided", ess_threshold=0.0)
    first, _ = f.update(f.initial_belief(), [0.3])
    second, _ = f.update(f.predict(first), [0.7])
    S = m.C @ m.Q @ m.C.T + m.R
    away = 0.7 - (first.states @ m.A.T @ m.C.T)[:, 0]
    want = first.log_weights - 0.5 * away**2 / S[0, 0]
    want -= np.log(np.exp(want).sum())
    np.testing.assert_allclose(second.log_weights, want, atol=1e-6)


@pytest.mark.slow
def test_guided_with_counts_and_curved_sensors():
    """Non-Gaussian observation distributions, nonlinear means: weights correct the error of the proposal."""
    counts = StateSpace(lk.Gaussian([1.0], 0.5), lambda x: lk.Gaussian(0.9 * x, 0.2), lambda x: lk.Poisson(np.exp(x)))
    y = np.array([3.0, 5.0, 2.0, 0.0, 1.0])
    exact = ParticleFilter(counts, 400_000, random_state=1).log_prob(y)[0]
    assert unbiased(ratios(counts, y, exact, 100, proposal="guided"))
    bearing = StateSpace(
        lk.Gaussian([1.0, 1.0], 0.1),
        lambda x: lk.Gaussian(x, 0.01),
        lambda x: lk.Gaussian(np.stack([np.hypot(*x.T), np.arctan2(*x.T)], 1), [0.01, 0.02]),
    )
    y = np.array([[1.5, 0.7], [1.4, 0.8], [np.nan, 0.9], [1.6, np.nan]])
    exact = ParticleFilter(bearing, 400_000, random_state=1).log_prob(y)[0]
    assert unbiased(ratios(bearing, y, exact, 200, proposal="guided"))


# -------------------------------------------------------- distributions of other kinds


@pytest.mark.slow
def test_a_chain_of_categories_is_a_hidden_markov_model():
    moves, emissions = np.array([[0.8, 0.2], [0.3, 0.7]]), lk.Categorical([[0.9, 0.1], [0.2, 0.8]])
    h = lk.HMM([0.6, 0.4], moves, emissions)
    model = StateSpace(
        lk.Categorical([0.6, 0.4]),
        lambda x: lk.Categorical(moves[x[:, 0].astype(int)]),
        lambda x: lk.Categorical(emissions.probs[x[:, 0].astype(int)]),
    )
    y = np.array([0, 1, 1, 0, 1])
    exact = float(h.log_prob([y])[0])
    assert unbiased(ratios(model, y, exact, 60))
    run = ParticleFilter(model, 20_000).run(y)
    beliefs = [b.probs[1] for b, _ in lk.follow(h, y)]
    np.testing.assert_allclose(run.mean[:, 0], beliefs, atol=0.02)


def test_heavy_tails_time_and_inputs():
    """Functions of (x, t) and (x, t, u); Student's t on both sides; drift given by inputs equals drift known."""
    u = np.array([[0.0], [3.0], [-2.0], [1.0]])
    driven = StateSpace(
        lk.Gaussian([0.0], 1.0),
        lambda x, t, u: lk.StudentT(x + u, 0.1, 5.0),
        lambda x, t: lk.StudentT(x * (t + 1), 0.2, 4.0),
    )
    known = StateSpace(
        lk.Gaussian([0.0], 1.0),
        lambda x, t: lk.StudentT(x + u[t], 0.1, 5.0),
        lambda x, t: lk.StudentT(x * (t + 1), 0.2, 4.0),
    )
    y = np.array([0.1, 5.0, 3.0, 8.0])
    a, b = ParticleFilter(driven, 500).run(y, u), ParticleFilter(known, 500).run(y)
    np.testing.assert_array_equal(a.mean, b.mean)
    assert a.log_evidence == b.log_evidence
    several = ParticleFilter(driven, 500).run([y, y[:2]], [u, u[:2]])
    assert several[0].log_evidence == a.log_evidence and len(several[1].ess) == 2
    with pytest.raises(ShapeError, match="one row per frame"):
        ParticleFilter(driven, 500).run(y, u[:2])


@pytest.mark.slow
def test_states_and_frames_that_a_model_imagines():
    """Geweke's way: statistics of states drawn forwards equal those of paths drawn given imagined observations."""
    m = turning()
    rng = np.random.default_rng(0)
    run = m.distributions().sample(300, rng, 3)
    last = [
        ParticleFilter(m.distributions(), 60, random_state=i).smooth(y, 1).paths[0]
        for i, y in enumerate(run.observations)
    ]
    again = np.array(last)
    for g in (lambda x: x, np.square, lambda x: x[:, :1] * x[:, 1:]):
        a, b = g(run.states).reshape(300, -1), g(again).reshape(300, -1)
        error = np.sqrt((a.var(0) + b.var(0)) / 300)
        assert (np.abs(a.mean(0) - b.mean(0)) < 5 * error).all()
    mean, cov = m.joint(3)
    many = m.distributions().sample(20_000, rng, 3).states.reshape(20_000, -1)
    np.testing.assert_allclose(many.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(many.T), cov, atol=0.05)


# ------------------------------------------------------------------- the role


@pytest.mark.parametrize("proposal", ["bootstrap", "guided", "auxiliary", "optimal"])
def test_following_gives_the_same_bits(proposal):
    m = turning()
    _, y = m.simulate(12, 8)
    y[5] = np.nan
    f = ParticleFilter(
        m.distributions(), 300, proposal=optimal(m) if proposal == "optimal" else proposal, random_state=4
    )
    run = f.run(y)
    for t, (belief, news) in enumerate(lk.follow(f, y)):
        np.testing.assert_array_equal(belief.states, run.particles[t])
        np.testing.assert_array_equal(belief.weights, run.weights[t])
        np.testing.assert_array_equal(belief.mean, run.mean[t])
        assert news == run.log_evidences[t] and belief.time == t and belief.seed == 4
    belief = run.beliefs[6]
    for t in range(7, 12):  # go on from the middle
        belief, news = lk.step(f, belief, y[t])
        assert news == run.log_evidences[t]
    np.testing.assert_array_equal(belief.states, run.belief.states)


@pytest.mark.parametrize("shape", [(5, 1), (300, 3), (NUMBERS // 3, 1), (NUMBERS, 2)])
def test_numbers_of_a_run_are_those_of_single_steps(shape):
    run, seen = FrameNoise(4, shape), set()
    for t in (1, 2, 3, FRAMES + 1, 3 * FRAMES):
        np.testing.assert_array_equal(run.of(t), noise_of(4, t, shape))
        seen.add(run.of(t).tobytes())
    assert len(seen) == 5 and not np.array_equal(noise_of(4, 1, shape), noise_of(5, 1, shape))


class Walk:
    """A distribution that is drawn from in its own way."""

    def __init__(self, x):
        self.x, self.members = x, len(x)

    def sample(self, n, rng):
        return self.x[None] + rng.standard_normal((n, *self.x.shape))

    def log_prob(self, y):
        raise NotImplementedError


@pytest.mark.parametrize("gaussian_at", [lambda t: t % 2 == 0, lambda t: t < 5 or t > 30, lambda t: t % 11 == 3])
def test_numbers_belong_to_their_frame_where_the_kind_of_distribution_changes(gaussian_at):
    """Steps of two frames must not be the same numbers."""
    n = 4096
    m = StateSpace(
        lk.Gaussian([0.0], 1.0),
        lambda x, t: lk.Gaussian(x, 1.0) if gaussian_at(t) else Walk(x),
        lambda x: lk.Gaussian(x, 1e6),
    )
    f, y = ParticleFilter(m, n, random_state=1, ess_threshold=0), np.zeros(47)
    run = f.run(y)
    for t, (belief, _) in enumerate(lk.follow(f, y)):
        np.testing.assert_array_equal(belief.states, run.beliefs[t].states)
    steps = np.diff(run.particles[:, :, 0], axis=0)
    together = np.corrcoef(steps) - np.eye(len(steps))
    assert np.abs(together).max() < 6 / np.sqrt(n)


def test_a_belief_can_be_written_down():
    m = level()
    f = ParticleFilter(m.distributions(), 50, proposal="guided")
    b, _ = f.update(f.predict(f.update(f.initial_belief(), 0.4)[0]), 0.2)
    for belief in (b, f.predict(b)):
        parts = belief.field_values()
        again = ParticleBelief(**parts)
        one, two = f.update(f.predict(belief), 1.0), f.update(f.predict(again), 1.0)
        np.testing.assert_array_equal(one[0].states, two[0].states)
        assert one[1] == two[1]
    assert "50 particles" in repr(b) and "2 frames" in repr(f.run([0.1, 0.2]))


def test_two_sensors_of_one_frame():
    """A second observation of the same frame weighs what the first one placed."""
    m = turning()
    f = ParticleFilter(m.distributions(), 40_000, proposal="guided", random_state=5)
    belief, first = f.update(f.initial_belief(), [0.5])
    belief, second = f.update(belief, [0.2])
    twice = Linear(m.A, m.Q, np.vstack([m.C, m.C]), np.kron(np.eye(2), m.R), m.m, m.P)
    mean, _, exact = twice.given(np.array([[0.5, 0.2]]))
    assert abs(first + second - exact) < 0.03
    np.testing.assert_allclose(belief.mean, mean[0], atol=0.03)


def test_predictions_are_of_the_frame_ahead():
    m = turning()
    for proposal in ("bootstrap", "guided", "auxiliary"):
        f = ParticleFilter(m.distributions(), 40_000, proposal=proposal)
        b, _ = f.update(f.initial_belief(), [0.5])
        ahead = f.predict(f.predict(b))
        mean, covariance, _ = m.given(np.array([[0.5]]), 3)
        assert ahead.time == 2 and not ahead.seen
        np.testing.assert_allclose(ahead.mean, mean[2], atol=0.03)
        np.testing.assert_allclose(ahead.covariance, covariance[2], atol=0.05)


# -------------------------------------------------------------- missing frames


@pytest.mark.parametrize("proposal", ["bootstrap", "guided", "auxiliary"])
def test_frames_that_nobody_saw(proposal):
    m = level()
    _, y = m.simulate(10, 3)
    y[[0, 4, 5]] = np.nan
    run = ParticleFilter(m.distributions(), 20_000, proposal=proposal).run(y)
    assert (run.log_evidences[[0, 4, 5]] == 0.0).all()
    assert abs(run.log_evidence - m.given(y)[2]) < 0.1
    assert np.isfinite(run.mean).all()
    nothing = ParticleFilter(m.distributions(), 100, proposal=proposal).run(np.full((5, 1), np.nan))
    assert nothing.log_evidence == 0.0 and np.allclose(nothing.ess, 100)


@pytest.mark.slow
@pytest.mark.parametrize("proposal", ["bootstrap", "guided", "auxiliary"])
def test_entries_that_nobody_saw_are_integrated_out(proposal):
    R = np.array([[0.3, 0.1], [0.1, 0.4]])
    m = Linear(turning().A, turning().Q, np.array([[1.0, 0.0], [0.3, 1.0]]), R, np.zeros(2), np.eye(2))
    _, y = m.simulate(8, 6)
    y[2, 0] = y[3, 1] = y[5, 0] = np.nan
    run = ParticleFilter(m.distributions(), 200_000, proposal=proposal).run(y, keep=False)
    np.testing.assert_allclose(run.log_evidences, m.filtered(y)[2], atol=0.12)  # 4.5 standard errors


# ------------------------------------------------------------ edges, bad input


@pytest.mark.parametrize("proposal", ["bootstrap", "guided", "auxiliary"])
def test_one_particle(proposal):
    m = turning()
    _, y = m.simulate(5, 1)
    for threshold in (0.0, 1.0):
        run = ParticleFilter(m.distributions(), 1, proposal=proposal, ess_threshold=threshold).run(y)
        assert np.isfinite(run.log_evidence) and (run.weights == 1.0).all() and (run.covariance == 0).all()


def test_what_no_particle_can_explain():
    """Ẑ = 0 is an estimate without bias; it comes with a warning that names the frame, and never as NaN."""
    walk = StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Poisson(np.exp(x)))
    with pytest.warns(FitWarning, match="frame 1"):
        run = ParticleFilter(walk, 100).run([1.0, 0.5, 2.0])
    assert run.log_evidence == -np.inf and np.isfinite(run.mean).all()
    np.testing.assert_array_equal(np.isneginf(run.log_evidences), [False, True, False])


@pytest.mark.parametrize("proposal", ["bootstrap", "guided", "auxiliary"])
@pytest.mark.parametrize("spread", [0.1, 1e-12])
@pytest.mark.parametrize("far", [1e7, 1e10, 1e150])
def test_weights_of_an_outlier_add_up_to_one(proposal, spread, far, recwarn):
    """log Σ exp is then so large that log N is lost in its rounding."""
    m = StateSpace(lk.Gaussian([0.0], spread), lambda x: lk.Gaussian(x, spread), lambda x: lk.Gaussian(x, 1.0))
    run = ParticleFilter(m, 2000, proposal=proposal).run([0.0, far, 0.0, 0.0])
    for b in run.beliefs:
        assert np.exp(b.log_weights).sum() == pytest.approx(1.0, abs=1e-9)
        ParticleBelief(**b.field_values())  # as a file would
    assert np.isfinite(run.log_evidences).all() and not recwarn.list
    if spread < 1e-6 and proposal != "guided":  # whose particles go after the outlier
        assert run.log_evidences[2:] == pytest.approx(-0.5 * np.log(2 * np.pi), abs=1e-3)


def test_many_sequences():
    m = level()
    ys = [m.simulate(T, T)[1] for T in (4, 6, 1)]
    f = ParticleFilter(m.distributions(), 4000)
    runs = f.run(ys)
    assert [len(r.ess) for r in runs] == [4, 6, 1]
    np.testing.assert_allclose([r.log_evidence for r in runs], [m.given(y)[2] for y in ys], atol=0.2)
    np.testing.assert_array_equal(f.log_prob(lk.Ragged.of(ys)), [r.log_evidence for r in runs])
    assert f.run(ys[0]).log_evidence == runs[0].log_evidence
    assert runs[1].belief.seed != runs[0].belief.seed  # random numbers of its own
    assert isinstance(f.run([0.1, 0.2]).log_evidence, float)
    empty = f.run(np.empty((0, 1)))
    assert empty.log_evidence == 0.0 and empty.mean.shape == (0, 1)


def test_every_sequence_depends_on_the_seed():
    m = turning(1.0)
    y = [m.simulate(5, i)[1] for i in range(3)]
    one, other, again = (ParticleFilter(m.distributions(), 50, random_state=seed).log_prob(y) for seed in (1, 2, 1))
    assert (one != other).all() and (one == again).all()


def test_not_keeping():
    run = ParticleFilter(level().distributions(), 100).run([0.1, 0.2], keep=False)
    assert run.mean.shape == (2, 1)
    with pytest.raises(DomainError, match="keep=True"):
        run.quantile(0.5)


GOOD = level().distributions()


@pytest.mark.parametrize(
    "how, words",
    [
        ({"n_particles": 0}, "integer of at least 1"),
        ({"n_particles": 2.5}, "integer"),
        ({"n_particles": True}, "integer"),
        ({"random_state": -1}, "random_state"),
        ({"resample": "sytematic"}, "'systematic', 'stratified'"),
        ({"proposal": "guide"}, "'bootstrap', 'guided', 'auxiliary'"),
        ({"ess_threshold": 1.5}, "0 … 1"),
        ({"ess_threshold": np.nan}, "0 … 1"),
        ({"model": 3}, "StateSpace"),
    ],
)
def test_settings_that_cannot_be(how, words):
    with pytest.raises(DomainError, match=words):
        ParticleFilter(**{"model": GOOD, "n_particles": 10, **how})


def model(**other) -> StateSpace:
    parts = {"initial": GOOD.initial, "transition": GOOD.transition, "observation": GOOD.observation}
    return StateSpace(**{**parts, **other})


@pytest.mark.parametrize(
    "other, error, words",
    [
        (
            {"observation": lambda x: lk.Gaussian([0.0], 1.0)},
            ShapeError,
            "observation at frame 0.*stack of 9.*one distribution",
        ),
        ({"transition": lambda x: lk.Gaussian(x[:3], 1.0)}, ShapeError, "transition at frame 1.*3 members"),
        ({"transition": lambda x: x + 1.0}, DomainError, "transition at frame 1.*ndarray"),
        ({"transition": lambda x: lk.Gaussian(np.hstack([x, x]), 1.0)}, ShapeError, "transition at frame 1"),
        ({"observation": lambda x: lk.Gaussian(x * np.nan, 1.0)}, DataError, "observation at frame 0.*finite"),
        ({"transition": lambda x: lk.Gaussian(x, -1.0)}, DataError, "transition at frame 1.*negative"),
        ({"initial": lk.Gaussian([[0.0], [1.0]], 1.0)}, DomainError, "initial.*one density"),
        ({"initial": lk.Categorical([0.5, 0.5], levels=["a", "b"])}, DataError, "initial.*numbers"),
    ],
)
def test_functions_that_return_the_wrong_thing(other, error, words):
    with pytest.raises(error, match=words):
        ParticleFilter(model(**other), 9).run([0.1, 0.2])


class Broken:
    """A distribution of somebody else's whose numbers are no numbers."""

    def __init__(self, n: int, value: float) -> None:
        self.members, self.value = n, value

    def log_prob(self, x):
        return np.full((len(x), self.members), self.value)

    def sample(self, n, rng):
        return np.zeros((n, self.members, 1))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_densities_that_are_no_numbers(value):
    with pytest.raises(DataError, match=r"frame 0.*below infinity"):
        ParticleFilter(model(observation=lambda x: Broken(len(x), value)), 5).run([0.1])


def test_models_that_cannot_be():
    with pytest.raises(DomainError, match="transition must be a function"):
        StateSpace(GOOD.initial, 3, GOOD.observation)
    with pytest.raises(DomainError, match="initial must be a density"):
        StateSpace(3, GOOD.transition, GOOD.observation)
    with pytest.raises(DomainError, match="length"):
        GOOD.sample(3, np.random.default_rng(0), 0)
    late = StateSpace(lambda: GOOD.initial, GOOD.transition, GOOD.observation)
    assert ParticleFilter(late, 50).run([0.1]).log_evidence == ParticleFilter(GOOD, 50).run([0.1]).log_evidence


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_one_column_is_the_same_whatever_its_variance_is_called(kind):
    shape = {"full": (-1, 1, 1), "diagonal": (-1, 1), "spherical": (-1,)}

    def distribution(kind):
        return lambda x: lk.Gaussian(0.9 * x, np.exp(0.1 * x).reshape(shape[kind]), kind)

    y = np.array([0.3, -0.2, 0.8])
    one, two = (
        ParticleFilter(StateSpace(lk.Gaussian([0.0], 1.0), distribution(k), distribution(k)), 300).run(y)
        for k in (kind, "full")
    )
    np.testing.assert_array_equal(one.belief.states, two.belief.states)
    np.testing.assert_array_equal(one.log_evidences, two.log_evidences)
    x = np.linspace(-2, 2, 300)[:, None]
    np.testing.assert_allclose(
        distribution(kind)(x).log_prob([[0.4]])[0], log_prob_each(distribution(kind)(x), [[0.4]]), rtol=1e-12
    )


def test_a_proposal_of_inputs():
    """The exact update of a level that inputs move: evidence varies little, and not at all from the right number."""
    u, y = np.array([[0.0], [3.0], [-2.0], [1.0]]), np.array([0.1, 3.2, 0.9, 2.2])
    driven = StateSpace(
        lk.Gaussian([0.0], 1.0), lambda x, t, u: lk.Gaussian(x + u, 0.5), lambda x: lk.Gaussian(x, 1e-3)
    )

    def propose(x, y, t, u):
        if x is None:
            return lk.Gaussian(y / 1.001, 1e-3 / 1.001)
        return lk.Gaussian((1e-3 * (x + u) + 0.5 * y) / 0.501, 0.5e-3 / 0.501)

    exact = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[0.5]],
        observation=[[1.0]],
        observation_covariance=[[1e-3]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        control=[[1.0]],
    ).log_prob(y, u)[0]
    found = ParticleFilter(driven, 500, proposal=propose).run(y, u)
    assert found.log_evidence == pytest.approx(exact, abs=0.05) and found.ess.min() > 250
    with pytest.raises(DataError, match="inputs"):
        ParticleFilter(driven, 500, proposal=propose).run(y)


@pytest.mark.parametrize("time", [0, 7])
@pytest.mark.parametrize("proposal", ["guided", "auxiliary", lambda x, y, t: lk.Gaussian([0.0], 1.0)])
def test_particles_that_somebody_placed_stay(proposal, time):
    m = StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.01), lambda x: lk.Gaussian(x, 1.0))
    at_fifty = ParticleBelief(np.full((500, 1), 50.0), np.full(500, -np.log(500)), time=time)
    belief, news = ParticleFilter(m, 500, proposal=proposal).update(at_fifty, 50.0)
    assert belief.mean == pytest.approx([50.0]) and news == pytest.approx(-0.5 * np.log(2 * np.pi))


def test_guided_moves_the_first_particles_of_its_own():
    m = StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 0.01), lambda x: lk.Gaussian(x, 1e-4))
    f = ParticleFilter(m, 500, proposal="guided", random_state=3)
    belief, news = f.update(f.initial_belief(), 2.0)
    assert belief.ess > 499 and news == pytest.approx(lk.Gaussian([0.0], 1.0001).log_prob([[2.0]])[0], abs=1e-3)
    uneven = f.initial_belief().replace(log_weights=np.log(np.r_[0.5, np.full(499, 0.5 / 499)]))
    np.testing.assert_array_equal(f.update(uneven, 2.0)[0].states, uneven.states)


def test_one_sequence_has_one_evidence():
    f = ParticleFilter(model(), 20)
    assert f.log_prob([0.1, 0.2]).shape == (1,) and f.log_prob([[0.1, 0.2], [0.3]]).shape == (2,)


def test_proposals_that_do_not_fit():
    t = model(transition=lambda x: lk.StudentT(x, 1.0, 4.0))
    with pytest.raises(DomainError, match="Gaussian transition"):
        ParticleFilter(t, 9, proposal="guided").run([0.1, 0.2])
    exact = model(observation=lambda x: lk.Gaussian(x, 0.0))
    with pytest.raises(DomainError, match="noise in every direction"):
        ParticleFilter(exact, 9, proposal="guided").run([0.1])
    with pytest.raises(DataError, match="positive and finite"):
        ParticleFilter(GOOD, 9, proposal=lambda x, y, t: Broken(9, np.nan) if t else None).run([0.1, 0.2])
    own = ParticleFilter(GOOD, 9, proposal=lambda x, y, t: None).run([0.1, 0.3])
    assert own.log_evidence == ParticleFilter(GOOD, 9).run([0.1, 0.3]).log_evidence


def test_frames_of_the_wrong_shape():
    f = ParticleFilter(GOOD, 9)
    with pytest.raises(ShapeError):
        f.run(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="one by one"):
        f.update(f.initial_belief(), np.zeros((2, 1)))
    with pytest.raises(DataError, match="finite"):
        f.run([0.1, np.inf])


@pytest.mark.parametrize(
    "parts, words",
    [
        (([[0.0], [1.0]], [0.0, 0.0]), "add up to one"),
        (([0.0, 1.0], [0.0, 0.0]), "shape"),
        (([[0.0], [1.0]], [0.0]), "log_weights"),
        (([[np.nan]], [0.0]), "finite"),
        (([[0.0]], [np.nan]), "add up to one"),
        (([[0.0]], [0.0], -1), "time"),
        (([[0.0]], [0.0], 0, 0, False, None, [-1]), "ancestors"),
        (([[0.0]], [0.0], 0, 0, False, [[1.0], [2.0]]), "before"),
    ],
)
def test_beliefs_that_cannot_be(parts, words):
    with pytest.raises(lk.LikelyError, match=words):
        ParticleBelief(*parts)


def test_what_a_belief_says():
    b = ParticleBelief([[0.0, 1.0], [2.0, 5.0], [4.0, 0.0]], np.log([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(b.mean, [1.5, 1.75])
    np.testing.assert_allclose(b.covariance, np.cov(b.states.T, aweights=b.weights, ddof=0))
    assert b.quantile(0.5).tolist() == [0.0, 1.0] and b.quantile([0.0, 1.0]).tolist() == [[0.0, 0.0], [4.0, 5.0]]
    assert b.expect(lambda x: x[:, 0] ** 2) == pytest.approx(5.0)
    drawn = b.sample(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(0), b.mean, atol=0.05)
    assert np.abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.03  # in no order
    with pytest.raises(DomainError, match="0 … 1"):
        b.quantile(1.2)
    assert keyed(1, 2).random() == keyed(1, 2).random() != keyed(1, 3).random()


def test_nothing_is_said_on_the_way():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for proposal in ("bootstrap", "guided", "auxiliary"):
            ParticleFilter(level().distributions(), 50, proposal=proposal).run([0.1, 400.0, np.nan, -1e6])


# ------------------------------------------------------------------ running dry


def wandering(T: int = 600) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.cumsum(0.3 * rng.normal(size=T)) + 0.7 * rng.normal(size=T)


def forgetful() -> dict[str, StateSpace]:
    """Models whose particles forget their ancestors: a level, one that is wide at first, and a volatility."""
    step, look = (lambda x: lk.Gaussian(x, 0.1)), (lambda x: lk.Gaussian(x, 0.5))
    return {
        "level": StateSpace(lk.Gaussian([0.0], 1.0), step, look),
        "wide": StateSpace(lk.Gaussian([0.0], 1e4), step, look),
        "volatility": StateSpace(
            lk.Gaussian([0.0], 0.8), lambda x: lk.Gaussian(0.97 * x, 0.04), lambda x: lk.Gaussian(0 * x, np.exp(x))
        ),
    }


@pytest.mark.parametrize("name", ["level", "wide", "volatility"])
def test_states_that_forget_do_not_run_dry(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = ParticleFilter(forgetful()[name], 400, random_state=1).run(wandering(), keep=False)
        assert len(list(lk.follow(ParticleFilter(forgetful()[name], 400, random_state=1), wandering()))) == 600
    assert not run.impoverished.any()


def all_but_constant(noise: float) -> StateSpace:
    """A coefficient that is all but constant: its particles soon have one ancestor, though many count."""

    def transition(x):
        moved = x.copy()
        moved[:, 0] *= x[:, 1]
        return lk.Gaussian(moved, np.array([0.3, noise]))

    start = lk.Gaussian([0.0, 0.5], np.array([1.0, 0.1]))
    return StateSpace(start, transition, lambda x: lk.Gaussian(x[:, :1], 0.2))


TOLD = (
    r"sample impoverishment in state 1: over \d+ frames resampling leaves at most 10 ancestors of all 300 "
    r"particles, and the process noise of this state is too small"
)


@pytest.mark.parametrize("noise", [1e-12, 1e-7])
@pytest.mark.parametrize("proposal", ["bootstrap", "auxiliary"])
def test_states_that_hardly_move_run_dry(noise, proposal):
    y = np.random.default_rng(3).normal(size=400)
    with pytest.warns(FitWarning, match=TOLD):
        run = ParticleFilter(all_but_constant(noise), 300, proposal=proposal, random_state=1).run(y, keep=False)
    assert run.impoverished.tolist() == [False, True]
    assert np.median(run.ess) > 50


@pytest.mark.parametrize("kept", [False, True])
def test_a_live_stream_that_runs_dry_is_reported_once(kept, tmp_path):
    """As soon as a run over the frames so far would tell of it, and by the line that asks for the next belief."""
    y, pf = np.random.default_rng(3).normal(size=400), ParticleFilter(all_but_constant(1e-12), 300, random_state=1)
    frames = 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in lk.follow(pf, y, checkpoint=tmp_path / "belief" if kept else None, checkpoint_every=100):
            frames += not said
        assert len(said) == 1 and "sample impoverishment in state 1" in str(said[0].message)
        assert said[0].filename == __file__
        assert 10 < frames < 390
        said.clear()
        assert not pf.run(y[:frames], keep=False).impoverished.any() and not said
        assert pf.run(y[: frames + 1], keep=False).impoverished[1]
    with pytest.raises(lk.DomainError, match="must be a ParticleBelief"):
        next(iter(lk.follow(pf, y, 3.0)))


def test_what_never_varied_cannot_run_dry():
    model = StateSpace(
        lk.Gaussian([0.0, 2.0], np.array([1.0, 0.0])),
        lambda x: lk.Gaussian(x, np.array([0.1, 0.0])),
        lambda x: lk.Gaussian(x[:, :1], 0.5),
    )
    run = ParticleFilter(model, 300, random_state=1).run(wandering(), keep=False)
    assert not run.impoverished.any()


@pytest.mark.slow
def test_a_robot_whose_beacons_have_scales_of_their_own(data_dir):
    """Plaza 1: the scales of beacons hardly move. Pose and heading do, and are told apart."""
    z = np.load(data_dir / "tracking" / "plaza1.npz")
    truth, odometry, beacons = z["ground_truth"], z["odometry"], z["beacons"]
    T = 1500
    ranges = np.full((len(truth), 4), np.nan)
    for when, _, beacon, meters in z["ranges"]:
        ranges[np.searchsorted(truth[:, 0], when), np.flatnonzero(beacons[:, 0] == beacon)[0]] = meters
    inputs = np.concatenate([np.zeros((1, 2)), odometry[:, 1:]])

    def transition(x, t, u):
        moved, heading = x.copy(), x[:, 2] + u[1]
        moved[:, 0] += u[0] * np.cos(heading)
        moved[:, 1] += u[0] * np.sin(heading)
        moved[:, 2] = heading
        along = 0.0025 * abs(u[0]) + 1e-10
        return lk.Gaussian(moved, np.concatenate([[along, along, 9e-6], np.full(4, 6e-10)]))

    def observation(x):
        d = np.hypot(x[:, :1] - beacons[:, 1], x[:, 1:2] - beacons[:, 2])
        return lk.Gaussian(d * (1 + x[:, 3:]), 0.25)

    start = lk.Gaussian([0.0, 0.0, truth[0, 3], 0, 0, 0, 0], np.array([0.01, 0.01, 0.01, *[0.0056] * 4]))
    with pytest.warns(FitWarning, match="sample impoverishment"):
        run = ParticleFilter(StateSpace(start, transition, observation), 500, random_state=1).run(
            ranges[:T], inputs[:T], keep=False
        )
    assert not run.impoverished[:3].any() and run.impoverished[3:].sum() >= 2
