"""Independent parts of unlike kinds in one density."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Categorical, DataError, DomainError, Gaussian, Poisson, Product, ShapeError, fit
from likely.core import Columns
from likely.priors import ProductPrior


@pytest.fixture
def product():
    return Product(
        {
            "size": Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]),
            "visits": Poisson(3.0),
            "color": Categorical([0.5, 0.3, 0.2]),
        }
    )


def rows(product, n, rng):
    return product.sample(n, rng)


def test_log_probabilities_of_parts_add(product, rng):
    x = rows(product, 30, rng)
    want = sum(product[name].log_prob(x[name]) for name in product.names)
    np.testing.assert_allclose(product.log_prob(x), want, rtol=1e-15)
    as_array = np.column_stack([x["size"], x["visits"], x["color"]])
    np.testing.assert_allclose(product.log_prob(as_array), want, rtol=1e-15)
    np.testing.assert_allclose(product.log_prob(dict(x)), want, rtol=1e-15)


def test_order_and_extra_parts_do_not_matter(product, rng):
    x = rows(product, 5, rng)
    shuffled = Columns(color=x["color"], extra=np.zeros(5), visits=x["visits"], size=x["size"])
    assert np.array_equal(product.log_prob(shuffled), product.log_prob(x))


def test_a_part_that_was_not_seen_counts_for_nothing(product, rng):
    x = rows(product, 4, rng)
    hidden = Columns(size=x["size"], visits=np.full(4, np.nan), color=x["color"])
    np.testing.assert_allclose(product.log_prob(hidden), product.log_prob(x) - product["visits"].log_prob(x["visits"]))


def test_parts_by_name(product):
    assert product.names == ["size", "visits", "color"] and product.dim == 4 and product.members is None
    assert product.mean["visits"] == 3.0 and product.variance["visits"] == 3.0
    assert product.mode["color"] == 0 and product.n_parameters == 5 + 1 + 2
    assert product.entropy() == pytest.approx(sum(product[n].entropy() for n in product.names), rel=1e-14)


def test_fitting_fits_each_part(product, rng):
    x = rows(product, 200, rng)
    distributions = {"size": Gaussian, "visits": Poisson, "color": (Categorical, {"levels": 3})}
    for data in (x, dict(x)):
        g = Product.fit(data, distributions=distributions)
        np.testing.assert_allclose(g["size"].mean, x["size"].mean(axis=0))
        np.testing.assert_allclose(g["visits"].rate, x["visits"].mean(axis=0))
        np.testing.assert_allclose(g["color"].probs, np.bincount(x["color"].astype(int), minlength=3) / 200)


def test_large_data_come_in_blocks(rng):
    p = Product({"a": Gaussian([0.0], 1.0), "b": Poisson(2.0)})
    x = p.sample(40_000, rng)
    once, parts = p.collect(x), [p.collect(x[i : i + 4096]) for i in range(0, 40_000, 4096)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert once["b"].total == total["b"].total and once.total_weight == 40_000
    np.testing.assert_allclose(once["a"].scatter, total["a"].scatter, rtol=1e-13)


def test_priors_have_the_products_shape(product, rng):
    x = rows(product, 50, rng)
    report = fit(product, x, prior="weak")
    assert isinstance(report.prior, ProductPrior)
    stats = product.collect(x)
    some = ProductPrior((("size", None), ("visits", product["visits"].weak_prior(stats["visits"])), ("color", None)))
    fitted = product.refit(stats, some)
    np.testing.assert_allclose(fitted["size"].mean, product.refit(stats)["size"].mean)
    want = sum(fitted[n].objective(stats[n], some[n]) for n in product.names)
    assert fitted.objective(stats, some) == pytest.approx(want, rel=1e-13)


def test_statistics_by_part(product, rng):
    x = rows(product, 20, rng)
    stats = product.collect(x, rng.random(20))
    assert stats.names == product.names and stats.complete
    assert dict(iter(stats)).keys() == {"size", "visits", "color"}
    assert (stats + stats).total_weight == pytest.approx(2 * stats.total_weight)
    x["size"][3, 0] = np.nan
    assert not product.collect(x).complete
    x["size"][4] = np.nan  # a row that one part did not see at all is still a row
    assert product.collect(x).total_weight == 20 and product.collect(x)["size"].total_weight == 19


def test_stacks_of_one_size_make_a_stack(rng):
    p = Product({"a": Gaussian(rng.standard_normal((3, 2)), 1.0), "b": Poisson([[1.0], [2.0], [3.0]])})
    x = Columns(a=rng.standard_normal((7, 2)), b=[1, 0, 2, 3, 1, 0, 4])
    assert p.members == 3 and p.log_prob(x).shape == (7, 3)
    for k in range(3):
        np.testing.assert_allclose(p.log_prob(x)[:, k], p.member(k).log_prob(x), rtol=1e-13)
    stats = p.collect(x, labels=[0, 1, 2, 0, 1, 2, 0])
    assert stats.member(1)["b"].total == 1.0 and stats.pooled()["b"].total == 11.0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Product({}), DomainError),
        (lambda: Product((("a", Poisson(1.0)), ("a", Poisson(2.0)))), DomainError),
        (lambda: Product({"a": 3.0}), DomainError),
        (lambda: Product({"a": Poisson(1.0), "b": Poisson([[1.0], [2.0]])}), ShapeError),
        (lambda: Product({"a": Poisson([[1.0], [2.0], [3.0]]), "b": Poisson([[1.0], [2.0]])}), ShapeError),
    ],
)
def test_what_is_no_product_is_refused(make, error):
    with pytest.raises(error, match=r"^Product: "):
        make()


@pytest.mark.parametrize(
    ("x", "error"),
    [
        ({"size": np.zeros((2, 2)), "visits": [1, 2]}, DataError),
        (np.zeros((3, 3)), ShapeError),
        (np.zeros(4), ShapeError),
        ({"size": np.zeros((2, 2)), "visits": [1, 2, 3], "color": [0, 1]}, ShapeError),
    ],
)
def test_rows_that_do_not_fit_are_refused(product, x, error):
    for attempt in (product.log_prob, product.collect):
        with pytest.raises(error):
            attempt(x)


def test_other_parts_do_not_meet(product):
    other = Product({"size": product["size"]})
    with pytest.raises(ShapeError, match=r"Product\.kl: parts must be size, visits, color"):
        product.kl(other)
    with pytest.raises(ShapeError, match=r"Product\.refit: parts must be"):
        product.refit(other.collect({"size": np.zeros((3, 2))}))


def test_a_bad_entry_is_named_with_its_part(product):
    x = {"size": np.zeros((3, 2)), "visits": [1.0, np.inf, 0.0], "color": [0, 1, 2]}
    with pytest.raises(DataError, match=r"Poisson \(part 'visits'\): .* inf at row 1, column 0"):
        product.collect(x)


def test_single_precision_needs_it_in_all_parts(rng):
    p = Product({"a": Gaussian([0.0], 1.0), "b": Gaussian([0.0], 1.0)})
    single, double = np.zeros((2, 1), np.float32), np.zeros((2, 1))
    assert p.log_prob({"a": single, "b": single}).dtype == np.float32
    assert p.log_prob({"a": single, "b": double}).dtype == np.float64
