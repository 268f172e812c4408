from __future__ import annotations

import pytest

from likely.core.engine import one_blas_thread


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Small matrices gain nothing from BLAS threads, and two test processes would fight over the cores."""
    with one_blas_thread():
        yield
