"""Candidate HMMs for sequence classification, from few states to many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from likely.automl.candidates import Candidate
from likely.classify.bayes import BayesClassifier
from likely.classify.prior_classifier import PriorClassifier
from likely.core.errors import DomainError, sentence
from likely.distributions.estimators.categorical_densities import CategoricalDensity
from likely.distributions.estimators.count_densities import PoissonDensity
from likely.distributions.estimators.product_density import ProductDensity
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.hmm.estimators.hmm_density import HMMDensity
from likely.hmm.topology import Topology
from likely.mixture.estimators.mixture_density import MixtureDensity

FEW_COLUMNS = 4  # number of columns up to which a state's covariance is full by default


def emission(kinds: Mapping[str, str], components: int = 1, covariance: CovarianceKind | None = None) -> Any:
    """Emission density of a state: Gaussian for numbers, Poisson for counts, categorical for categories.

    >>> emission({"x": "real", "y": "real"}), emission({"symbol": "category"})
    (GaussianDensity(), CategoricalDensity())
    """
    real = [name for name, kind in kinds.items() if kind == "real"]
    counts = [name for name, kind in kinds.items() if kind == "count"]
    words = [name for name, kind in kinds.items() if kind == "category"]
    shape: CovarianceKind = covariance or ("full" if len(real) <= FEW_COLUMNS else "diagonal")
    parts: list[Any] = []
    if real:
        parts.append((_together(real), GaussianDensity(shape), real))
    if counts:
        parts.append((_together(counts), PoissonDensity(), counts))
    parts += [(name, CategoricalDensity(), [name]) for name in words]
    distribution = parts[0][1] if len(parts) == 1 else ProductDensity(parts)
    if components == 1:
        return distribution
    if len(kinds) == 1 and words:
        expected, remedy = "a mixture needs numbers, or several columns", "omit components, or use more states"
        raise DomainError(sentence("components", expected, "one column of words", remedy))
    return MixtureDensity(distribution, components)


def _together(names: list[str]) -> str:
    """The name of a part of several columns."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}"


def chain(kinds: Mapping[str, str], states: int, **how: Any) -> HMMDensity:
    """An `HMMDensity` with the given number of states; `components` and `covariance` are those of `emission`."""
    distribution = emission(kinds, how.pop("components", 1), how.pop("covariance", None))
    return HMMDensity(distribution, states, **how)


def chain_candidates(
    kinds: Mapping[str, str], states: Iterable[int], rules: Mapping[str, Any], how: Mapping[str, Any],
    topologies: Sequence[Any] = (), least: int | None = None, brief: Mapping[str, Any] | None = None,
) -> list[Candidate]:  # fmt: skip
    """Class priors as a baseline, then one HMM per class with increasing numbers of states.

    With several `topologies` all combinations are compared, except those that are too long for the shortest sequence,
    of `least` frames, and other topologies of a single state. `brief` are settings of the fits that are compared.
    """
    ground = PriorClassifier(**rules)
    candidates = [Candidate("prior", "class prior", "sequences are not used", 0, ground)]
    for K in states:
        words = (
            "independent frames, in any order"
            if K == 1
            else f"{K} states per class, each with its own distribution of frames"
        )
        for i, topology in enumerate(topologies or (how["topology"],)):
            if i and (K == 1 or (least is not None and Topology.of(topology, K).min_length > least)):
                continue
            asked = {**how, "topology": topology}
            model, final = (BayesClassifier(chain(kinds, K, **asked, **more), **rules) for more in (brief or {}, {}))
            suffix, key = (f", {topology}", f"-{topology}") if i else ("", "")
            rank = 2 * K + (not i)  # a left-to-right topology is the simpler one
            candidates.append(
                Candidate(
                    f"hmm-{K}{key}", f"{K} state{'s' * (K > 1)} per class{suffix}", words, rank, model, final=final
                )
            )
    return candidates
