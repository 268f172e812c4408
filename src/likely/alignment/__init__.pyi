"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.alignment.barycenters import BarycenterResult as BarycenterResult
from likely.alignment.barycenters import barycenter as barycenter
from likely.alignment.dtw import Alignment as Alignment
from likely.alignment.dtw import number_of_paths as number_of_paths
from likely.alignment.pairwise_dtw import dtw_matrix as dtw_matrix
from likely.alignment.step_patterns import StepPattern as StepPattern
from likely.alignment.subsequence_search import Matches as Matches
from likely.alignment.subsequence_search import subsequence_dtw as subsequence_dtw
