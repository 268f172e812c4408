"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.cluster.hierarchy.dendrogram import Dendrogram as Dendrogram
from likely.cluster.hierarchy.dendrogram_cut import bic_curve as bic_curve
from likely.cluster.hierarchy.linkage import linkage as linkage
from likely.cluster.kmeans.centroids import Centroids as Centroids
from likely.numerics.stirling import log_stirling2 as log_stirling2
