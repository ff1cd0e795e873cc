"""Symbolic sizes: expressions over named, non-negative integers.

A size is a ``Dim``: an ``int``, or a ``TDim`` such as ``(S+3)/4``. Operators build sums, products and floor divisions;
functions build the rest, compare with three answers, and put values in the place of symbols.

The public names, in ``__init__.pyi``, are imported when they are first used: who only wants values needs no algebra.
"""

from __future__ import annotations

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__)
