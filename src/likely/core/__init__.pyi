"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.core.blocks import Block as Block
from likely.core.blocks import Blocks as Blocks
from likely.core.columns import Columns as Columns
from likely.core.covariates import with_covariates as with_covariates
from likely.core.description import Description as Description
from likely.core.description import DescriptionTable as DescriptionTable
from likely.core.em_loop import FitStep as FitStep
from likely.core.em_loop import iterate as iterate
from likely.core.engine import Engine as Engine
from likely.core.engine import Serial as Serial
from likely.core.engine import Threads as Threads
from likely.core.sketch import Sketch as Sketch
from likely.io.checkpoint import Checkpoint as Checkpoint
