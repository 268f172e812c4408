"""What a distribution or an estimator of your own needs: base classes, declared fields, checks, and `register`."""

from likely.core import declared
from likely.core.arrays import Array, Index, n_rows, parameter, rows, weights
from likely.core.blocks import Block, Blocks
from likely.core.description import Description, DescriptionTable
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.stats import AdditiveStats
from likely.core.value import Value
from likely.core.warnings import Note, warn
from likely.distributions.distribution import Distribution
from likely.estimation.component import Component, Traits
from likely.estimation.density_estimator import DensityEstimator
from likely.io.registry import register

__all__ = [
    "AdditiveStats", "Array", "Block", "Blocks", "Component", "DataError", "DensityEstimator", "Description",
    "DescriptionTable", "Distribution", "DomainError", "Index", "Note", "Ragged", "ShapeError", "Traits", "Value",
    "declared", "map_rows", "n_rows", "parameter", "register", "rows", "sentence", "warn", "weights",
]  # fmt: skip
