"""The public names of `tract_core`."""

from tract_core import *
from tract_core import __getattr__ as __getattr__

__version__: str
