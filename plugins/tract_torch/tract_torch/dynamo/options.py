"""What there is to choose with ``torch.compile(module, backend="tract", options={...})``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

from tract_core.api.runtime import Runtime, runtime_for_name, runtime_with
from tract_core.errors import InputError, meant
from tract_core.frozen import frozen
from tract_torch.arguments import of_type

DEFAULT_RUNTIME = "default"


@frozen
class Options:
    """``runtime``: a name, with options in it as ``cpu(threads=1)``, or a `Runtime`.

    ``fallback``: whether a graph that cannot be taken runs in PyTorch, with a warning; else it raises.
    ``transforms``: applied to the model of every graph, in order, as `Model.transform` takes them.
    """

    runtime: str | Runtime = DEFAULT_RUNTIME
    fallback: bool = True
    transforms: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, mode: str | None) -> Options:
        """Raises InputError for an option that there is not, and for values of other types."""
        if mode not in (None, "default"):
            hint = "leave it out; options={'runtime': 'cpu(threads=1)'} chooses the runtime"
            raise InputError(f"mode={mode!r} is one of PyTorch's own compiler", where="torch.compile", hint=hint)
        options: dict[str, Any] = dict(of_type(given or {}, Mapping, "options", "a mapping"))
        known = list(cls.__dataclass_fields__)
        for name in options:
            if name not in known:
                near = meant(str(name), known)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise InputError(f"there is no option {name!r}", where="torch.compile", hint=hint)
        of_type(options.get("runtime", ""), (str, Runtime), "the option 'runtime'", "a name or a Runtime")
        of_type(options.get("fallback", True), bool, "the option 'fallback'", "True or False")
        options["transforms"] = _transforms(options.get("transforms", ()))
        return cls(**options)

    def found_runtime(self) -> Runtime:
        """The runtime; of one that may use threads, with as many as PyTorch uses. Raises as `runtime_for_name`."""
        if isinstance(self.runtime, Runtime):
            return self.runtime
        name = runtime_for_name(self.runtime).name() if self.runtime == DEFAULT_RUNTIME else self.runtime
        threads = None if "TRACT_THREADS" in os.environ else torch.get_num_threads()
        return runtime_with(name, threads=threads)


def _transforms(given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    found = cast("Sequence[Any]", of_type(given, (list, tuple), "the option 'transforms'", "a list of texts"))
    return tuple(of_type(one, str, "a transform", "a text, as 'f32_to_f16'") for one in found)
