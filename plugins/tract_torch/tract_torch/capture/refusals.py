"""What `torch.export` refuses, in our words: where, what, and what to change."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch

from tract_core.errors import InputError, TractError, Unsupported
from tract_torch.arguments import module_of
from tract_torch.capture.dynamic import DynamicAxis, DynamicShapes
from tract_torch.capture.watching import Watching, place_of_error

_ONNX: Final = "torch.onnx.export(..., dynamo=False) follows the example, and tract.load reads the file"
_SIZE: Final = re.compile(r"L\['(\w+)'\]((?:\[[^\]]*\])*)\.size\(\)\[(\d+)\]")


def explained(error: Exception, watching: Watching, shapes: DynamicShapes) -> TractError:
    """The error to raise in the place of one of PyTorch, whose traceback it does not keep."""
    if isinstance(error, TractError):
        return error
    place = place_of_error(error.__traceback__, watching.module)
    text = str(error).partition("\n\nThe error above occurred when calling torch.export")[0]
    if "Constraints violated" in text:
        found = _constraints(text, watching, shapes)
    else:
        ways = (way for names, way in _WAYS.items() if {kind.__name__ for kind in type(error).__mro__} & set(names))
        found = next(ways, _other)(error, text, place)
    error.__traceback__ = error.__context__ = None  # a hundred lines about the inside of PyTorch
    found.__cause__ = error
    return found


def _data_dependent(error: Exception, text: str, place: str | None) -> TractError:
    about = str(getattr(error, "cond", ""))
    if "specialized integer" in text or re.fullmatch(r"zuf\d+", about):
        hint = (
            "leave x.item() as it is, without int() or float(), and say what holds of it by torch._check(n >= 0); to "
            "read or write a place that is a tensor, use index_select, index_copy or torch.where"
        )
        if place is None:  # PyTorch's own
            hint = "give a BatchNorm that stays in training mode a momentum: it counts its batches otherwise"
        problem = "a number that only a run knows is used where the program must know it"
        return Unsupported(problem, where=place, hint=hint)
    is_truth = re.fullmatch(r"Eq\(u\d+, [01]\)", about)  # of an element, which says nothing
    return Unsupported(
        f"the module decides by what only a run knows{f': {about}' if about and not is_truth else ''}",
        where=place,
        hint="torch.cond or torch.where takes the place of an if on the elements of a tensor, torch._check(...) says "
        "what holds of a number such as x.item(); torch.onnx.export(torch.jit.script(module), ..., dynamo=False) keeps "
        "the if, and tract.load reads the file",
    )


def _dynamic_output(_: Exception, text: str, place: str | None) -> TractError:
    hint = f"do without it; {_ONNX}"
    if "aten.equal" in text:
        hint = "take (a == b).all(), a tensor, and torch.cond or torch.where, in place of torch.equal(a, b)"
    return Unsupported(f"{_first(text)} has a result that only a run knows", where=place, hint=hint)


def _no_fake(_: Exception, text: str, place: str | None) -> TractError:
    return Unsupported(
        f"nothing tells the shapes that the operator {_first(text)} gives",
        where=place,
        hint="register them by torch.library.register_fake, and its importer as a row of the table 'aten'",
    )


def _device(_: Exception, text: str, place: str | None) -> TractError:
    return InputError(_first(text), where=place, hint="have the module and the example on one device")


def _range(_: Exception, text: str, __: str | None) -> TractError:
    return InputError(
        f"a size of the example is not in the range that its Dim has: {_first(text)}",
        hint="give an example within the range, or a Dim of another range",
    )


def _user(_: Exception, text: str, place: str | None) -> TractError:
    if "dynamic_shapes" in text or "dynamic shapes" in text:
        return InputError(_readable(_first(text).partition(" For more information")[0]), where="dynamic_shapes")
    return Unsupported(f"torch.export: {_readable(_first(text))}", where=place, hint=_ONNX)


def _other(error: Exception, text: str, place: str | None) -> TractError:
    hint = f"where it runs outside of torch.export, {_ONNX}"
    return Unsupported(f"calling the module gave {type(error).__name__}: {_first(text)}", where=place, hint=hint)


_WAYS: Final[dict[tuple[str, ...], Callable[[Exception, str, str | None], TractError]]] = {
    ("GuardOnDataDependentSymNode", "UserErrorType"): _data_dependent,
    ("DynamicOutputShapeException", "DataDependentOutputException"): _dynamic_output,
    ("UnsupportedOperatorException",): _no_fake,
    ("FakeTensorDeviceMismatchError",): _device,
    ("ConstraintViolationError", "ValueRangeError"): _range,
    ("UserError",): _user,
}


def _first(text: str) -> str:
    """The first paragraph."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def _readable(text: str) -> str:
    """With sizes in words."""
    return _SIZE.sub(lambda match: f"(axis {match[3]} of {match[1]}{match[2]})", text)


def _constraints(text: str, watching: Watching, shapes: DynamicShapes) -> TractError:
    """Sizes that were said to be dynamic, and cannot be all that they were said to be."""
    problems: list[str] = []
    hints: list[str] = []
    for line in re.findall(r"^\s*- (.*)$", text, re.MULTILINE):
        problem, hint = _constraint(line, watching, shapes)
        problems.append(problem)
        hints.append(hint)
    hints += _fixes(text)
    named = [axis for axis in shapes.axes if axis.name and re.search(rf"\b{re.escape(axis.name)}\b", text)]
    problem = "; ".join(_unique(problems))
    where = ", ".join(place for place in dict.fromkeys(map(str, named)) if place not in problem) or None
    return Unsupported(problem, where=where, hint="; ".join(_unique(hints)))


def _constraint(line: str, watching: Watching, shapes: DynamicShapes) -> tuple[str, str]:
    constant = re.match(r"You marked (.+?) as dynamic but your code specialized it to be a constant \((\d+)\)", line)
    if constant:
        axis = _axis(constant[1], shapes)
        told = str(axis) if axis else _readable(constant[1])
        hint = f"{_instead(watching, axis)}, or leave the axis out of dynamic_shapes"
        if constant[2] in ("0", "1"):
            hint = f"take an example whose {told} is 2 or more: PyTorch has rules of its own for 0 and 1"
        return f"{told} was specialised to {constant[2]}{_because(watching, axis)}", hint
    violated = re.match(r"Not all values of (\w+) = .*? satisfy the generated guard (.*?)\.?$", line)
    if violated:
        axis = shapes.named(violated[1])
        guard = _SIZE.sub(violated[1], violated[2])
        return f"not all sizes {violated[1]} hold that {guard}{_because(watching, axis)}", _bound(watching, axis)
    if "must always be equal" in line:
        told = _SIZE.sub(lambda match: f"axis {match[3]} of {match[1]}{match[2]}", line)
        return told.rstrip("."), "use the same Dim for both"
    return _readable(line), ""


def _axis(told: str, shapes: DynamicShapes) -> DynamicAxis | None:
    """The axis that PyTorch tells of, by the name of its size or by its place."""
    place = _SIZE.fullmatch(told)
    if place is None:
        return shapes.named(told)
    where, number = f"{place[1]}{place[2]}", int(place[3])
    return next((axis for axis in shapes.axes if (axis.where, axis.axis) == (where, number)), None)


def _because(watching: Watching, axis: DynamicAxis | None) -> str:
    symbol = _symbol_of(watching, axis)
    lines = watching.lines(symbol) if symbol else []
    return f" because of {'; '.join(lines[:3])}" if lines else ""


_INSTEAD: Final[dict[str, str]] = {
    r"\bsqrt\(": "write n ** 0.5 in place of math.sqrt(n)",
    r"\blog\w*\(|\bexp\(": "compute it of torch.tensor(n) in place of the number",
    r"\bfloat\(": "write torch.sym_float(n) in place of float(n)",
    r"\bint\(": "write torch.sym_int(n), or n // 2 in place of int(n / 2)",
    r"\.numel\(\)": "write x.numel(), or math.prod(x.shape), in place of x.shape.numel()",
    r"Tensor\(": "write torch.tensor([n]) in place of torch.LongTensor([n])",
    r"\brange\(": "write torch.arange(n), or torch.scan, in place of a loop over range(n)",
}
"""For what a line has in it that makes a size ``n`` a number of the example, what to write there."""


def _instead(watching: Watching, axis: DynamicAxis | None) -> str:
    """What to write where a size became a number of the example."""
    symbol = _symbol_of(watching, axis)
    places = [
        re.match(r"(?:module '.*?', )?(.+), line (\d+), in ", line)
        for line in (watching.lines(symbol) if symbol else ())
    ]
    lines = [linecache.getline(place[1], int(place[2])) for place in places if place]
    found = [hint for text, hint in _INSTEAD.items() if any(re.search(text, line) for line in lines)]
    return "; ".join(found) or "compute with x.shape[...] there in place of a number or of len(x)"


def _symbol_of(watching: Watching, axis: DynamicAxis | None) -> str | None:
    """The symbol of PyTorch for an axis."""
    if axis is None or watching.environment is None:
        return None
    ends = f".size()[{axis.axis}]"
    found = watching.environment.source_to_var.items()
    sources = [(source, str(symbol)) for source, symbol in found if source.endswith(ends)]
    name = axis.where.partition("[")[0]
    return next((symbol for source, symbol in sources if f"L['{name}']" in source), None)


def _bound(watching: Watching, axis: DynamicAxis | None) -> str:
    """What the range of an axis would have to be, found by trying the sizes from 0 to 256."""
    symbol = _symbol_of(watching, axis)
    if axis is None or symbol is None:
        return ""
    guards = [guard.expr for guard in watching.environment.guards]
    alone = [guard for guard in guards if [str(one) for one in guard.free_symbols] == [symbol]]
    low, high = axis.dim.min, min(axis.dim.max, 256)
    right = [size for size in range(low, high + 1) if all(_holds(guard, size) for guard in alone)]
    if not right or right != list(range(right[0], right[-1] + 1)):
        return ""
    bounds = [f"min={right[0]}", *([f"max={right[-1]}"] if right[-1] < 256 else [])]
    return f"give Dim({axis.name!r}, {', '.join(bounds)})"


def _holds(guard: Any, size: int) -> bool:
    try:
        return bool(guard.subs(dict.fromkeys(guard.free_symbols, size)))
    except (ArithmeticError, TypeError, ValueError):
        return False


def _fixes(text: str) -> list[str]:
    """What PyTorch suggests, but for numbers."""
    given = text.partition("Suggested fixes:")[2]
    lines = [line.strip() for line in given.splitlines() if " = " in line]
    return [
        f"give {line.partition(' = ')[2]}" for line in lines if line.startswith("_") is False and "Dim(" in line
    ] + [f"give the size as {line}" for line in lines if line.startswith("_") or "*" in line]


def _unique(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]


def check_module(module: Any) -> None:
    """Raises InputError for what is no module, Unsupported for one that PyTorch compiled already."""
    module_of(module, "the module")
    if isinstance(module, torch.jit.ScriptModule):
        hint = "give the module that it was made of; torch.onnx.export(..., dynamo=False) takes it as it is, and "
        raise Unsupported("torch.export does not take a ScriptModule", hint=f"{hint}tract.load reads the file")


def check_tensors(module: torch.nn.Module, leaves: Iterable[Any]) -> None:
    """Raises Unsupported for weights and inputs that are no plain tensors with elements."""
    held = [(f"parameter {name!r}", one) for name, one in module.named_parameters()]
    held += [(f"buffer {name!r}", one) for name, one in module.named_buffers()]
    given = [("the example", one) for one in leaves if isinstance(one, torch.Tensor)]
    for where, tensor in [*held, *given]:
        check_tensor(where, tensor)


def check_tensor(where: str, tensor: torch.Tensor) -> None:
    """Raises Unsupported for what is no plain tensor with elements."""
    if tensor.device.type == "meta":
        hint = "load the weights: module.load_state_dict(..., assign=True)"
        hint = hint if where != "the example" else "give tensors with elements"
        raise Unsupported("is on the device 'meta': it has a shape and no elements", where=where, hint=hint)
    if tensor.layout is not torch.strided:
        hint = "call to_dense() on it" if where != "the example" else "give x.to_dense()"
        raise Unsupported(f"is a sparse tensor ({tensor.layout})", where=where, hint=hint)
    if tensor.is_quantized:
        hint = "use pt2e quantisation, whose programs hold plain integers, or call dequantize()"
        raise Unsupported(f"is a quantised tensor ({tensor.dtype})", where=where, hint=hint)
