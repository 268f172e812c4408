"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.hmm.hmm_stats import HMMStats as HMMStats
from likely.hmm.logistic_transition import LogisticStats as LogisticStats
from likely.hmm.logistic_transition import LogisticTransition as LogisticTransition
from likely.hmm.topology import Topology as Topology
