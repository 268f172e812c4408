"""Ridge regression: a penalty given, chosen by the evidence, or by exact leave-one-out."""

from __future__ import annotations

from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special
from sklearn.utils.metaestimators import available_if

from likely.core.arrays import Array, n_rows
from likely.core.blocks import Block, Blocks
from likely.core.engine import Threads
from likely.core.errors import DomainError, sentence
from likely.core.warnings import warn
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.linear_model.design_statistics import Table, problem_of
from likely.linear_model.estimators.regression_summary import FILLED, bare_rows, normal_rows
from likely.linear_model.estimators.regressor import LinearRegressor
from likely.linear_model.evidence import maximize
from likely.linear_model.priors import CoefficientsGivenNoise, penalized, penalized_posterior
from likely.numerics import spd

STEPS = 61  # penalties of the path: 4 per decade
DECADES = 15
UNDETERMINED = 1e-9  # share of n − γ in n up to which the residuals say nothing about the noise


class Ridge(LinearRegressor):
    """Ridge regression: least squares plus α‖w‖², without a penalty of the constant   (Bishop 3.1.4, Herbst 1.1).

    The predictive density is that of the Gaussian prior whose mode ridge regression is, with noise variance
    RSS/(n − γ); where n − γ is 0 nothing determines the noise, `noise_variance_` is infinite, and there is no
    predictive density. `path(alphas)` gives the coefficients along penalties.

    Parameters
    ----------
    alpha : float, "evidence" or "leave-one-out"
        The penalty, in scikit-learn's units; "evidence" chooses it by the evidence (α/β of
        `BayesianLinearRegression`), "leave-one-out" by the exact leave-one-out error of the rows, in closed form.
    alphas : array-like, optional
        Penalties among which leave-one-out chooses; None: 61 from 1e-12 to 1e3 of the largest eigenvalue.

    Attributes
    ----------
    alpha_ : float or ndarray (m,)
        The penalty taken; of several targets one each.
    alphas_ : ndarray (A,)
        Penalties among which leave-one-out chose.
    effective_parameters_ : float or ndarray (m,)
        Effective number of parameters γ.
    leave_one_out_ : ndarray (A,)
        Mean squared leave-one-out error of each of `alphas_`.
    noise_variance_ : float or ndarray (m,)
        Variance of the noise, RSS/(n − γ).

    See Also
    --------
    BayesianLinearRegression : The posterior distribution whose mode this is.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 7.5])
    >>> Ridge(5.0).fit(X, y).coefficients_
    array([2.5125, 1.075 ])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        **LinearRegressor._parameter_rules,
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"evidence", "leave-one-out"})],
        "alphas": ["array-like", None],
    }
    saved_attributes = (
        *LinearRegressor.saved_attributes, "alpha_", "noise_variance_", "effective_parameters_", "alphas_",
        "leave_one_out_",
    )  # fmt: skip
    _optional_state = ("alphas_", "leave_one_out_")
    _error_word = "posterior sd"

    def __init__(self, alpha: float | str = 1.0, basis: Any = None, *, alphas: Any = None) -> None:
        self.alpha = alpha
        self.basis = basis
        self.alphas = alphas

    @available_if(lambda self: self.alpha != "leave-one-out")  # type: ignore[untyped-decorator, unused-ignore]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, relative_noise: Any = None) -> Self:
        """Fit with more rows, as `LinearRegression`; leave-one-out needs all rows at once."""
        return super().partial_fit(X, y, sample_weight, relative_noise)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan &= self.alpha != "leave-one-out"
        return tags

    alpha_: Any
    noise_variance_: Any
    effective_parameters_: Any

    def _estimate(self, table: Table | None) -> None:
        for name in ("alphas_", "leave_one_out_"):
            self.__dict__.pop(name, None)
        m = self.stats_.targets
        alphas = np.full(m, self._by_leaving_out(table)) if self.alpha == "leave-one-out" else self._penalties(m)
        found = [self._solution(j, alphas[j]) for j in range(m)]
        self.coefficients_ = np.stack([w for w, _, _ in found])
        gamma, rss = (np.array([one[i] for one in found]) for i in (1, 2))
        n = float(self.stats_.rows)
        least = [1e-14 * float(s) / n if s > 0 else 1e-14 for s in self.stats_.target_scatter]
        left = n - gamma
        noise = np.where(left > UNDETERMINED * n, np.maximum(rss / np.where(left > 0, left, 1.0), least), np.inf)
        each = (float(a[0]) if self.one_target_ else a for a in (alphas, noise, gamma))
        self.alpha_, self.noise_variance_, self.effective_parameters_ = each

    def _penalties(self, m: int) -> Array:
        if self.alpha != "evidence":
            return np.full(m, float(self.alpha))
        found = [maximize(problem_of(self.stats_, j, self._has_constant)) for j in range(m)]
        for one in found:
            if not one.converged or not np.isfinite(one.alpha).all():
                warn(f"Ridge: {one.reason}")
        largest = self._eigenvalues().max(initial=0.0)
        ratio = [one.alpha[0] / one.beta if len(one.alpha) else 0.0 for one in found]
        return np.array([min(r, 1e12 * max(largest, 1.0)) for r in ratio])

    def _eigenvalues(self) -> Array:
        first, M = int(self._has_constant), self.stats_.root.shape[-1] - self.stats_.targets
        values = np.linalg.svd(self.stats_.root[first:M, first:M], compute_uv=False)
        return np.asarray(values**2, dtype=np.float64)

    def _solution(self, j: int, alpha: float) -> tuple[Array, float, float]:
        """Coefficients (M,), effective parameters and residual sum of squares of a target at a penalty."""
        first = int(self._has_constant)
        w = self._at(alpha)[j]
        values = self._eigenvalues()
        seen = values > 1e-24 * values.max(initial=0.0)
        gamma = first + float((values[seen] / (values[seen] + alpha)).sum())
        rest = self.stats_.root @ np.concatenate([-w, np.eye(self.stats_.targets)[j]])
        return w, gamma, float(rest @ rest)

    def _at(self, alpha: float) -> Array:
        """Coefficients (m, M) at a penalty, as in the posterior; at 0 those of least squares, of minimum norm."""
        if alpha == 0:
            return self.stats_.solve().coefficients
        M = self.stats_.root.shape[-1] - self.stats_.targets
        return penalized(self.stats_, np.where(np.arange(M) < int(self._has_constant), 0.0, alpha))[1]

    def path(self, alphas: Any) -> Array:
        """Coefficients along penalties.

        Parameters
        ----------
        alphas : array-like (A,)
            Penalties, at least 0.

        Returns
        -------
        ndarray (A, M) or (A, m, M)
            Coefficients of the basis functions at each penalty; the middle axis is that of several targets.
        """
        penalties = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        if penalties.ndim != 1 or not (penalties >= 0).all():
            raise DomainError(sentence("Ridge", "penalties must be numbers of at least 0", repr(alphas)))
        found = np.stack([self._at(float(alpha)) for alpha in penalties])
        return found[:, 0] if self.one_target_ else found

    # ------------------------------------------------------------ leave-one-out

    def _by_leaving_out(self, table: Table | None) -> float:
        if table is None or self.stats_.filled:
            expected, remedy = "leave-one-out needs all rows at once, and complete", 'use alpha="evidence", or a number'
            raise DomainError(sentence("Ridge", expected, "a stream" if table is None else "NaN in X", remedy))
        largest = float(self._eigenvalues().max(initial=0.0))
        largest = largest if largest > 1e-280 else 1.0  # nothing to penalize: any penalty will do
        given = None if self.alphas is None else np.asarray(self.alphas, dtype=np.float64)
        if given is not None and (given.ndim != 1 or not given.size or not (given >= 0).all()):
            raise DomainError(sentence("Ridge", "alphas must be numbers of at least 0", repr(self.alphas)))
        self.alphas_ = largest * np.logspace(3 - DECADES, 3, STEPS) if given is None else given
        self.leave_one_out_ = self._left_out_errors(table, self.alphas_)
        return float(self.alphas_[int(self.leave_one_out_.argmin())])

    def _left_out_errors(self, table: Table, alphas: Array) -> Array:
        """Mean squared error of each row, predicted from the others, over targets and penalties: r_i / (1 − h_i)."""
        first, R, m = int(self._has_constant), self.stats_.root, self.stats_.targets
        M = R.shape[-1] - m
        _, s, Vt = np.linalg.svd(R[first:M, first:M])
        s2 = s**2
        W = np.stack([self._at(float(alpha)) for alpha in alphas])  # (A, m, M)
        shift = R[0, 1:M] / R[0, 0] if first else np.zeros(M)
        shrink = np.where(s2[:, None] > 0, 1 / (s2[:, None] + alphas), 0.0)  # (M, A)

        def errors(block: Block) -> Array:
            phi, y, w, v = table.rows(slice(block.start, block.start + len(block)))
            noise = np.ones(len(y)) if v is None else v
            z = (phi[:, first:] - shift) @ Vt.T
            leverage = (z**2 @ shrink + (1 / R[0, 0] ** 2 if first else 0.0)) / noise[:, None]
            rest = y[:, None, :] - np.einsum("nk,amk->nam", phi, W)
            with np.errstate(divide="ignore", invalid="ignore"):
                left = rest / (1 - leverage)[..., None]
            left = np.where(leverage[..., None] < 1 - 1e-12, left, np.inf)
            return np.einsum("n,nam->a", (1.0 if w is None else w) / noise, left**2)

        total = Threads().total(errors, Blocks.of(np.arange(n_rows(table.y)), blocks=4))
        return np.asarray(total / (float(self.stats_.rows) * m))

    # ---------------------------------------------------------------- posterior

    @cached_property
    def posterior_(self) -> Any:
        """Distribution of the coefficients under the prior whose mode they are, one per target."""
        if not np.isfinite(self.noise_variance_).all():
            expected = "the noise variance RSS/(n − γ) needs more rows than effective parameters γ"
            got = f"{float(self.stats_.rows):g} rows, γ = {float(np.max(self.effective_parameters_)):.6g}"
            remedy = "pass more rows, or a larger alpha; predict(X) is determined"
            raise DomainError(sentence("Ridge", expected, got, remedy))
        found = tuple(self._posterior_of(j) for j in range(self.stats_.targets))
        return found[0] if len(found) == 1 else found

    def _posterior_of(self, j: int) -> CoefficientsGivenNoise:
        beta, M = 1 / float(np.ravel(self.noise_variance_)[j]), self.stats_.root.shape[-1] - self.stats_.targets
        alpha = np.full(M, float(np.ravel(self.alpha_)[j]) * beta)
        if self._has_constant:
            alpha[0] = 0.0
        return penalized_posterior(
            self.stats_ if self.one_target_ else self.stats_.of_target(j), alpha, beta, self.basis_
        )

    def _sound_state(self, m: int, M: int) -> bool:
        known = self._per_target(self.alpha_, self.effective_parameters_)
        return known and self._per_target(np.where(np.isposinf(self.noise_variance_), 0.0, self.noise_variance_))

    def _own_facts(self) -> dict[str, Any]:
        return {"penalty chosen by": self.alpha if isinstance(self.alpha, str) else "given"}

    def _target_facts(self, j: int) -> tuple[dict[str, Any], list[str]]:
        each = (self.alpha_, self.noise_variance_, self.effective_parameters_)
        names = ("alpha", "noise variance", "effective parameters")
        facts = {name: float(np.ravel(part)[j]) for name, part in zip(names, each, strict=True)}
        rest = self.model_.covariance[j, j] * float(self.stats_.rows)
        M = np.atleast_2d(self.coefficients_).shape[1]
        total = (
            float(self.stats_.target_scatter[j])
            if self._has_constant
            else float((self.stats_.root[:, M + j] ** 2).sum())
        )
        notes = [FILLED] if self.stats_.filled else []
        return {"rows": float(self.stats_.rows), **facts, "R²": 1 - rest / total if total > 0 else float("nan")}, notes

    def _coefficient_rows(self, j: int, level: float) -> list[tuple[Any, ...]]:
        w = np.atleast_2d(self.coefficients_)[j]
        if self.stats_.filled or not np.isfinite(self.noise_variance_).all():
            return bare_rows(self.function_names_, w)
        post = self._posteriors()[j]
        errors = np.sqrt(np.diagonal(spd.precision(post._root)))
        return normal_rows(self.function_names_, w, errors, float(special.ndtri(0.5 + 0.5 * level)))
