"""Bayesian linear regression: given priors, evidence maximization, and automatic relevance determination."""

from __future__ import annotations

from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import special

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.warnings import warn
from likely.distributions.gaussian.gaussian import Gaussian
from likely.estimation.parameter_constraints import Interval
from likely.linear_model.design_statistics import Table, problem_of
from likely.linear_model.estimators.regression_summary import FILLED, bare_rows, normal_rows
from likely.linear_model.estimators.regressor import LinearRegressor
from likely.linear_model.evidence import Evidence, maximize, relevance
from likely.linear_model.priors import CoefficientsGivenNoise, MatrixNormalInverseWishart, penalized_posterior
from likely.numerics import spd

RULES = ("evidence", "ard")


class BayesianLinearRegression(LinearRegressor):
    """Bayesian linear regression with basis functions   (Bishop 3.3–3.5, Herbst 3.2–3.4).

    Several targets have one α, β and γ each, and their log evidences add.

    Parameters
    ----------
    prior : "evidence", "ard", Gaussian, NormalGamma, NormalInverseGamma or MatrixNormalInverseWishart
        "evidence" chooses one precision α of all coefficients, and β of the noise, by the evidence; "ard" one α per
        coefficient (automatic relevance determination). A `Gaussian` is a prior of the M coefficients, with noise of
        known variance or chosen by the evidence; `lk.priors.NormalGamma`, a spherical `NormalInverseGamma` or
        `MatrixNormalInverseWishart` one of coefficients and noise, whose predictive is a t distribution.
    noise_variance : float, optional
        Known variance of the noise, for a Gaussian prior; None: chosen by the evidence.
    penalize_constant : bool
        Whether α applies to the constant as well. If not, the constant has a flat prior, as in scikit-learn, so that
        adding a number to all targets adds it to all predictions; `log_evidence_` is then that of models with the same
        constant, comparable among them and not with others (`improper_prior_`): its unit is that of one target less.

    Attributes
    ----------
    alpha_ : float or ndarray
        Precision of the coefficients, of each with "ard"; None where the prior was given.
    beta_ : float or ndarray (m,)
        Precision of the noise.
    converged_ : bool
        Whether the maximum of the evidence was found.
    effective_parameters_ : float or ndarray (m,)
        Effective number of parameters γ.
    log_evidence_ : float
        Log marginal likelihood; not with missing entries of X.
    posterior_ : distribution, or tuple of one per target
        Posterior distribution of the coefficients, which `update` continues.
    reason_ : str
        Why the iterations ended.

    See Also
    --------
    Ridge : The mode of this posterior, with a penalty that is given or chosen by leave-one-out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0.0, 1.0, 30)[:, None]
    >>> m = BayesianLinearRegression().fit(x, 1 + 2 * x[:, 0] + 0.1 * rng.standard_normal(30))
    >>> m.coefficients_.round(1), round(m.effective_parameters_, 1)
    (array([1., 2.]), 2.0)
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        **LinearRegressor._parameter_rules,
        "prior": "no_validation",
        "noise_variance": [Interval(Real, 0, None, closed="neither"), None],
        "penalize_constant": ["boolean"],
    }
    saved_attributes = (
        *LinearRegressor.saved_attributes, "alpha_", "beta_", "effective_parameters_", "log_evidence_", "converged_",
        "reason_",
    )  # fmt: skip
    _error_word = "posterior sd"

    def __init__(
        self, basis: Any = None, prior: Any = "evidence", *, noise_variance: float | None = None,
        penalize_constant: bool = False,
    ) -> None:  # fmt: skip
        self.basis = basis
        self.prior = prior
        self.noise_variance = noise_variance
        self.penalize_constant = penalize_constant

    alpha_: Any
    beta_: Any
    effective_parameters_: Any
    log_evidence_: float  # not with missing entries of X
    _optional_state = ("log_evidence_",)

    def __getattr__(self, name: str) -> Any:
        if name == "log_evidence_" and "stats_" in self.__dict__:
            self._refuse_filled("the log evidence")
        return super().__getattr__(name)

    def _estimate(self, table: Table | None) -> None:
        if isinstance(self.prior, str):
            if self.prior not in RULES:
                expected = 'prior must be "evidence", "ard", or a distribution of the coefficients'
                raise DomainError(sentence("BayesianLinearRegression", expected, repr(self.prior)))
            if self.noise_variance is not None:
                expected = "a known noise variance is for a Gaussian prior"
                raise DomainError(sentence("BayesianLinearRegression", expected, f"prior={self.prior!r}"))
            self._by_evidence()
        elif isinstance(self.prior, Gaussian):
            self._with_gaussian(self.prior)
        else:
            self._with_conjugate(self.prior)
        self.__dict__.pop("posterior_", None)
        mean = [np.atleast_2d(p.mean) for p in self._posteriors()]
        self.coefficients_ = np.concatenate(mean)

    # ------------------------------------------------------- rules and priors

    @property
    def _common(self) -> bool:
        """Whether all coefficients have one precision."""
        return isinstance(self.prior, str) and self.prior == "evidence"

    @property
    def _flat(self) -> bool:
        return self._has_constant and not self.penalize_constant

    @property
    def improper_prior_(self) -> tuple[str, ...]:
        """Names of the parameters with a flat prior: the constant, where α does not apply to it.

        The evidence then has the unit of one target less, and is comparable between models with the same constant.
        """
        return ("constant",) if isinstance(self.prior, str) and self._flat else ()

    def _by_evidence(self) -> None:
        rule = maximize if self.prior == "evidence" else relevance
        found = [rule(problem_of(self.stats_, j, self._flat)) for j in range(self.stats_.targets)]
        for one in found:
            if not one.converged:
                warn(f"BayesianLinearRegression: not converged: {one.reason}")
        flat = np.zeros((len(found), int(self._flat)))
        self._keep(found, np.concatenate([flat, np.stack([one.alpha for one in found])], axis=1))

    def _keep(self, found: list[Evidence], alpha: Array | None) -> None:
        common = self._common

        def each(values: Any) -> Any:
            return values[0] if self.one_target_ else np.array(values)

        if alpha is None:
            self.alpha_ = None
        else:
            alpha = alpha[:, -1] if common and alpha.shape[1] else alpha
            self.alpha_ = (float(alpha[0]) if common else alpha[0]) if self.one_target_ else alpha
        self.beta_ = each([float(one.beta) for one in found])
        self.effective_parameters_ = each([one.effective + float(self._flat and alpha is not None) for one in found])
        self._keep_evidence(sum(one.log_evidence for one in found))
        self.converged_ = all(bool(one.converged) for one in found)
        self.reason_ = "; ".join(dict.fromkeys(one.reason for one in found))

    def _keep_evidence(self, value: float) -> None:
        """`log_evidence_`, unless entries of X were missing: that of expected moments is none."""
        self.__dict__.pop("log_evidence_", None)
        if self.stats_.complete:
            self.log_evidence_ = float(value)

    def _with_gaussian(self, prior: Gaussian) -> None:
        """A Gaussian prior of the coefficients; noise variance known, or of largest evidence."""
        M = self.stats_.root.shape[-1] - self.stats_.targets
        if prior.members is not None or prior.dim != M:
            expected = f"a prior of {M} coefficients is needed: {', '.join(self.function_names_[:8])}"
            raise ShapeError(sentence("BayesianLinearRegression", expected, f"{prior.dim} columns"))
        if prior.form.roots is None:
            expected = "the covariance of the prior must be positive definite"
            raise DomainError(sentence("BayesianLinearRegression", expected, "a singular one"))
        found = []
        for j in range(self.stats_.targets):
            problem = problem_of(self.stats_, j, False)
            problem = problem._replace(target=problem.target - problem.root @ prior.mean)
            if self.noise_variance is None:
                found.append(maximize(problem, spd.cholesky(np.ascontiguousarray(prior.covariance_matrix))))
            else:
                beta = 1 / float(self.noise_variance)
                found.append(Evidence(np.ones(M), beta, np.nan, np.nan, True, "the noise variance is known"))
        self._keep(found, None)
        self._from_posteriors()

    def _with_conjugate(self, prior: Any) -> None:
        if self.noise_variance is not None:
            expected = "a known noise variance is for a Gaussian prior"
            raise DomainError(sentence("BayesianLinearRegression", expected, type(prior).__name__))
        prior = self._conjugate()
        self.__dict__.pop("posterior_", None)
        post = prior.update(self.stats_)
        if isinstance(post, CoefficientsGivenNoise):
            beta: Any = 1 / float(post.noise_variance)
        else:
            beta = (post.dof - post.targets + 1) / np.diagonal(post.scale)
            beta = float(beta[0]) if self.one_target_ else beta
        self.alpha_, self.beta_, self.converged_, self.reason_ = None, beta, True, "closed form"
        self._from_posteriors()

    def _from_posteriors(self) -> None:
        """Evidence and effective parameters of given priors."""
        self.__dict__.pop("posterior_", None)
        priors, gamma = self._priors(), []
        each = (p.log_evidence(_target(self.stats_, j, p)) for j, p in enumerate(priors) if self.stats_.complete)
        self._keep_evidence(sum(float(np.sum(one)) for one in each))
        for before, after in zip(priors, self._posteriors(), strict=True):
            shrunk = np.linalg.solve(after._root, before._root)
            gamma.append(float(len(shrunk) - (shrunk**2).sum()))
        self.effective_parameters_ = gamma[0] if len(gamma) == 1 else np.array(gamma)

    def _conjugate(self) -> Any:
        """The given prior of coefficients and noise, as one of regressions."""
        prior = self.prior
        if isinstance(prior, CoefficientsGivenNoise | MatrixNormalInverseWishart):
            return prior.replace(basis=self.basis_)
        return MatrixNormalInverseWishart.of(prior, self.basis_)

    def _priors(self) -> list[Any]:
        if not isinstance(self.prior, Gaussian):
            return [self._conjugate()]
        root = spd.cholesky(np.ascontiguousarray(self.prior.covariance_matrix))
        assert root is not None
        precision = spd.precision(root)
        return [
            CoefficientsGivenNoise(self.prior.mean, precision, np.asarray(1 / float(beta)), self.basis_)
            for beta in np.atleast_1d(self.beta_)
        ]

    @cached_property
    def posterior_(self) -> Any:
        """Distribution of the coefficients: `CoefficientsGivenNoise` (one per target), or with the noise."""
        if isinstance(self.prior, str):
            found = tuple(self._evidence_posterior(j) for j in range(self.stats_.targets))
        else:
            found = tuple(p.update(_target(self.stats_, j, p)) for j, p in enumerate(self._priors()))
        return found[0] if len(found) == 1 else found

    def _evidence_posterior(self, j: int) -> CoefficientsGivenNoise:
        beta = float(np.ravel(self.beta_)[j])
        return penalized_posterior(_target(self.stats_, j), self._alpha_of(j), beta, self.basis_)

    def _alpha_of(self, j: int) -> Array:
        """Precision of the prior of each coefficient (M,): 0 for a flat one, infinite where it is 0."""
        M = self.stats_.root.shape[-1] - self.stats_.targets
        if self.alpha_ is None:
            return np.zeros(M)
        common = self._common
        alpha = np.full(M, np.ravel(self.alpha_)[j]) if common else np.array(np.atleast_2d(self.alpha_)[j])
        if self._flat:
            alpha[0] = 0.0
        return alpha

    # -------------------------------------------------------------- description

    def _own_facts(self) -> dict[str, Any]:
        words = self.prior if isinstance(self.prior, str) else type(self.prior).__name__
        facts: dict[str, Any] = {"prior": words}
        if self.stats_.complete:
            facts["log evidence"] = self.log_evidence_
        return {**facts, "converged": f"{'yes' if self.converged_ else 'NO'} ({self.reason_})"}

    def _target_facts(self, j: int) -> tuple[dict[str, Any], list[str]]:
        facts = {"rows": float(self.stats_.rows)}
        if self.alpha_ is not None and self._common:
            facts["alpha"] = float(np.ravel(self.alpha_)[j])
        facts["beta"] = float(np.ravel(self.beta_)[j])
        facts["effective parameters"] = float(
            np.ravel(self.effective_parameters_)[min(j, np.size(self.effective_parameters_) - 1)]
        )
        notes = ["the constant has a flat prior"] if self.improper_prior_ else []
        notes += [FILLED] if self.stats_.filled else []
        return facts, notes

    def _coefficient_rows(self, j: int, level: float) -> list[tuple[Any, ...]]:
        if self.stats_.filled:
            return bare_rows(self.function_names_, np.atleast_2d(self.coefficients_)[j])
        posteriors = self._posteriors()
        post, w = posteriors[min(j, len(posteriors) - 1)], np.atleast_2d(self.coefficients_)[j]
        variance = np.diagonal(spd.precision(post._root))
        if isinstance(post, CoefficientsGivenNoise):
            variance = np.where((w == 0) & np.isinf(self._alpha_of(j)), 0.0, variance)
            return normal_rows(self.function_names_, w, np.sqrt(variance), float(special.ndtri(0.5 + 0.5 * level)))
        dof = float(post.dof) - post.targets + 1
        scale = np.sqrt(variance * post.scale[j, j] / dof)
        return normal_rows(self.function_names_, w, scale, float(special.stdtrit(dof, 0.5 + 0.5 * level)))

    def _sound_state(self, m: int, M: int) -> bool:
        sound = self._per_target(self.beta_) and type(self.converged_) is bool and isinstance(self.reason_, str)
        value = self.__dict__.get("log_evidence_", 0.0)
        sound = sound and np.ndim(value) == 0 and bool(np.isfinite(value))
        if not sound or self.alpha_ is None:
            return bool(sound) and not isinstance(self.prior, str)
        shape = (*(() if self.one_target_ else (m,)), *(() if self._common else (M,)))
        alpha = np.asarray(self.alpha_)
        return alpha.dtype.kind == "f" and alpha.shape == shape and bool((alpha >= 0).all())


def _target(stats: Any, j: int, prior: Any = None) -> Any:
    """Statistics of one of several targets, for a prior of one."""
    if stats.targets == 1 or (prior is not None and prior.targets == stats.targets):
        return stats
    return stats.of_target(j)
