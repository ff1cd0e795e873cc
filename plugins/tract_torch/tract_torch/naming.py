"""What tensors are called: inputs and outputs over nested structures, and what lies between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

import torch
from torch.fx import Node
from torch.utils import _pytree as pytree
from tract_nnef.syntax.names import plain_name

from tract_core.errors import InputError


class VariableNamingScheme(StrEnum):
    """How tensors between inputs and outputs are called. The names of parameters do not depend on it."""

    RAW = "raw"
    """As `torch.export` calls them: ``conv2d_3``."""

    NATURAL_VERBOSE = "natural_verbose"
    """The path of the module, and the operator: ``encoder.layers.0.linear``."""

    NATURAL_VERBOSE_CAMEL = "natural_verbose_camel"
    """The same, each part of the path in camel case: ``encoder_layers_0_linear`` as ``encoder_layers0Linear``."""

    NUMERIC = "numeric"
    """``v0``, ``v1`` and so on."""


def node_name(node: Node, scheme: VariableNamingScheme) -> str:
    """The name of a node of an exported program; several may have the same one."""
    if scheme is VariableNamingScheme.RAW:
        return node.name
    if scheme is VariableNamingScheme.NUMERIC:
        return "v"
    stack: Mapping[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    path = next((path for path, _ in reversed(list(stack.values())) if path), "")
    operator = _operator(node)
    if scheme is VariableNamingScheme.NATURAL_VERBOSE:
        return f"{path}.{operator}" if path else operator
    parts = [_camel(part) for part in path.split(".")] if path else []
    return "_".join([*parts[:-1], _camel("_".join([*path.split(".")[-1:], operator]) if path else operator)])


def _operator(node: Node) -> str:
    """``linear`` of ``aten.linear.default``, ``batch_norm`` of ``aten._native_batch_norm_legit.default``."""
    parts = str(node.target).split(".")
    return parts[1].strip("_").removeprefix("native_").partition("_legit")[0] if len(parts) > 2 else node.name


def _camel(text: str) -> str:
    first, *rest = re.split(r"_+", text.strip("_")) or [""]
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def is_tensor(value: Any) -> bool:
    """Whether something is a tensor."""
    return isinstance(value, torch.Tensor)


def flat_names(
    roots: Sequence[str] | None,
    values: Sequence[tuple[str, Any]],
    what: str,
    is_named: Callable[[Any], bool] = is_tensor,
) -> list[str]:
    """The names of all tensors in nested structures, in order.

    ``values``: each argument or result, with the name that it has unless ``roots`` says another. A tensor in a
    container is called after its place in it, as ``cache_0_key``. ``roots`` names each of the values that holds
    tensors, or each tensor. ``what``: "input" or "output". ``is_named``: what gets a name, if not tensors alone. Raises
    InputError for another number of names, and for one that is there twice.
    """
    held = [(name, places) for name, value in values if (places := _places(value, is_named))]
    count = sum(len(places) for _, places in held)
    if roots is not None:
        check_names(roots, what)
    if roots is not None and len(roots) == len(held):
        held = [(root, places) for root, (_, places) in zip(roots, held, strict=True)]
    elif roots is not None and len(roots) != count:
        hint = (
            f"name each of the {what}s" if len(held) == count else f"name each {what}, or each of the {count} tensors"
        )
        raise InputError(_counted(roots, len(held), what), hint=hint)
    names = ["_".join([name, *map(plain, place)]) for name, places in held for place in places]
    if roots is not None and len(roots) != len(held):
        names = list(roots)
    check_names(names, what)
    return names


def check_names(names: Sequence[object], what: str) -> None:
    """Raises InputError for what is no list of names, for a name that is none, and for one that is there twice."""
    if isinstance(names, str) or not isinstance(names, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"the names of the {what}s are {names!r}, wanted a list of texts")
    wrong = [name for name in names if not isinstance(name, str) or not name]
    if wrong:
        raise InputError(f"{wrong[0]!r} is no name of an {what}", hint="names are texts that are not empty")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"two {what}s have the name {twice[0]!r}", hint=f"give other names to the {what}s")


def check_count(names: Sequence[str], count: int, what: str) -> None:
    """Raises InputError as `check_names` does, and where there are more or fewer names than tensors."""
    check_names([name for name in names if name] if isinstance(names, list) else names, what)
    if len(names) != count:
        raise InputError(_counted(names, count, what), hint="give one for each tensor")


def _counted(names: Sequence[str], count: int, what: str) -> str:
    """How many names there are, and how many were wanted."""
    listed = f": {', '.join(names)}" if names else ""
    return f"{_of(len(names), 'name')} for {_of(count, what)}{listed}"


def _of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def check_archive_names(inputs: Sequence[str], outputs: Sequence[str], others: Iterable[str]) -> None:
    """Raises InputError for names of inputs and outputs that an archive cannot have, or cannot have beside ``others``.

    Those are the names of parameters and symbols. A file would call one of the two otherwise.
    """
    taken = {plain(name): name for name in others}
    for what, names in (("input", inputs), ("output", outputs)):
        for name in names:
            if name != plain_name(name):
                hint = f"words of letters, digits and _ are, as {plain_name(name)!r}"
                raise InputError(f"{name!r} is no name of an {what} of an archive", hint=hint)
            if name in taken:
                raise InputError(f"the {what} {name!r} is called as a parameter or a symbol: {taken[name]!r}")


def plain(text: str) -> str:
    """A part of a name that archives can have."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)


def _places(value: Any, is_named: Callable[[Any], bool]) -> list[tuple[str, ...]]:
    """The keys that lead to each named leaf of a structure."""
    leaves = pytree.tree_flatten_with_path(value)[0]
    return [tuple(map(key_text, path)) for path, leaf in leaves if is_named(leaf)]


def key_text(key: Any) -> str:
    """A key of a container: its text, the number of its place, or the name of its field."""
    found = next((getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)), key)
    return str(found)


def numbered(prefix: str, values: Iterable[Any]) -> list[tuple[str, Any]]:
    """Values with the names ``prefix_0``, ``prefix_1`` and so on."""
    return [(f"{prefix}_{place}", value) for place, value in enumerate(values)]


def named_results(tree: Any) -> list[tuple[str, Any]]:
    """What a module returns, each of several results with the name that it has by default."""
    if isinstance(tree, (tuple, list)):
        return numbered("output", cast("Sequence[Any]", tree))
    if isinstance(tree, torch.Tensor) or (tree is None):
        return numbered("output", [tree])
    return [("output", tree)]
