"""The worked numbers of the notes, by the library's own verbs; each test is named after its place.

H is Herbst and du Preez, N is Ney, F de Freitas, W the worksheet, C Crowley. Recomputed where the notes misprint
(docs/development/errata.md). The evidence of particles (F 13) is in
tests/statespace/particle/test_particle_filter.py, entries of
the table of warping (H 9.3) in tests/alignment/test_dtw.py, the exchange of single rows (N 6.2.2) in
tests/cluster/kmeans/test_exchange.py.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import likely as lk

RNG = np.random.default_rng(20260)
FORGERIES = [4e-4, 1 - 4e-4]


def rejected(times: int, class_prior=FORGERIES) -> float:
    """P(forgery | that many rejections): hit .96, false alarm .04, as two Bernoulli distributions."""
    classes = lk.Mixture(class_prior, lk.Bernoulli([[0.96] * times, [0.04] * times]))
    return float(np.exp(classes.log_posterior(np.ones((1, times))))[0, 0])


def test_h_1_2_1_signatures():
    both = lk.Mixture(FORGERIES, lk.Bernoulli([[0.96], [0.04]]))
    assert np.exp(both.log_prob([1.0]))[0] == pytest.approx(0.040368, abs=5e-13)
    assert [rejected(k) for k in (1, 2, 3)] == pytest.approx([0.00951249, 0.18731707, 0.84690], abs=5e-6)
    assert rejected(1) == pytest.approx(0.00951249, abs=5e-9) and rejected(2) == pytest.approx(0.18731707, abs=5e-9)
    assert rejected(1, [0.5, 0.5]) == pytest.approx(0.96)


def test_h_1_2_1_question_every_second_rejection_is_a_forgery():
    e = 4e-4  # the equal error rate that does it is the prior itself
    distribution = lk.Mixture(FORGERIES, lk.Bernoulli([[1 - e], [e]]))
    assert np.exp(distribution.log_posterior([[1.0]]))[0, 0] == pytest.approx(0.5, rel=1e-12)


def test_h_1_2_2_equalizing_four_levels():
    image = np.repeat([0, 1, 2, 3], [4, 2, 1, 1])
    assert np.unique(lk.density.equalize_histogram(image, 4)).tolist() == [0.5, 0.75, 0.875, 1.0]


def test_h_1_2_2_protocol_of_the_signatures():
    """440 genuine and 264 forged signatures at an equal error rate of 4 %: what such counts can tell."""
    rate, low, high = lk.metrics.proportion_interval(round(0.04 * 440), 22 * 20)
    assert rate == pytest.approx(0.04, abs=0.002) and low < 0.04 < high < 0.07
    rate, low, high = lk.metrics.proportion_interval(round(0.04 * 264), 22 * 12)
    assert rate == pytest.approx(0.04, abs=0.002) and low < 0.04 < high < 0.08


def test_h_1_4_shells():
    assert lk.metrics.shell_volume_fraction([10, 100], [0.1, 0.01]) == pytest.approx([0.65132, 0.63397], abs=5e-6)
    assert lk.metrics.shell_volume_fraction(10**9, 1e-9) == pytest.approx(0.63212, abs=5e-6)


def test_h_1_5_4_two_posteriors_become_one():
    one = np.array([[rejected(1), 1 - rejected(1)]])
    assert lk.combine_posteriors([one, one], FORGERIES)[0, 0] == pytest.approx(0.18731707, abs=5e-9)


def test_h_1_6_entropy_of_a_gaussian():
    assert lk.Gaussian([0.0], 1.0).entropy() == pytest.approx(1.4189385, abs=5e-8)
    assert float(lk.entropy(lk.Gaussian([0.0], 1.0)).value) == pytest.approx(1.4189385, abs=5e-8)


def test_h_2_1_three_ones_of_three():
    stats = lk.Bernoulli(0.5).collect([1, 1, 1])
    assert lk.Bernoulli(0.5).refit(stats).probs[0] == 1.0
    assert lk.Beta(1, 1).update(stats).predictive().probs[0] == pytest.approx(4 / 5)
    assert lk.Beta(2, 2).update(stats).predictive().probs[0] == pytest.approx(5 / 7)


def test_h_3_2_one_datum_of_a_line():
    prior = lk.Gaussian([0.0, 0.0], 1 / 2)  # α = 2
    line = lk.BayesianLinearRegression(prior=prior, noise_variance=1 / 25).fit([[0.5]], [-0.05])
    assert line.coefficients_ == pytest.approx([-0.0375940, -0.0187970], abs=5e-8)
    assert np.sqrt(np.diagonal(line.posterior_.covariance)) == pytest.approx([0.352222, 0.637193], abs=5e-7)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (20, 1))
    t = -0.3 + 0.5 * x[:, 0] + 0.2 * rng.standard_normal(20)
    belief = line.posterior_
    for i in range(20):  # sequential is batch
        belief = belief.update(belief.point().collect(t[i : i + 1], x[i : i + 1]))
    batch = lk.BayesianLinearRegression(prior=prior, noise_variance=1 / 25)
    batch.fit(np.vstack([[[0.5]], x]), np.append(-0.05, t))
    assert belief.mean == pytest.approx(batch.coefficients_, abs=1e-13)


def test_h_3_2_2_predictive_bands():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (24, 1))
    t, at = np.sin(2 * np.pi * x[:, 0]) + 0.2 * rng.standard_normal(24), np.linspace(0, 1, 50)[:, None]
    basis = lk.basis.Polynomial(6)
    bands = []
    for n in (1, 2, 4, 24):
        m = lk.BayesianLinearRegression(basis, lk.Gaussian(np.zeros(7), 1 / 2), noise_variance=1 / 25)
        bands.append(m.fit(x[:n], t[:n]).predict(at, return_std=True)[1])
    assert all((band >= 0.2).all() for band in bands)
    assert all((b <= a + 1e-12).all() for a, b in pairwise(bands))


def test_h_4_1_6_rank_of_the_spread_between_classes():
    X, y = RNG.normal(size=(90, 6)), np.arange(90) % 3
    assert lk.FisherDiscriminant().fit(X, y).transform(X).shape == (90, 2)


def test_h_4_2_3_numbers_of_parameters():
    means, eye = np.zeros((3, 10)), np.eye(10)
    full, shared = lk.Gaussian(means, np.stack([eye] * 3)), lk.Gaussian(means, eye)
    diagonal = lk.Gaussian(means, np.ones((3, 10)), kind="diagonal")
    assert [distribution.n_parameters for distribution in (full, shared, diagonal)] == [195, 85, 60]


def test_h_6_3_the_posterior_of_factors():
    W, s2, x = RNG.normal(size=(5, 2)), 0.3, RNG.normal(size=(1, 5))
    distribution = lk.distributions.FactorGaussian(np.zeros(5), W, s2)
    M, C = W.T @ W + s2 * np.eye(2), W @ W.T + s2 * np.eye(5)
    post = distribution.posterior(x)
    assert np.allclose(post.covariance_matrix, s2 * np.linalg.inv(M), atol=1e-13)
    assert np.allclose(post.covariance_matrix, np.eye(2) - W.T @ np.linalg.solve(C, W), atol=1e-13)
    inverse = (np.eye(5) - W @ np.linalg.solve(M, W.T)) / s2
    want = -0.5 * (x @ inverse @ x.T)[0, 0] - 0.5 * np.linalg.slogdet(2 * np.pi * C)[1]
    assert distribution.log_prob(x)[0] == pytest.approx(want, abs=1e-12)


def test_h_8_two_forms_of_the_kalman_update():
    """(8.11) with R⁻¹ is (8.13)."""
    A = RNG.normal(size=(3, 3))
    P, H, R, y = A @ A.T + np.eye(3), RNG.normal(size=(2, 3)), np.array([[0.5, 0.1], [0.1, 0.3]]), RNG.normal(size=2)
    model = lk.LinearGaussian(
        transition=np.eye(3),
        process_covariance=np.eye(3),
        observation=H,
        observation_covariance=R,
        initial_mean=np.zeros(3),
        initial_covariance=P,
    )
    post, _ = model.update(model.initial_belief(), y)
    want = np.linalg.inv(np.linalg.inv(P) + H.T @ np.linalg.solve(R, H))
    assert np.allclose(post.covariance, want, atol=1e-12)
    gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
    assert np.allclose(post.covariance, P - gain @ H @ P, atol=1e-12) and np.allclose(post.mean, gain @ y, atol=1e-12)


def test_h_9_3_number_of_paths():
    assert (lk.alignment.number_of_paths(5, 4), lk.alignment.number_of_paths(5, 4, diagonal=False)) == (129, 35)
    assert (lk.alignment.number_of_paths(6, 5), lk.alignment.number_of_paths(6, 5, diagonal=False)) == (681, 126)


def test_h_9_3_warping():
    """Path 1-7-8-14-20 in the numbering of the notes, at cost 1; every entry: tests/alignment/test_dtw.py."""
    assert lk.dtw([1.0, 0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 2.0, 1.0]).distance == pytest.approx(1.0)


def test_n_2_1_posteriors_are_normalized():
    distribution = lk.Mixture([2 / 3, 1 / 3], lk.Gaussian([[0.0], [1.0]], 1.0))
    x = np.array([[-1.0], [0.5], [3.0]])
    P = np.exp(distribution.log_posterior(x))
    joint = np.exp(distribution.components.log_prob(x)) * [2 / 3, 1 / 3]
    assert np.allclose(P.sum(axis=1), 1) and np.allclose(P, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)


def test_n_2_4_boundaries():
    G = lk.Gaussian
    circle = lk.decision_boundary(G([0.0, 0.0], 1.0), G([0.0, 0.0], 4.0))
    assert circle.kind == "circle" and circle.radius == pytest.approx(1.9227025, abs=5e-8)
    lines = lk.decision_boundary(G([0.0, 0.0], [1.0, 4.0]), G([0.0, 0.0], [4.0, 1.0]))
    t = np.array([-3.0, 0.5, 2.0])
    assert "lines" in lines.kind
    assert np.allclose(lines.value(np.stack([t, t], 1)), 0) and np.allclose(lines.value(np.stack([t, -t], 1)), 0)
    parabola = lk.decision_boundary(G([0.0, 0.0], 1.0), G([2.0, 0.0], [1.0, 4.0]))
    y = np.array([-2.0, 0.0, 1.0])
    x = (4 + math.log(4) - 0.75 * y**2) / 4
    assert parabola.kind == "parabola" and np.allclose(parabola.value(np.stack([x, y], 1)), 0, atol=1e-13)


def test_n_2_4_exclusive_or():
    corners, y = np.array([[0, 0], [1, 1], [0, 1], [1, 0]], float), np.array([0, 0, 1, 1])
    spread = [0.25 * np.array([[1, s], [s, 1]]) + 0.05 * np.eye(2) for s in (1, -1)]
    distribution = lk.Mixture([0.5, 0.5], lk.Gaussian(np.full((2, 2), 0.5), np.stack(spread)))
    assert (distribution.log_posterior(corners).argmax(axis=1) == y).all()
    border = lk.decision_boundary(*(distribution.components.member(k) for k in (0, 1)))
    on = np.array([[0.5, 0.1], [0.5, 3.0], [-2.0, 0.5], [0.9, 0.5]])
    assert np.allclose(border.value(on), 0, atol=1e-12)
    shared = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(corners, y)
    assert np.allclose(shared.predict_proba(corners), 0.5)


def test_n_2_5_errors_of_two_gaussians():
    for v, want in zip((1, 2, 3, 4), (0.308538, 0.158655, 0.066807, 0.022750), strict=True):
        assert lk.bayes_error(lk.Gaussian([0.0], 1.0), lk.Gaussian([float(v)], 1.0)).value == pytest.approx(
            want, abs=5e-7
        )
        D = v * v  # so many features one deviation apart
        two = lk.Gaussian(np.zeros(D), 1.0), lk.Gaussian(np.ones(D), 1.0)
        assert lk.bayes_error(*two).value == pytest.approx(want, abs=5e-7)
    S = [[1.0, 0.3], [0.3, 2.0]]
    two = lk.Gaussian([0.0, 0.0], S), lk.Gaussian([2.0, 1.0], S)
    assert two[0].mahalanobis([[2.0, 1.0]])[0] ** 2 == pytest.approx(4.0837696, abs=5e-8)
    assert lk.bayes_error(*two, class_prior=[0.7, 0.3]).value == pytest.approx(0.1366457, abs=5e-8)


MIRRORED = {
    0.8: {1: 0.2, 3: 0.104, 4: 0.104, 5: 0.05792, 11: 0.0116542, 21: 0.00096970},
    0.6: {1: 0.4, 3: 0.352, 5: 0.31744, 11: 0.246502, 21: 0.174378},
}


def test_n_2_6_3_mirrored_binary_features():
    for rate, each in MIRRORED.items():
        for D, want in each.items():
            two = lk.Bernoulli([rate] * D), lk.Bernoulli([1 - rate] * D)
            assert lk.bayes_error(*two).value == pytest.approx(want, rel=5e-6)
    for D, want in {1: 0.8, 3: 0.512, 5: 0.32768, 11: 0.0859, 21: 0.00922}.items():
        two = lk.Bernoulli([0.8] * D), lk.Bernoulli([0.2] * D)
        assert 2 * lk.decision.bhattacharyya_bound(*two).value == pytest.approx(want, rel=1e-3)


def test_n_2_6_2_walsh():
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    distribution = lk.distributions.Walsh.of([0.4, 0.1, 0.2, 0.3])
    assert sorted(np.ravel(distribution.coefficients).round(12)) == sorted([0.25, 0.0, -0.05, 0.1])
    assert np.allclose(distribution.value(rows), [0.4, 0.1, 0.2, 0.3], atol=1e-15)
    assert lk.distributions.Walsh.of([0.05, 0.05, 0.05, 0.85], order=1).value(rows[:1])[0] == pytest.approx(-0.15)


def test_n_3_2_high_dimensions():
    assert lk.metrics.shell_to_ball_ratio(16, 0.1) == pytest.approx(6553.5)
    for D, height in {8: 0.11202, 16: 0.07450, 32: 0.05122, 64: 0.03573}.items():
        distribution = lk.distributions.ChiSquare(float(D))
        assert (distribution.mean[0], distribution.variance[0], distribution.mode[0]) == (D, 2 * D, D - 2)
        assert np.exp(distribution.log_prob([D - 2.0]))[0] == pytest.approx(height, abs=5e-6)


def test_n_3_4_maximum_likelihood():
    laplace = lk.Laplace.fit(np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert (laplace.center[0], laplace.scale[0]) == (4.0, pytest.approx(4.2))
    assert lk.Binomial.fit([[3.0], [1.0]], trials=5).probs[0] == pytest.approx(4 / 10)
    assert lk.Poisson.fit([[3], [1], [5]]).rate[0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("n", "mean", "variance"), [(1, -1.6, 0.8), (4, -1, 0.5), (12, -0.5, 0.25), (100, -0.0769, 0.0385)]
)
def test_n_3_8_a_belief_about_a_mean(n, mean, variance):
    post = lk.priors.MeanGivenCovariance(lk.Gaussian([-2.0], 1.0), 4.0).update(
        lk.Gaussian([0.0], 1.0).collect(np.zeros((n, 1)))
    )
    found = float(post.belief.mean[0]), float(np.ravel(post.belief.covariance)[0])
    assert found == pytest.approx((mean, variance), abs=5e-5)
    assert found == pytest.approx((-8 / (4 + n), 4 / (4 + n)), rel=1e-12)


def test_n_5_2_exercise_the_maximum_approximation():
    x = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1]
    s2 = x.var(axis=0)
    apart = ((x[:, None] - x[None]) ** 2 / s2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    found = lk.KDE.fit(x, bandwidth="maximum")
    assert found.bandwidth**2 == pytest.approx(apart.min(axis=1).sum() / (40 * 3) * s2, rel=1e-10)


def test_n_5_4_cover_and_hart():
    assert [lk.decision.cover_hart_bound(0.1, K) for K in (2, 3, 10)] == pytest.approx([0.18, 0.185, 0.18889], abs=5e-6)
    assert [lk.decision.cover_hart_bound(0.25, K) for K in (2, 3, 10)] == pytest.approx(
        [0.375, 0.40625, 0.43056], abs=5e-6
    )


def test_n_6_2_1_partitions():
    assert np.exp([lk.cluster.log_stirling2(5, k) for k in range(1, 6)]) == pytest.approx([1, 15, 25, 10, 1], rel=1e-12)
    assert all(lk.cluster.log_stirling2(n, 2) == pytest.approx(math.log(2 ** (n - 1) - 1)) for n in range(2, 60))
    assert math.comb(5, 2) + math.comb(5, 1) == 15  # S(5, 2): 10 as 3 + 2, 5 as 4 + 1


def test_n_6_2_3_distances_between_two_clusters():
    """A = {0, 1}, B = {4, 6, 9}: the height of the last merge is the distance of the two."""
    x = np.array([[0.0], [1.0], [4.0], [6.0], [9.0]])
    wanted = {"single": 3, "complete": 9, "average": 5.8333, "sum": 35, "centroid": 5.8333, "coordinate-median": 5.5}
    for link, want in wanted.items():
        tree = lk.cluster.linkage(x, link)
        assert tree.heights[-1] == pytest.approx(want, abs=5e-5), link
    assert lk.cluster.linkage(x, "ward").heights[-1] ** 2 / 2 == pytest.approx(40.8333, abs=5e-5)


def test_n_7_1_paths_of_the_012_model():
    """Counts of paths into each of 9 end states after T = 5 frames."""
    moves = lk.hmm.Topology.steps(9, (0, 1, 2)).transition.astype(int)
    counts = np.linalg.matrix_power(moves, 4)[0]
    assert counts.sum() == 81 and counts.tolist() == [1, 4, 10, 16, 19, 16, 10, 4, 1]


def test_n_8_2_2_what_axes_leave_out():
    """λ = 4, 3, 2, 1: the share of the spread that the first d axes lose."""
    x = np.concatenate([s * np.sqrt(4 * v) * np.eye(4)[[j]] for j, v in enumerate((4, 3, 2, 1)) for s in (1, -1)])
    lost = []
    for d in range(1, 5):
        p = lk.PCA(n_components=d).fit(x)
        lost.append(((x - p.inverse_transform(p.transform(x))) ** 2).sum() / (x**2).sum())
    assert lost == pytest.approx([0.6, 0.3, 0.1, 0.0], abs=1e-12)


def test_n_8_2_4_the_likelihood_at_its_maximum():
    x = RNG.normal(size=(50, 3)) @ RNG.normal(size=(3, 3))
    g = lk.Gaussian.fit(x, kind="full")
    want = -25 * np.linalg.slogdet(2 * np.pi * np.e * g.covariance_matrix)[1]
    assert g.log_prob(x).sum() == pytest.approx(want, rel=1e-12)


def test_f_13_a_constant_observation():
    """The emission mean of a constant series of 5 is 5: every frame that is summed is also counted."""
    x = lk.Ragged.from_list([np.full((12, 1), 5.0)])
    start = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], lk.Gaussian([[4.0], [6.5]], 1.0))
    once = start.refit(start.collect(x))
    assert np.allclose(once.emission.mean, 5.0, atol=1e-12)


def test_w_predictive_of_a_mean_that_is_not_known():
    x, S0 = RNG.normal(size=(7, 2)), np.array([[2.0, 0.3], [0.3, 1.0]])
    prior, one = (
        lk.priors.MeanGivenCovariance(lk.Gaussian([0.0, 0.0], S0), np.eye(2)),
        lk.Gaussian([0.0, 0.0], np.eye(2)),
    )
    post = prior.update(one.collect(x))
    S = np.linalg.inv(np.linalg.inv(S0) + 7 * np.eye(2))
    assert np.allclose(post.predictive().mean, S @ x.sum(axis=0), atol=1e-12)
    assert np.allclose(post.predictive().covariance_matrix, np.eye(2) + S, atol=1e-12)
    steps = prior
    for row in x:
        steps = steps.update(one.collect(row[None]))
    assert np.allclose(steps.predictive().mean, post.predictive().mean, atol=1e-12)
    assert np.allclose(steps.predictive().covariance_matrix, post.predictive().covariance_matrix, atol=1e-12)


def test_c_projected_moments_are_moments_of_projections():
    x, R = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
    g = lk.Gaussian.fit(x, kind="full")
    mapped, direct = g.affine(R.T), lk.Gaussian.fit(x @ R, kind="full")
    assert np.allclose(mapped.mean, direct.mean, atol=1e-12)
    assert np.allclose(mapped.covariance_matrix, direct.covariance_matrix, atol=1e-12)
    assert np.allclose(mapped.covariance_matrix, R.T @ g.covariance_matrix @ R, atol=1e-12)
