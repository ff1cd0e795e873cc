"""Low-rank adapters (LoRA, Hu et al., 2021, arXiv:2106.09685): in files, and in the products of a model.

A folder of the package PEFT has ``adapter_config.json`` and ``adapter_model.safetensors``; files of GGUF have both in
one. The weights of the model stay as they are: what an adapter adds is computed beside the product that it changes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod, sqrt
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import numpy as np

from tract_core.api.given import checked_path
from tract_core.errors import CorruptModel, InputError, ModelError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.patch import ModelPatch
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum
from tract_transformers.generation.gguf_files import gguf, has_weights, is_gguf
from tract_transformers.generation.tensor_file import Array, read_tensors
from tract_transformers.sampling.steps import within

Adapter = str | os.PathLike[str] | tuple[str | os.PathLike[str], float]
"""A folder of PEFT or a file of GGUF; and how strong it is, 1 as it was trained."""

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"

_PARTS: Final = {
    **{f"self_attn.{part}_proj": f"attn_{part}" for part in ("q", "k", "v", "qkv")},
    "self_attn.o_proj": "attn_output",
    **{f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")},
    "mlp.gate_up_proj": "ffn_up",
    "lm_head": "output",
}
"""What the products of our networks are called, by the names of modules of the package ``transformers``."""

_MODULE: Final = re.compile(r"base_model\.model\.(?:(?:model\.)+layers\.(\d{1,6})\.)?(.+)\.lora_([AB])\.weight")
_TENSOR: Final = re.compile(r"(.+)\.weight\.lora_([ab])")

_TURNED: Final = frozenset({"llama", "granite", "granitemoe", "smollm3"})
"""Architectures of GGUF whose files have the rows of queries and keys in another order than the models have."""


@frozen
class LowRank:
    """What is added to the ``product`` of a name: ``(x a^T) b^T``. ``a``: rank,inputs; ``b``: outputs,rank; in f32."""

    product: str
    a: Array
    b: Array


@frozen
class AddAdapters:
    """A model with low-rank adapters beside its products: those that are to be ``added``."""

    name: ClassVar[str] = "add_adapters"
    added: tuple[LowRank, ...]

    def apply(self, model: TypedModel) -> TypedModel:
        """The changed model. Raises Unsupported for products that it has not, or not in a form that is known."""
        found = model.clone()
        nodes = {node.name: node for node in found.live_nodes() if isinstance(node.op, EinSum)}
        missing = sorted({one.product for one in self.added} - nodes.keys())
        if missing:
            raise Unsupported(f"the adapter changes {', '.join(missing[:5])}, and the model has no such product")
        for name in dict.fromkeys(one.product for one in self.added):
            _add(found, nodes[name], [one for one in self.added if one.product == name])
        found.prune()
        return found


def _add(model: TypedModel, node: TypedNode, several: Sequence[LowRank]) -> None:
    """Let the readers of a product read its sum with what adapters make of the same input."""
    assert isinstance(node.op, EinSum)
    patch = ModelPatch(model)
    taps = [patch.tap(outlet) for outlet in node.inputs]
    (total,) = patch.wire(node.name, node.op, taps)
    for one in several:
        first, second, sizes = _terms(model, node, one)
        a = patch.model.add_const(f"{node.name}.lora_a", one.a.reshape(sizes))
        b = patch.model.add_const(f"{node.name}.lora_b", one.b)
        (small,) = patch.wire(f"{node.name}.narrow", EinSum(first, node.op.acc), [taps[0], a])
        (wide,) = patch.wire(f"{node.name}.wide", EinSum(second, node.op.acc), [small, b])
        (total,) = patch.wire(f"{node.name}.adapted", Add(), [total, wide])
    patch.shunt(node.outlets()[0], total)
    patch.apply()


def _terms(model: TypedModel, node: TypedNode, one: LowRank) -> tuple[AxesMapping, AxesMapping, tuple[int, ...]]:
    """The products with both matrices, and the shape of the first. Raises Unsupported for a product of another form."""
    assert isinstance(node.op, EinSum)
    (x, weights), (found,) = node.op.axes.inputs, node.op.axes.outputs
    shape = [size for size in model.outlet_fact(node.inputs[1]).shape if isinstance(size, int)]
    rank, free = one.a.shape[0], next(letter for letter in "zyxwvu" if letter not in x + weights)
    plain = found[-1] == weights[0] and node.op.q_output is None and set(weights[1:]) == set(x) - set(found)
    if not plain or len(shape) != len(weights):
        raise Unsupported(f"the product {node.name!r} has the form {x},{weights}->{found}, which takes no adapter")
    if one.b.shape != (shape[0], rank) or one.a.shape[1] != prod(shape[1:]):
        sizes = f"{list(one.b.shape)} times {list(one.a.shape)}"
        raise CorruptModel(f"the adapter of {node.name!r} is {sizes}, for weights {[shape[0], prod(shape[1:])]}")
    between = found[:-1] + free
    first = AxesMapping.parse(f"{x},{free}{weights[1:]}->{between}")
    return first, AxesMapping.parse(f"{between},{weights[0]}{free}->{found}"), (rank, *shape[1:])


# --- files ---


def adapters_of(adapters: Iterable[Adapter], model: Path) -> AddAdapters:
    """The adapters of some files, together. ``model``: the file or folder of the model that they are for.

    Raises InputError for what is no path, ModelError for files that cannot be read or are no such adapters.
    """
    found: list[LowRank] = []
    for one in adapters:
        given, strength = one if isinstance(one, tuple) else (one, 1.0)
        within("the strength of an adapter", strength, -np.inf, np.inf)
        path = checked_path(given)
        try:
            read = _of_folder(path, model) if path.is_dir() else _of_gguf(path)
        except ModelError as error:
            raise error.at(str(path)) from None
        found += [LowRank(low.product, low.a, np.float32(strength) * low.b) for low in read]
    return AddAdapters(tuple(found))


def _of_folder(folder: Path, model: Path) -> list[LowRank]:
    """Those of the package PEFT. Raises ModelError, PluginError."""
    if not is_gguf(model) and not has_weights(model):
        raise Unsupported("adapters of PEFT are for files of GGUF, and for folders with safetensors")
    metadata = gguf().read(model).metadata
    config = _config(folder / CONFIG)
    alpha, rooted = _alpha(config.get("lora_alpha")), config.get("use_rslora") is True
    pairs: dict[str, dict[str, Array]] = {}
    for name, tensor in read_tensors(folder / WEIGHTS).tensors.items():
        match = _MODULE.fullmatch(name)
        part = _PARTS.get(match[2]) if match is not None else None
        if match is None or part is None:
            raise Unsupported(f"the adapter changes {name!r:.120}, which nobody knows how to do")
        product = part if match[1] is None else f"blk.{int(match[1])}.{part}"
        pairs.setdefault(product, {})[match[3].lower()] = tensor
    several = [_low_rank(product, pair, alpha=alpha, rooted=rooted) for product, pair in pairs.items()]
    return [_turned(one, metadata) for one in several]


def _config(path: Path) -> Mapping[str, Any]:
    """What PEFT says of an adapter. Raises Unsupported for one that is more than low-rank matrices."""
    try:
        config: Any = json.loads(path.read_bytes()[: 1 << 20])
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{CONFIG} cannot be read: {error!s:.200}", hint="name the folder of the adapter") from None
    if not isinstance(config, dict):
        raise CorruptModel(f"{CONFIG} holds a {type(config).__name__}, wanted an object")
    said = cast("Mapping[str, Any]", config)
    if said.get("peft_type") != "LORA":
        raise Unsupported(f"it is an adapter of type {said.get('peft_type')!r:.40}, wanted LORA")
    strange = [name for name in ("use_dora", "alpha_pattern", "modules_to_save", "lora_bias") if said.get(name)]
    if strange or said.get("bias", "none") != "none":
        raise Unsupported(f"its {strange[0] if strange else 'bias'} is not understood here")
    return said


def _of_gguf(path: Path) -> list[LowRank]:
    """Those of a file of GGUF. Raises ModelError, PluginError."""
    file = gguf().read(path)
    if file.metadata.get("general.type") != "adapter" or file.metadata.get("adapter.type") != "lora":
        raise Unsupported("it is no adapter of type lora")
    alpha = _alpha(file.metadata.get("adapter.lora.alpha"))
    pairs: dict[str, dict[str, Array]] = {}
    for name, tensor in file.tensors.items():
        match = _TENSOR.fullmatch(name)
        if match is None:
            raise Unsupported(f"the adapter changes {name!r:.120}, which nobody knows how to do")
        held = tensor.stored()
        pairs.setdefault(match[1], {})[match[2]] = held.to_f32() if hasattr(held, "to_f32") else held
    return [_low_rank(product, pair, alpha=alpha) for product, pair in pairs.items()]


def _alpha(said: object) -> float:
    if not isinstance(said, (int, float)) or isinstance(said, bool):
        raise CorruptModel(f"its alpha is {said!r:.40}, wanted a number")
    return float(said)


def _low_rank(product: str, pair: Mapping[str, Array], *, alpha: float, rooted: bool = False) -> LowRank:
    """Both matrices, with the scale in the second. Raises CorruptModel for what is no pair."""
    a, b = pair.get("a"), pair.get("b")
    if a is None or b is None or a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1] or not a.shape[0]:
        raise CorruptModel(f"the adapter of {product!r:.80} has no two matrices outputs,rank and rank,inputs")
    scale = alpha / (sqrt(a.shape[0]) if rooted else a.shape[0])
    return LowRank(product, a.astype(np.float32), np.float32(scale) * b.astype(np.float32))


def _turned(low: LowRank, metadata: Mapping[str, Any]) -> LowRank:
    """With the rows of queries and keys as the model has them, where that is a file of GGUF.

    In such files, what turns together stands side by side, and in modules it is half a head apart.
    """
    architecture = metadata.get("general.architecture")
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}.get(low.product.rpartition(".")[2])
    if architecture not in _TURNED or heads is None:
        return low
    count = metadata.get(f"{architecture}.attention.{heads}", metadata.get(f"{architecture}.attention.head_count"))
    if not isinstance(count, int) or count < 1 or low.b.shape[0] % (2 * count):
        raise InputError(f"the adapter of {low.product!r} has {low.b.shape[0]} outputs, for {count!r:.40} heads")
    halves = low.b.reshape(count, 2, -1, low.b.shape[1])
    return LowRank(low.product, low.a, halves.swapaxes(1, 2).reshape(low.b.shape))
