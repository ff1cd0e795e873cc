"""One node here and in ONNX Runtime: as wired and decluttered, with fixed and with symbolic sizes."""

from __future__ import annotations

import pytest
from onnx_check import assert_close, expected, load, run, single, with_output_types

from tract_core.errors import TractError


def agrees(op_type, inputs, *, symbolic=True, relative=1e-4, **options):
    """The node gives what ONNX Runtime gives. ``options``: those of `onnx_check.single`, and attributes."""
    model, given = single(op_type, inputs, **options)
    gives(expected(with_output_types(model), given), op_type, inputs, symbolic=symbolic, relative=relative, **options)


def gives(wanted, op_type, inputs, *, symbolic=True, relative=1e-6, **options):
    """The node gives these arrays."""
    for with_symbols in (False, True) if symbolic else (False,):
        model, given = single(op_type, inputs, symbolic=with_symbols, **options)
        for declutter in (False, True):
            assert_close(run(model, given, declutter=declutter), wanted, relative)


def is_refused(error, match, op_type, inputs, **options):
    """Loading the model of one node gives that error, with the node's operator in its place."""
    model, _ = single(op_type, inputs, **options)
    with pytest.raises(error, match=match) as caught:
        load(model).into_typed()
    assert isinstance(caught.value, TractError)
    assert op_type in str(caught.value.where)
