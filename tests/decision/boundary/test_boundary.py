"""Borders of Gaussians: the rows of the notes, kinds under maps and units, and geometry by definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

import likely as lk

G = lk.Gaussian

KINDS = {
    "ellipse": (G([0.0, 0.0], 1.0), G([1.0, 2.0], [4.0, 9.0])),
    "parabola": (G([0.0, 0.0], 1.0), G([2.0, 0.0], [1.0, 4.0])),
    "hyperbola": (G([0.0, 0.0], [1.0, 4.0]), G([1.0, 2.0], [4.0, 1.0])),
    "line": (G([0.0, 0.0], 1.0), G([1.0, 2.0], 1.0)),
    "parallel lines": (G([0.0, 0.0], 1.0), G([0.0, 2.0], [1.0, 9.0])),
    "crossing lines": (G([0.0, 0.0], [1.0, 4.0]), G([0.0, 0.0], [4.0, 1.0])),
    "everywhere": (G([1.0, 2.0], [3.0, 4.0]), G([1.0, 2.0], [3.0, 4.0])),
}


# ------------------------------------------------------------- the rows of the notes


def test_a_circle():
    b = lk.decision_boundary(G([0.0, 0.0], 1.0), G([0.0, 0.0], 4.0))
    assert b.kind == "circle" and round(b.radius, 7) == 1.9227025
    np.testing.assert_allclose(b.radius, math.sqrt(math.log(16) / 0.75), rtol=1e-14)
    np.testing.assert_allclose(b.center, [0, 0])
    assert b.describe().text[0].startswith("circle with center (0, 0) and radius 1.923; inside, the first")


def test_crossing_lines():
    b = lk.decision_boundary(*KINDS["crossing lines"])
    assert b.kind == "crossing lines"
    t = np.linspace(-5, 5, 11)
    for line in (np.stack([t, t], axis=1), np.stack([t, -t], axis=1)):
        np.testing.assert_allclose(b.value(line), 0, atol=1e-12)
        assert any(np.abs(h.distance(line)).max() < 1e-12 for h in b.lines())


def test_a_parabola():
    """¾y² + 4x = 4 + ln 4."""
    b = lk.decision_boundary(*KINDS["parabola"])
    assert b.kind == "parabola"
    np.testing.assert_allclose(-2 * b.matrix, [[0, 0], [0, 0.75]], atol=1e-15)
    np.testing.assert_allclose([*(-2 * b.vector), 2 * b.constant], [4, 0, 4 + math.log(4)], atol=1e-14)
    np.testing.assert_allclose(b.vertex, [1 + math.log(4) / 4, 0], atol=1e-14)


def test_exclusive_or():
    """Equal means, mirrored correlations: (x − ½)(y − ½) = 0 gets all four right."""
    S = [0.25 * np.array([[1, s], [s, 1]]) + 0.05 * np.eye(2) for s in (1.0, -1.0)]
    b = lk.decision_boundary(G([0.5, 0.5], S[0]), G([0.5, 0.5], S[1]))
    assert b.kind == "crossing lines"
    assert np.sign(b.value([[0, 0], [1, 1], [0, 1], [1, 0]])).tolist() == [1, 1, -1, -1]
    x = np.random.default_rng(0).normal(size=(50, 2))
    product = (x[:, 0] - 0.5) * (x[:, 1] - 0.5)
    np.testing.assert_allclose(b.value(x) / product, b.value([[1.5, 1.5]])[0], rtol=1e-9)
    pooled = lk.decision_boundary(G([0.5, 0.5], S[0] + S[1]), G([0.5, 0.5], S[0] + S[1]))
    assert pooled.kind == "everywhere" and "classes are identical" in str(pooled.describe())


# ----------------------------------------------------------------------------- kinds


def mapped(distribution, T, o):
    return G(T @ distribution.mean + o, T @ distribution.covariance_matrix @ T.T)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e6, 1e100])
@pytest.mark.parametrize("kind", KINDS)
def test_no_map_and_no_unit_changes_the_kind(kind, scale):
    rng = np.random.default_rng(5)
    for _ in range(10):
        U, _, V = np.linalg.svd(rng.normal(size=(2, 2)))
        T = scale * U @ np.diag([1.0, 10.0 ** rng.uniform(-2, 2)]) @ V
        o = scale * rng.normal(size=2) * 10.0 ** rng.uniform(-2, 2)
        b = lk.decision_boundary(*(mapped(distribution, T, o) for distribution in KINDS[kind]))
        assert b.kind == kind
        for line in b.points(40):
            assert np.abs(b.value(line)).max() < 1e-5


@pytest.mark.parametrize("unit", [[1e-100, 1e100], [1e-9, 1.0]])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_may_have_unlike_units(kind, unit):
    T = np.diag(unit) @ np.array([[1.0, 0.4], [-0.3, 1.0]])
    b = lk.decision_boundary(*(mapped(distribution, T, np.zeros(2)) for distribution in KINDS[kind]))
    assert b.kind == kind
    assert sum(len(line) for line in b.points(40)) > 0 or kind == "everywhere"


@pytest.mark.parametrize(
    ("first", "second", "prior", "kind"),
    [
        (G([0.0], 1.0), G([1.0], 1.0), 0.5, "point"),
        (G([0.0], 1.0), G([0.0], 9.0), 0.5, "two points"),
        (G([0.0], 1.0), G([1.0], 2.0), 0.01, "none"),
        (G([0.0], 1.0), G([0.0], 1.0), 0.3, "none"),
        (G([0.0], 1.0), G([0.0], 1.0), 0.5, "everywhere"),
        (G([0.0], 1.0), G([0.0], 9.0), 0.25, "point"),
        (G([0.0, 0.0], 1.0), G([0.0, 0.0], 4.0), 0.2, "point"),
        (G([0.0, 0.0], 1.0), G([0.0, 0.0], 4.0), 0.1, "none"),
        (G([0.0, 0.0], 1.0), G([0.0, 0.0], [1.0, 4.0]), 1 / 3, "line"),
        (G([0.0, 0.0], 1.0), G([0.0, 0.0], [1.0, 4.0]), 0.2, "none"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, 1.0), 0.9, "hyperplane"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, 2.0), 0.5, "sphere"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, [2.0, 3.0, 4.0]), 0.5, "ellipsoid"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, [2.0, 0.5, 4.0]), 0.5, "hyperboloid"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, [2.0, 1.0, 4.0]), 0.5, "paraboloid"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, [2.0, 1.0, 0.5]), 0.5, "saddle"),
        (G([0.0] * 3, 1.0), G([1.0] * 3, [2.0, 1.0, 1.0]), 0.5, "parabolic cylinder"),
        (G([0.0] * 3, 1.0), G([1.0, 0, 1.0], [2.0, 1.0, 4.0]), 0.5, "cylinder"),
        (G([0.0] * 3, 1.0), G([1.0, 0, 1.0], [2.0, 1.0, 0.5]), 0.4, "hyperbolic cylinder"),
        (G([0.0] * 3, 1.0), G([0.0] * 3, [2.0, 1.0, 0.5]), 0.5, "crossing hyperplanes"),
        (G([0.0] * 3, 1.0), G([0.0] * 3, [4.0, 1.0, 1.0]), 0.5, "parallel hyperplanes"),
        (G([0.0] * 3, 1.0), G([0.0] * 3, [4.0, 0.5, 0.5]), 0.5, "cone"),
        (G([0.0] * 3, 1.0), G([0.0] * 3, [4.0, 4.0, 1.0]), 0.2, "flat"),
    ],
)
def test_kinds_in_all_dimensions(first, second, prior, kind):
    b = lk.decision_boundary(first, second, class_prior=[prior, 1 - prior])
    assert b.kind == kind and kind in b.describe().text[0]
    swapped = lk.decision_boundary(second, first, class_prior=[1 - prior, prior])
    assert swapped.kind == kind


# -------------------------------------------------------------------------- equations


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_the_equation_is_the_log_ratio(rng, d):
    A, B = rng.normal(size=(2, d, d))
    p, q = G(rng.normal(size=d), A @ A.T + np.eye(d)), G(rng.normal(size=d), B @ B.T + np.eye(d))
    cost = [[0, 3.0], [1.0, 0]]
    b = lk.decision_boundary(p, q, class_prior=[0.3, 0.7], cost=cost)
    x = rng.normal(size=(20, d)) * 3
    written = np.einsum("ni,ij,nj->n", x, b.matrix, x) + x @ b.vector + b.constant
    expected = np.log(0.3) + p.log_prob(x) - np.log(0.7 * 3) - q.log_prob(x)
    np.testing.assert_allclose(written, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(b.value(x), expected, rtol=1e-12)
    joint = np.stack([0.3 * np.exp(p.log_prob(x)), 0.7 * np.exp(q.log_prob(x))], axis=1)
    decided = lk.decide(joint / joint.sum(axis=1, keepdims=True), cost=cost)
    assert (decided == (b.value(x) < 0)).all()


def test_points_of_a_line():
    b = lk.decision_boundary(G([0.0], 1.0), G([0.0], 9.0))
    np.testing.assert_allclose(b.roots, np.array([-1, 1]) * math.sqrt(math.log(9) * 9 / 8), rtol=1e-14)
    np.testing.assert_allclose(lk.decision_boundary(G([1e9], 1.0), G([1e9 + 2], 1.0)).roots, [1e9 + 1])
    assert len(lk.decision_boundary(G([0.0], 1.0), G([0.0], 1.0)).roots) == 0
    with pytest.raises(lk.DomainError, match="one column"):
        _ = lk.decision_boundary(*KINDS["ellipse"]).roots


# --------------------------------------------------------------------------- geometry


def turned(kind, angle=0.7, at=(30.0, -4.0)):
    c, s = math.cos(angle), math.sin(angle)
    T = np.array([[c, -s], [s, c]]) * 2.5
    return lk.decision_boundary(*(mapped(distribution, T, np.array(at)) for distribution in KINDS[kind]))


@pytest.mark.parametrize(("kind", "sign"), [("ellipse", 1), ("hyperbola", -1)])
def test_foci_are_what_distances_are_measured_from(kind, sign):
    b = turned(kind)
    lines = b.points(300, b.window() + [[-30, 30]])
    x = np.concatenate(lines)
    to = np.linalg.norm(x[:, None] - b.foci, axis=2)
    found = to[:, 0] + to[:, 1] if sign > 0 else np.abs(to[:, 0] - to[:, 1])
    np.testing.assert_allclose(found, 2 * b.axes[0], rtol=1e-9)
    ends = b.center + np.array([[1], [-1]]) * b.axes[0] * b.directions[0]
    np.testing.assert_allclose(b.value(ends), 0, atol=1e-9)
    np.testing.assert_allclose(b.directions @ b.directions.T, np.eye(2), atol=1e-12)


def test_a_parabola_is_as_far_from_its_focus_as_from_a_line():
    b = turned("parabola")
    x = np.concatenate(b.points(200))
    away = b.foci[0] - b.vertex
    p = np.linalg.norm(away)
    to_directrix = (x - b.vertex) @ (away / p) + p
    np.testing.assert_allclose(np.linalg.norm(x - b.foci[0], axis=1), to_directrix, rtol=1e-9)
    np.testing.assert_allclose(b.value(b.vertex[None]), 0, atol=1e-9)


def test_spheres_have_a_radius(rng):
    b = lk.decision_boundary(G([0.0] * 4, 1.0), G([1.0] * 4, 2.0))
    x = rng.normal(size=(10, 4))
    on = b.center + b.radius * x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(b.value(on), 0, atol=1e-12)
    assert b.foci is None and b.vertex is None


@pytest.mark.slow
def test_curves_end_at_the_window_and_leave_nothing_out():
    """Every change of sign between neighbors on a grid has a point of the curve beside it."""
    window = np.array([[-3.0, 5.0], [-2.0, 6.0]])
    for kind in ("ellipse", "parabola", "hyperbola", "line", "parallel lines", "crossing lines"):
        b = lk.decision_boundary(*KINDS[kind])
        x = np.concatenate(b.points(2000, window))
        assert (x >= window[:, 0] - 1e-9).all() and (x <= window[:, 1] + 1e-9).all()
        g = np.stack(np.meshgrid(*(np.linspace(*w, 81) for w in window), indexing="ij"), axis=-1)
        sign = b.value(g.reshape(-1, 2)).reshape(81, 81) > 0
        across = (g[1:] + g[:-1])[sign[1:] != sign[:-1]] / 2
        along = (g[:, 1:] + g[:, :-1])[sign[:, 1:] != sign[:, :-1]] / 2
        change = np.concatenate([across, along])
        nearest = np.sqrt(((change[:, None] - x) ** 2).sum(axis=2).min(axis=1))
        assert len(change) and nearest.max() < 0.11


def test_a_small_window_on_a_huge_circle():
    b = lk.decision_boundary(G([0.0, 0.0], 1.0), G([1e-3, 0.0], 1.0 + 1e-6))
    assert b.kind == "circle" and b.radius > 100
    at = b.center - [b.radius, 0.0] if b.center[0] > 0 else b.center + [b.radius, 0.0]
    (line,) = b.points(50, np.stack([at - 0.01, at + 0.01], axis=1))
    assert len(line) == 50 and np.abs(line - at).max() <= 0.0100001


# ------------------------------------------------------------------------ who may ask


def test_classifiers_name_their_pairs(rng):
    X = np.concatenate([rng.normal(size=(60, 2)) + at for at in ([0, 0], [3, 0], [0, 3])])
    y = np.repeat(["a", "b", "c"], 60)
    clf = lk.BayesClassifier().fit(X, y)
    b = lk.decision_boundary(clf, pair=("c", "a"))
    z = b.points(50)[0]
    log_p = clf.log_posterior(z)
    np.testing.assert_allclose(log_p[:, 2], log_p[:, 0], atol=1e-9)
    pooled = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, y)
    flat = lk.decision_boundary(pooled, pair=("a", "b")).hyperplane
    log_p = pooled.log_posterior(flat.project(X))
    np.testing.assert_allclose(log_p[:, 0], log_p[:, 1], atol=1e-9)
    assert ((flat.distance(X) > 0) == (pooled.log_posterior(X)[:, 0] > pooled.log_posterior(X)[:, 1])).all()
    assert lk.decision_boundary(G([[0.0, 0.0], [1.0, 1.0]], 1.0)).kind == "line"


def test_missing_values_are_integrated_out():
    b = lk.decision_boundary(G([0.0, 0.0], 1.0), G([2.0, 5.0], 1.0))
    np.testing.assert_allclose(b.value([[1.0, np.nan], [0.0, np.nan]]), [0.0, 2.0], atol=1e-15)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lk.decision_boundary(G([0.0], 0.0), G([1.0], 1.0)), "positive definite"),
        (lambda: lk.decision_boundary(lk.Poisson([1.0]), lk.Poisson([2.0])), "for Gaussians only"),
        (lambda: lk.decision_boundary(G([0.0], 1.0), G([1.0], 1.0), class_prior=[1.0, 0.0]), "positive probability"),
        (lambda: lk.decision_boundary(G([0.0], 1.0), G([1.0], 1.0), cost=[[0, 0], [1, 0]]), "smallest cost"),
        (lambda: lk.decision_boundary(G([0.0], 1.0), G([1.0], 1.0), cost=[[0, 1], [1, 0], [0.1, 0.1]]), "actions"),
        (lambda: lk.decision_boundary(G([0.0], 1.0), G([1.0], 1.0), pair=(0, 2)), "pair"),
        (lambda: lk.decision_boundary(*KINDS["ellipse"]).hyperplane, "equal covariances"),
        (lambda: lk.decision_boundary(*KINDS["ellipse"]).points(9, [[1, 0], [0, 1]]), "window"),
        (lambda: lk.decision_boundary(G([0.0], 1.0), G([1.0], 1.0)).points(), "two columns"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(lk.LikelyError, match=words):
        found = call()
        found.kind  # noqa: B018


def test_a_border_is_a_value_that_is_saved_and_found_again(tmp_path):
    found = lk.decision_boundary(
        lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 0.0], [1.0, 4.0]), class_prior=[0.8, 0.2]
    )
    lk.save(found, tmp_path / "border.likely")
    again = lk.load(tmp_path / "border.likely")
    assert (again.kind, str(again.describe())) == (found.kind, str(found.describe()))
    x = np.random.default_rng(0).normal(size=(50, 2))
    assert np.array_equal(again.value(x), found.value(x))
    plane = lk.decision.Hyperplane([3.0, 4.0], -5.0)
    lk.save(plane, tmp_path / "plane.likely")
    assert np.array_equal(lk.load(tmp_path / "plane.likely").distance(x), plane.distance(x))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((lk.Gaussian([0.0], 1.0), lk.Gaussian([0.0, 1.0], 1.0), 0.0), "same number of columns"),
        ((lk.Gaussian([[0.0], [1.0]], 1.0), lk.Gaussian([0.0], 1.0), 0.0), "single Gaussians"),
        ((lk.Gaussian([0.0], 1.0), lk.Laplace(0.0, 1.0), 0.0), "Gaussians only, got Laplace"),
        ((lk.Gaussian([0.0], 1.0), lk.Gaussian([1.0], 1.0), np.nan), "offset"),
        ((lk.Gaussian([0.0], 0.0), lk.Gaussian([1.0], 1.0), 0.0), "positive definite"),
    ],
)
def test_what_is_no_border_is_refused_when_it_is_built(parts, words):
    with pytest.raises(lk.LikelyError, match=words):
        lk.decision.Boundary(*parts)
