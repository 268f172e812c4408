"""The same blocks give the same bits, whoever adds them up."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import threadpoolctl

from likely import DataError, DomainError, Gaussian, Product, fit
from likely.core import Blocks, Serial, Threads
from likely.core.blocks import BLOCKS, ROWS
from likely.core.engine import map_rows, one_blas_thread, ordered_map
from likely.distributions import Stack, Tied
from tests.properties.compare import arrays_of

ENGINES = [Threads(1), Threads(2), Threads(4), Threads()]


def models():
    rng = np.random.default_rng(3)
    means = rng.standard_normal((5, 3))
    yield "full", Gaussian(means[0], np.eye(3) + 0.3)
    yield "diagonal", Gaussian(means[0], np.ones(3))
    yield "stack", Gaussian(means, np.stack([np.eye(3) * (k + 1) for k in range(5)]))
    yield "tied", Gaussian(means, np.eye(3))
    yield "product", Product({"a": Gaussian([0.0], 1.0), "b": Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])})
    yield "several", Stack([Gaussian(means[0], 1.0), Gaussian(means[1], np.eye(3))])
    yield "shared", Tied(Gaussian(means, 1.0), [0, 0, 1, 1, 1], what="covariance")


MODELS = dict(models())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((900, 3)) * [1.0, 5.0, 0.1] + 1e3
    x[rng.random(x.shape) < 0.1] = np.nan
    return Blocks.of(x, rng.random(900), rows=37, blocks=3)


@pytest.mark.parametrize("name", MODELS)
def test_engines_agree_bit_for_bit(name, data):
    model = MODELS[name]
    wanted = arrays_of(Serial().total(lambda b: model.collect(b.x, b.weight), data))
    for engine in ENGINES:
        got = arrays_of(engine.total(lambda b: model.collect(b.x, b.weight), data))
        assert [a.tobytes() for a in got] == [a.tobytes() for a in wanted], engine


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_fits_agree_bit_for_bit(name, data):
    reports = [fit(MODELS[name], data, engine=engine) for engine in [Serial(), *ENGINES]]
    assert len({r.model.mean.tobytes() + r.model.covariance.tobytes() for r in reports}) == 1
    assert len({tuple(r.trace) for r in reports}) == 1


@pytest.mark.parametrize("engine", [Serial(), *ENGINES], ids=str)
def test_the_sum_is_in_the_order_of_the_blocks(engine):
    def slow_first(block):
        time.sleep(0.004 if block.x[0] < 6 else 0)
        return tuple(block.x.tolist())

    assert engine.total(slow_first, Blocks.of(np.arange(20), rows=2, blocks=2)) == tuple(range(20))


@pytest.mark.parametrize("engine", [Serial(), *ENGINES], ids=str)
def test_an_exception_reaches_the_caller(engine):
    def fail(block):
        if 7 in block.x:
            raise ZeroDivisionError("in block 7")
        return 1

    with pytest.raises(ZeroDivisionError, match="in block 7"):
        engine.total(fail, Blocks.of(np.arange(20), rows=2, blocks=2))


@pytest.mark.parametrize("engine", [Serial(), *ENGINES], ids=str)
def test_nothing_to_add_is_an_error(engine):
    with pytest.raises(DataError, match="at least one block"):
        engine.total(lambda b: 1, Blocks.of(np.zeros((0, 2))))


def test_several_threads_are_used():
    seen = set()

    def note(block):
        seen.add(threading.get_ident())
        time.sleep(0.01)
        return 1

    Threads(2).total(note, Blocks.of(np.arange(8), rows=1, blocks=1))
    assert len(seen) == 2


def test_no_more_than_twice_the_workers_are_in_flight():
    running, most, lock = [0], [0], threading.Lock()

    def work(i):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.002)
        with lock:
            running[0] -= 1
        return i

    produced = []
    for i in ordered_map(work, range(30), 3):
        produced.append(i)
    assert produced == list(range(30)) and most[0] <= 3


def test_an_abandoned_map_stops():
    done = []

    def work(i):
        done.append(i)
        time.sleep(0.002)
        return i

    results = ordered_map(work, range(1000), 2)
    assert next(results) == 0
    results.close()
    assert len(done) < 20


@pytest.mark.parametrize("workers", [0, -1])
def test_threads_need_a_worker(workers):
    with pytest.raises(DomainError, match="at least one worker"):
        Threads(workers)


def blas():
    return [p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]


def test_blas_keeps_to_one_thread_inside_and_gets_its_own_back():
    before = blas()
    with one_blas_thread():
        assert set(blas()) == {1}
        with one_blas_thread():
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    assert blas() == before
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas() == before


def test_threads_that_overlap_give_blas_back_all_the_same():
    """The second to enter finds one thread already; it must not take that for what was there before."""
    before = blas()
    first_in, second_in = threading.Event(), threading.Event()

    def second():
        first_in.wait(5)
        with one_blas_thread():
            second_in.set()
            time.sleep(0.02)

    other = threading.Thread(target=second)
    other.start()
    with one_blas_thread():
        first_in.set()
        second_in.wait(5)
    other.join(5)
    assert blas() == before


@pytest.mark.parametrize("n", [0, 1, ROWS, ROWS + 1, 2 * ROWS * BLOCKS + 5])
@pytest.mark.parametrize("columns", [None, 2])
def test_map_rows_is_f_of_all_rows(n, columns):
    x = np.arange(n, dtype=np.float32)[:, None]
    out = map_rows(lambda b: b[:, 0] * 2 if columns is None else np.repeat(b * 2, 2, axis=1), x, columns)
    assert out.dtype == np.float32 and out.shape == ((n,) if columns is None else (n, 2))
    assert np.array_equal(out if columns is None else out[:, 1], np.arange(n, dtype=np.float32) * 2)


@pytest.mark.parametrize("row", [0, ROWS + 3, ROWS * BLOCKS + 17])
def test_an_error_names_the_row_as_the_caller_counts(row, rng):
    x = np.zeros((ROWS * BLOCKS + 100, 2))
    x[row, 1] = np.inf
    model = Gaussian([0.0, 0.0], np.eye(2))
    for attempt in (model.log_prob, model.mahalanobis, model.collect, lambda x: fit(model, x), Gaussian.fit):
        with pytest.raises(DataError, match=f"inf at row {row}, column 1"):
            attempt(x)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [0, 1, 256, 257, 5000])
def test_map_rows_gives_an_array_of_its_own_and_says_nothing(n):
    """Few rows go straight through, many in blocks; what f returns (a transpose, its input) is never handed out."""
    x = np.full((n, 2), 1e300)
    same = map_rows(lambda block: block, x, 2)
    assert same.flags.c_contiguous and not np.shares_memory(same, x) and np.array_equal(same, x)
    assert map_rows(lambda block: np.ones((3, len(block))).T, x, 3).flags.c_contiguous
    assert np.isinf(map_rows(lambda block: block[:, 0] * block[:, 1], x, None)).all()
    assert map_rows(lambda block: block[:, 0], x, None, np.float32).dtype == np.float32
