"""Machine code of a model beside it in an archive: `tract_cpu.archived` says what is where, and takes it from there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from sys import platform
from typing import Any, Final

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
from tract_cpu.ahead.targets import NATIVE, WASM, ObjectTarget, target_named
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
        found = compile_model(normal, target, NAME, apart=True)
        code, constants = bytes(found.code), found.constants
        names = [f"{target.name}.o", f"{target.name}.bin"]
        files |= {names[0]: [code], names[1]: constants}
        codes.append(_told(target, found, dict(zip(names, map(digest_of_bytes, ([code], constants)), strict=True))))
        interface = _interface(found)
    index = {"format": FORMAT, **interface, "codes": codes}
    return {INDEX: [json.dumps(index, indent=1).encode()], **files}


def _told(target: ObjectTarget, found: CompiledModel, digests: Mapping[str, str]) -> Mapping[str, Any]:
    """What the index says of code for one target."""
    isa, (_, system) = target.isa, target.name.rsplit("-", 1)
    needs = {"instructions": isa.name, "architecture": isa.architecture, "needs": isa.needs, "system": system}
    return {**needs, "memory": found.memory, "keeps": bool(found.kept), "files": digests}


def _interface(found: CompiledModel) -> dict[str, Any]:
    arrays = [_array(name, fact) for name, fact in found.arrays]
    return {"inputs": arrays[: found.inputs], "outputs": arrays[found.inputs :]}


def _array(name: str, fact: TypedFact) -> list[Any]:
    return [name, [int(evaluate(size, {})) for size in fact.shape], fact.datum_type.storage.numpy.name]


_SYSTEMS: Final[Mapping[str, str]] = {"-windows": "win32", "-macos": "darwin"}
"""Python's names of systems, by what targets end with; Linux for those with nothing."""


def _best_last(targets: str) -> list[ObjectTarget]:
    """The targets of these names, for our own linker, each once."""
    found = {target.name: target for target in map(_for_linker, _named(targets))}
    order = [isa.name for isa in ISAS]
    return sorted(found.values(), key=lambda target: order.index(target.isa.name))


def _named(targets: str) -> Iterator[ObjectTarget]:
    names = [*filter(None, map(str.strip, targets.split(",")))]
    if not names:
        raise InputError(f"{targets!r} names no target", hint="as native, or x86-64-v3,aarch64")
    for name in names:
        if name == WASM:
            raise InputError("no Python runs code for the web", hint="'tract MODEL compile FILE.wasm' writes a module")
        yield target_named(name)


def _for_linker(target: ObjectTarget) -> ObjectTarget:
    """The target as our own linker wants it on its system, under the name of its instructions and of that."""
    isa = target.isa
    ends = next((system for end, system in _SYSTEMS.items() if target.name.endswith(end)), "linux")
    system = platform if target.name == NATIVE else ends
    triple, more = convention(isa.architecture, system)
    features = ",".join(filter(None, (isa.features, more)))
    return ObjectTarget(f"{isa.name}-{system}", replace(isa, features=features), triple)
