"""Real data that come with scikit-learn, for tours and examples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Example(NamedTuple):
    """A table of measurements with its labels."""

    X: Any  # (n, d)
    y: Any  # (n,): labels as words
    names: list[str]


def wine() -> Example:
    """178 wines of three cultivars, 13 chemical measurements (Forina et al., 1986)."""
    from sklearn.datasets import load_wine

    data = load_wine()
    labels = np.array(["Barolo", "Grignolino", "Barbera"])  # the cultivars behind classes 0, 1 and 2
    names = [
        name.replace("_", " ").replace("od280/od315 of diluted wines", "protein ratio") for name in data.feature_names
    ]
    return Example(data.data, labels[data.target], names)
