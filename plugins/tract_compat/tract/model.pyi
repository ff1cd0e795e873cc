"""The names of `tract_core.model`: the page about models and their lifecycle, and `Model`."""

from tract_core.model import *
