"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.information.divergence import cross_entropy as cross_entropy
from likely.information.divergence import js_divergence as js_divergence
from likely.information.mutual_information import conditional_entropy as conditional_entropy
