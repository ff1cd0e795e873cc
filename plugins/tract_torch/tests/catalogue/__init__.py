"""Operators of PyTorch, each as a function with inputs to call it with: what `test_operators` goes through."""

from catalogue import axis, binary, elementwise, norm, products, reduce
from catalogue.entry import Entry as Entry

CATALOGUE = [entry for family in (axis, binary, elementwise, norm, products, reduce) for entry in family.ENTRIES]
