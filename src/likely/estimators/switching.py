"""A switching linear model learnt from sequences: which regime made a frame is given, hidden, or both."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.learn import Stop
from likely.core.notes import tell
from likely.core.ragged import Ragged
from likely.core.report import FitReport
from likely.errors import DataError, DomainError, ShapeError, sentence
from likely.estimators.hmm import _known_states
from likely.estimators.shell import EM, DensityEstimator, refuse_dates
from likely.estimators.switching_starts import guessed_regimes
from likely.estimators.workload import seed_of
from likely.models.covariates import with_covariates
from likely.models.decoding import is_one
from likely.models.hmm import masks
from likely.models.interacting import InteractingModels
from likely.models.switching import SwitchingLinear
from likely.models.switching_alarms import Alarms, fault_alarms
from likely.models.switching_learning import MOVES, SwitchingLearner, SwitchingPrior, learnt

STAY = 0.95  # to begin with, if moves are not given
FIRST = 5  # refits with guessed regimes, before they are hidden again


class SwitchingDensity(DensityEstimator):
    """Learn a `SwitchingLinear` by EM: parameters of each regime, and the chain between them   (de Freitas 12).

    - **regimes**: a list of `LinearGaussian` to begin with, one a regime; or a `SwitchingLinear`.
    - **moves**: probabilities (K, K) to begin with; None: stay with 0.95.
    - **learn**: names such as ["noise", "observation"] for all regimes, or a list of such a regime; None: all but the
      law of the first state. "moves" and "starts" are learnt unless **chain** leaves them out.
    - **form**: the form of what is learnt, as in `LinearGaussianDensity`.
    - **prior**: "weak": one frame of each regime as the first pass sees it, and one move; None: maximum likelihood.
    - **start**: "given": begin with the regimes as they are; "windows": first guess the regimes of frames from level,
      slope and roughness in a short window (a hidden Markov model of them), and learn from that; "auto": "windows" if
      regimes are all the same, so that nothing would tell them apart.

    With the regimes of all frames `given`, EM is exact and climbs. Otherwise the expectation is approximate (that of
    `smooth`); the approximate evidence is watched, and the best model is kept when it would fall.

    >>> import likely as lk, numpy as np
    >>> quiet, wild = (lk.LinearGaussian([[1.0]], [[q]], [[1.0]], [[1.0]], [0.0], [[1.0]]) for q in (0.1, 20.0))
    >>> jump = lk.SwitchingLinear([quiet, wild], [[0.95, 0.05], [0.05, 0.95]])
    >>> z, x, y = jump.simulate(5, np.random.default_rng(0), 200)
    >>> est = SwitchingDensity([quiet, wild], learn=["noise"]).fit(y)
    >>> bool(np.mean(est.predict(y).values == z.values) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "regimes": [list, tuple, SwitchingLinear],
        "moves": ["array-like", None],
        "learn": [list, tuple, str, None],
        "form": [dict, list, tuple, None],
        "chain": [list, tuple, str],
        "prior": [StrOptions({"weak"}), SwitchingPrior, None],
        "start": [StrOptions({"auto", "given", "windows"})],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }

    def __init__(
        self, regimes: Any, moves: Any = None, *, learn: Any = None, form: Any = None, chain: Any = MOVES,
        prior: Any = "weak", start: str = "auto", max_iter: int = 100, tol: float = 1e-5, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.regimes = regimes
        self.moves = moves
        self.learn = learn
        self.form = form
        self.chain = chain
        self.prior = prior
        self.start = start
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    _saved = (*DensityEstimator._saved, "lengths_")
    _model_types = (SwitchingLinear,)

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, inputs: Any = None, lengths: Any = None,
        given: Any = None,
    ) -> Self:  # fmt: skip
        """Learn from sequences X; `y` is ignored, weights are one a sequence, `inputs` are given as X is.

        `given`: regimes that are known, for each frame its number, −1 where it is not.
        """
        self._validate_params()
        first = self._first_model()
        frames, weight = self._sequences(X, lengths, first.dim), sample_weight
        known = None if given is None else masks(_known_states(given, lengths), frames, first.n_regimes)
        rows = frames if inputs is None else with_covariates(frames, Ragged.of(inputs, _cut(inputs, lengths)))
        self._refuse_unseen(frames)
        report = self._learn(first, rows, frames, weight, known)
        if not report.converged and not report.reason.startswith("the approximate evidence"):  # the usual end here
            tell(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol", stacklevel=2)
        self.n_features_in_, self.lengths_ = first.dim, max(float(frames.lengths.mean()), 1.0)
        return self._adopt(report)

    def _learn(self, first: SwitchingLinear, rows: Ragged, frames: Ragged, weight: Any, known: Any) -> FitReport:
        learner = SwitchingLearner.of(first, self.learn, self.form, self.chain)
        if known is None and self._guesses(first):
            guess = guessed_regimes(frames, weight, first.n_regimes, seed_of(self.random_state))
            data = Blocks.of(rows, weight, given=masks(guess, frames, first.n_regimes))
            learner = learner.replace(model=learnt(learner, data, self.prior, Stop(FIRST, 0.0)).model)
        return learnt(learner, Blocks.of(rows, weight, given=known), self.prior, Stop(self.max_iter, self.tol))

    def _guesses(self, first: SwitchingLinear) -> bool:
        if self.start != "auto":
            return self.start == "windows"
        alike = all(_same(first.regimes[0], m) for m in first.regimes[1:])
        return first.n_regimes > 1 and alike

    def _first_model(self) -> SwitchingLinear:
        if isinstance(self.regimes, SwitchingLinear):
            return self.regimes if self.moves is None else SwitchingLinear(self.regimes.regimes, self.moves)
        K = len(self.regimes)
        moves = self.moves
        if moves is None:
            moves = np.where(np.eye(K, dtype=bool), STAY, (1.0 - STAY) / max(K - 1, 1)) if K > 1 else [[1.0]]
        return SwitchingLinear(tuple(self.regimes), moves)

    def _sequences(self, X: Any, lengths: Any, width: int) -> Ragged:
        if X is None or hasattr(X, "tocsr"):
            got = "None" if X is None else "a sparse matrix"
            raise DataError(sentence(type(self).__name__, "sequences of frames are needed", got))
        refuse_dates(X, type(self).__name__)
        seqs = Ragged.of(X) if lengths is None else Ragged.of(X, lengths)
        values = np.asarray(seqs.values)
        found = 1 if values.ndim == 1 else values.shape[-1]
        if found != width:
            raise ShapeError(
                sentence(type(self).__name__, f"frames must have {width} columns, as the regimes do", found)
            )
        return seqs

    def _refuse_unseen(self, frames: Ragged) -> None:
        values = np.asarray(frames.values, dtype=np.float64)
        if not len(values) or np.isnan(values).all():
            expected = "at least one entry of one frame must have been observed"
            raise DataError(sentence(type(self).__name__, expected, "NaN everywhere" if len(values) else "no frame"))

    def _blank(self, X: Any, members: int | None = None) -> Any:
        remedy = "fit one on the sequences of each class, and compare their score_samples"
        raise DomainError(sentence(type(self).__name__, "this density stands alone", "inside another model", remedy))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Refused: the expectation is approximate, and statistics of different models would be mixed."""
        expected = "sequences must come all at once"
        raise DomainError(sentence(type(self).__name__, expected, "partial_fit", "call fit with all of them"))

    def summary(self, level: float = 0.95) -> Any:
        """Refused: there are no standard errors of an approximate evidence."""
        expected, remedy = "a switching model has no summary", "look at model_.regimes, model_.moves and report_"
        raise DomainError(sentence(type(self).__name__, expected, "summary", remedy))

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Refused: what is missing depends on the regime."""
        expected, remedy = "gaps of a switching model are not filled", "see model_.smooth(X) for states and regimes"
        raise DomainError(sentence(type(self).__name__, expected, "impute", remedy))

    # -------------------------------------------------------------------- in use

    def score_samples(self, X: Any, inputs: Any = None, lengths: Any = None) -> Array:
        """The approximate log p of each sequence (n,)."""
        check_is_fitted(self)
        return self.model_.log_prob(self._sequences(X, lengths, self.n_features_in_), inputs)

    def score(self, X: Any, y: Any = None, inputs: Any = None, lengths: Any = None) -> float:
        """Mean log p of the sequences."""
        return float(np.mean(self.score_samples(X, inputs, lengths)))

    def predict_proba(self, X: Any, inputs: Any = None, lengths: Any = None, live: bool = False) -> Any:
        """p(regime | sequence) of each frame: (T, K), or a Ragged; `live`: from the frames up to it alone."""
        check_is_fitted(self)
        seqs = self._sequences(X, lengths, self.n_features_in_)
        states = self.model_.filter(seqs, inputs) if live else self.model_.smooth(seqs, inputs)
        return states.regimes[0] if is_one(X) and lengths is None else states.regimes

    def predict(self, X: Any, inputs: Any = None, lengths: Any = None, live: bool = False) -> Any:
        """The likeliest regime of each frame: (T,), or a Ragged."""
        shares = self.predict_proba(X, inputs, lengths, live)
        return shares.map(_best) if isinstance(shares, Ragged) else _best(shares)

    def alarms(self, X: Any, cost: Any = None, inputs: Any = None, hold: int = 1) -> Alarms:
        """What to do after each frame of one sequence, from the frames up to it: see `fault_alarms`."""
        check_is_fitted(self)
        if not is_one(X):
            raise ShapeError(sentence(type(self).__name__, "alarms are those of one sequence", "several"))
        return fault_alarms(self.predict_proba(X, inputs, live=True), cost, hold=hold)

    def follow(self) -> InteractingModels:
        """The live filter of what was learnt, for `lk.follow`."""
        check_is_fitted(self)
        return InteractingModels(self.model_, "gpb2")

    def sample(self, n_samples: int = 1, random_state: Any = None, length: Any = None) -> Ragged:
        """Sequences drawn from the learnt model, as long as those of training were on average."""
        check_is_fitted(self)
        length = round(self.lengths_) if length is None else length
        return self.model_.sample(n_samples, np.random.default_rng(seed_of(random_state)), length)


def _best(shares: Array) -> Any:
    return shares.argmax(axis=1)


def _same(a: Any, b: Any) -> bool:
    names = ("transition", "noise", "emission", "observation", "control", "feedthrough")
    pairs = [(getattr(a, n), getattr(b, n)) for n in names]
    return all((x is None and y is None) or np.array_equal(x, y) for x, y in pairs)


def _cut(inputs: Any, lengths: Any) -> Any:
    return None if isinstance(inputs, Ragged | list | tuple) else lengths
