"""likely: densities in, decisions out.

Every model is a density. Learning adds up statistics. Deciding minimizes expected cost.
"""

from likely._version import __version__
from likely.names import namespace

__getattr__, __dir__, _names = namespace(__name__)
__all__ = ["__version__", *_names]
