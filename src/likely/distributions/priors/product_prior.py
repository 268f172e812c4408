"""Prior of a product distribution: independent priors, one per part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import PerMember
from likely.core.errors import DomainError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.product import Product, ProductStats


@dataclass(frozen=True, eq=False)
class ProductPrior(Value):
    """Independent priors of the parts of a `Product`; None leaves a part to maximum likelihood.

    Parameters
    ----------
    components : dict or sequence of pairs
        Prior of each part by name, or None.

    See Also
    --------
    Product : Its likelihood.

    Examples
    --------
    >>> import likely as lk
    >>> prior = ProductPrior({"visits": lk.Gamma(2.0, 1.0)})
    >>> model = lk.Product({"visits": lk.Poisson(1.0)})
    >>> prior.update(model.collect({"visits": [3, 5]})).point("mean").mean["visits"].round(4)
    array([3.3333])
    """

    components: Annotated[tuple[tuple[str, Any], ...], declared.pairs(declared.maybe(declared.prior))]

    def __post_init__(self) -> None:
        given = self.components
        self._set(components=tuple((str(n), p) for n, p in (given.items() if isinstance(given, Mapping) else given)))

    def __getitem__(self, name: str) -> Any:
        """The prior of the part of that name."""
        return dict(self.components)[name]

    def update(self, stats: ProductStats) -> ProductPrior:
        """Posterior per part."""
        return ProductPrior(tuple((n, p and p.update(stats[n])) for n, p in self.components))

    def point(self, rule: PointRule = "mode") -> Product:
        """Product of the parts' point estimates."""
        return Product.trusted(components=tuple((n, p.point(rule)) for n, p in self._all("point")))

    def draw(self, rng: Generator) -> Product:
        """Product with parameters sampled per part."""
        return Product.trusted(components=tuple((n, p.draw(rng)) for n, p in self._all("draw")))

    def predictive(self) -> Product:
        """Posterior predictive: the product of those of the parts."""
        return Product.trusted(components=tuple((n, p.predictive()) for n, p in self._all("predictive")))

    def log_evidence(self, stats: ProductStats) -> PerMember:
        """Log marginal likelihood: the sum over the parts."""
        return sum(p.log_evidence(stats[n]) for n, p in self._all("log_evidence"))

    def log_density(self, model: Product) -> PerMember:
        """Log prior density: the sum over the parts that have a prior."""
        return sum(p.log_density(model[n]) for n, p in self.components if p is not None)

    def _all(self, doing: str) -> tuple[tuple[str, Any], ...]:
        without = [n for n, p in self.components if p is None]
        if without:
            raise DomainError(
                sentence(f"ProductPrior.{doing}", "every part needs a prior", f"none for {', '.join(without)}")
            )
        return self.components
