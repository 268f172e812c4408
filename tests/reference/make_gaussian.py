"""Make gaussian.json: Gaussian numbers to 50 digits from their definitions, in mpmath, without the library.

python tests/reference/make_gaussian.py
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 50


def hilbert(d: int) -> mp.matrix:
    """H_ij = 1 / (i + j + 1), as float64 stores it: symmetric, positive definite, and nearly singular."""
    return mp.matrix([[mp.mpf(1.0 / (i + j + 1)) for j in range(d)] for i in range(d)])


def part(a: mp.matrix, rows: list[int], columns: list[int]) -> mp.matrix:
    return mp.matrix([[a[i, j] for j in columns] for i in rows])


def log_prob(x: list[float | None], mean: list[float], covariance: mp.matrix) -> mp.mpf:
    seen = [j for j, v in enumerate(x) if v is not None]
    S = part(covariance, seen, seen)
    z = mp.matrix([mp.mpf(x[j]) - mp.mpf(mean[j]) for j in seen])
    q = (z.T * mp.inverse(S) * z)[0]
    return -(len(seen) * mp.log(2 * mp.pi) + mp.log(mp.det(S)) + q) / 2


def log_multigamma(a: mp.mpf, d: int) -> mp.mpf:
    return mp.mpf(d * (d - 1)) / 4 * mp.log(mp.pi) + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(d))


def log_evidence(rows: list[list[float]], mean: list[float], kappa: float, scale: mp.matrix, dof: float) -> mp.mpf:
    """Rows under a normal-inverse-Wishart prior, means and covariances integrated out (Murphy 2007, eq. 266)."""
    n, d = len(rows), len(mean)
    x = [[mp.mpf(v) for v in row] for row in rows]
    center = [sum(row[j] for row in x) / n for j in range(d)]
    post = scale.copy()
    for i in range(d):
        for j in range(d):
            post[i, j] += sum((row[i] - center[i]) * (row[j] - center[j]) for row in x)
            between = mp.mpf(kappa) * n / (kappa + n)
            post[i, j] += between * (center[i] - mp.mpf(mean[i])) * (center[j] - mp.mpf(mean[j]))
    nu, nu_n = mp.mpf(dof), mp.mpf(dof) + n
    value = -mp.mpf(n * d) / 2 * mp.log(mp.pi) + log_multigamma(nu_n / 2, d) - log_multigamma(nu / 2, d)
    value += (nu * mp.log(mp.det(scale)) - nu_n * mp.log(mp.det(post))) / 2
    return value + mp.mpf(d) / 2 * (mp.log(mp.mpf(kappa)) - mp.log(mp.mpf(kappa) + n))


def divergence(m1: list[float], S1: mp.matrix, m2: list[float], S2: mp.matrix) -> mp.mpf:
    d = len(m1)
    inverse = mp.inverse(S2)
    delta = mp.matrix([mp.mpf(b) - mp.mpf(a) for a, b in zip(m1, m2, strict=True)])
    product = inverse * S1
    trace = sum(product[i, i] for i in range(d))
    return (trace + (delta.T * inverse * delta)[0] - d + mp.log(mp.det(S2)) - mp.log(mp.det(S1))) / 2


def main() -> None:
    rows = [
        [0.5, -1.0, 2.0, 0.25, 0.0, 1.0], [1.5, 0.75, -0.5, None, 0.5, 1.0],
        [None, None, 3.0, None, -2.0, None], [0.0, None, 0.0, 0.0, None, 0.0],
    ]  # fmt: skip
    mean = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6]
    data = [[1.0, 2.5], [0.25, -1.0], [3.0, 0.5], [2.0, 2.0], [-1.0, 0.125]]
    prior = {"mean": [0.5, -0.5], "kappa": 0.25, "scale": [[1.5, 0.25], [0.25, 2.0]], "dof": 3.5}
    other = [1.0, 0.0, -1.0]
    eye = mp.eye(3) * 2
    out = {
        "rows": rows,
        "mean": mean,
        "log_prob": [mp.nstr(log_prob(x, mean, hilbert(6)), 30) for x in rows],
        "entropy_hilbert_4": mp.nstr((4 * (1 + mp.log(2 * mp.pi)) + mp.log(mp.det(hilbert(4)))) / 2, 30),
        "kl_mean": other,
        "kl_hilbert_3_from_2I": mp.nstr(divergence([0.0] * 3, hilbert(3), other, eye), 30),
        "kl_2I_from_hilbert_3": mp.nstr(divergence(other, eye, [0.0] * 3, hilbert(3)), 30),
        "data": data,
        "prior": prior,
        "log_evidence": mp.nstr(
            log_evidence(data, prior["mean"], prior["kappa"], mp.matrix(prior["scale"]), prior["dof"]), 30
        ),
    }
    path = Path(__file__).with_name("gaussian.json")
    path.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
