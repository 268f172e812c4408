"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.automl.choose_states import StateChoice as StateChoice
from likely.automl.encoded_regressor import EncodedRegressor as EncodedRegressor
from likely.automl.sequence_models import SequenceClassifier as SequenceClassifier
from likely.automl.sequence_models import SequenceDensity as SequenceDensity
from likely.automl.table_clusterer import TableClusterer as TableClusterer
from likely.automl.table_regressor import RegressionExplanation as RegressionExplanation
from likely.automl.table_regressor import TableRegressor as TableRegressor
