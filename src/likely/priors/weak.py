"""Which prior `prior="weak"` means for a Gaussian of each kind."""

from __future__ import annotations

from typing import Any

from likely.families.gaussian import Gaussian
from likely.priors.normal_inverse_gamma import NormalInverseGamma
from likely.priors.normal_inverse_wishart import NormalInverseWishart


def weak_gaussian(model: Gaussian, stats: Any) -> NormalInverseWishart | NormalInverseGamma:
    """Normal-inverse-Wishart for a full covariance, normal-inverse-gamma for the others."""
    means = model.members if model.tied and model.members else 1
    if model.kind == "full":
        return NormalInverseWishart.weak(stats, means)
    return NormalInverseGamma.weak(stats, model.kind, means)
