"""The public names of `tract_core`."""

from tract_core import *

__version__: str
