"""Operators of PyTorch, each as a function with inputs to call it with: what `test_operators` goes through."""

from importlib import import_module
from pkgutil import iter_modules

from catalogue.entry import Entry as Entry

_FAMILIES = [import_module(f"catalogue.{found.name}") for found in iter_modules(__path__) if found.name != "entry"]

CATALOGUE: list[Entry] = [entry for family in _FAMILIES for entry in family.ENTRIES]
