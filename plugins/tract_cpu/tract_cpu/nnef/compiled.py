"""Machine code of a model beside it in an archive: `tract_cpu.archived` says what is where, and takes it from there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tract_llvm.isa import ISAS
from tract_llvm.objects.system import convention
from tract_nnef.archive.writing import Files
from tract_nnef.registry import COMPILED, NNEF_BESIDE

from tract_core.dims import evaluate
from tract_core.errors import InputError
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.tables import Rows
from tract_cpu.ahead.object_file import CompiledModel, compile_model
from tract_cpu.ahead.targets import ObjectTarget, target_named
from tract_cpu.archived import FORMAT, INDEX, NAME, digest_of_bytes

ROWS = Rows()


@ROWS.row(NNEF_BESIDE, COMPILED)
def compiled_for(model: TypedModel, targets: str) -> Files:
    """The code and the constants of a model for each of these targets, and the index of them.

    ``targets``: as `tract_cpu.ahead.targets` names them, with commas between. Raises Unsupported as `compile_model`.
    """
    normal = model.clone().declutter()
    files: dict[str, Sequence[Any]] = {}
    codes: list[Mapping[str, Any]] = []
    interface: dict[str, Any] = {}
    for target in _best_last(targets):
        found = compile_model(normal, _for_linker(target), NAME, apart=True)
        name = f"{target.isa.name}-{target.system}"
        own = {f"{name}.o": [bytes(found.code)], f"{name}.bin": found.constants}
        files |= own
        codes.append(_told(target, found, {one: digest_of_bytes(content) for one, content in own.items()}))
        interface = _interface(found)
    index = {"format": FORMAT, **interface, "codes": codes}
    return {INDEX: [json.dumps(index, indent=1).encode()], **files}


def _told(target: ObjectTarget, found: CompiledModel, digests: Mapping[str, str]) -> Mapping[str, Any]:
    """What the index says of code for one target."""
    isa = target.isa
    needs = {"instructions": isa.name, "architecture": isa.architecture, "needs": isa.needs}
    return {**needs, "system": target.system, "memory": found.memory, "keeps": bool(found.kept), "files": digests}


def _interface(found: CompiledModel) -> dict[str, Any]:
    arrays = [_array(name, fact) for name, fact in found.arrays]
    return {"inputs": arrays[: found.inputs], "outputs": arrays[found.inputs :]}


def _array(name: str, fact: TypedFact) -> list[Any]:
    return [name, [int(evaluate(size, {})) for size in fact.shape], fact.datum_type.storage.numpy.name]


def _best_last(targets: str) -> list[ObjectTarget]:
    """The targets of these names, each once."""
    found = {(target.isa.name, target.system): target for target in _named(targets)}
    order = [isa.name for isa in ISAS]
    return sorted(found.values(), key=lambda target: order.index(target.isa.name))


def _named(targets: str) -> Iterator[ObjectTarget]:
    names = [*filter(None, map(str.strip, targets.split(",")))]
    if not names:
        raise InputError(f"{targets!r} names no target", hint="as native, or x86-64-v3,aarch64")
    for target in map(target_named, names):
        if target.is_module:
            raise InputError("no Python runs code for the web", hint="'tract MODEL compile FILE.wasm' writes a module")
        yield target


def _for_linker(target: ObjectTarget) -> ObjectTarget:
    """The target as our own linker wants it on its system."""
    isa = target.isa
    triple, more = convention(isa.architecture, target.system)
    features = ",".join(filter(None, (isa.features, more)))
    return replace(target, isa=replace(isa, features=features), triple=triple)
