"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.density.kde import coulomb_potential as coulomb_potential
from likely.density.knn_balls import KNNBalls as KNNBalls
from likely.features.histogram_equalization import equalize_histogram as equalize_histogram
