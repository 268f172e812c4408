"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.neighbors.editing import condensed_nearest_neighbor as condensed_nearest_neighbor
from likely.neighbors.editing import edited_nearest_neighbors as edited_nearest_neighbors
from likely.neighbors.estimator import KNeighborsRegressor as KNeighborsRegressor
from likely.neighbors.nearest_neighbors import NeighborSearch as NeighborSearch
