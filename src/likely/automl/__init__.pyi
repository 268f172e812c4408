"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.automl.choose_states import StateChoice as StateChoice
from likely.automl.sequence_models import SequenceClassifier as SequenceClassifier
from likely.automl.sequence_models import SequenceDensity as SequenceDensity
from likely.automl.table_clusterer import TableClusterer as TableClusterer
