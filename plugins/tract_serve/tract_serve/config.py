"""What the folder of a model says of it: ``config.pbtxt`` or ``config.json``, as Triton's users write it.

All of it may be left out: the model tells the rest. What this project adds stands among the ``parameters``:

| key | value |
|---|---|
| ``runtime`` | a name, with options: ``cpu(threads=2)`` |
| ``threads`` | of each run |
| ``format`` | of the file, where its name does not tell it |
| ``facts`` | JSON: facts of inputs by name: ``{"image": "N,3,224,224,f32"}`` |
| ``transforms`` | JSON: what is done to the model, in order |
| ``pulse`` | ``S=160``: the model takes pulses of so many positions of the axis S |
| ``join`` | ``false``: each request is a run of its own |
| ``kind`` | what it is served as: ``tensors``; or ``text``, ``vectors``, ``scores`` of a model of texts |

Those of models of texts are in `tract_serve.chat.options`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_serve.batching.policy import MOST_ROWS, WaitingPolicy
from tract_serve.messages import message
from tract_serve.tensors.types import datatype_of

if TYPE_CHECKING:
    from tract_serve.batching.rows import RowAxes
    from tract_serve.settings import Settings
    from tract_serve.tensors.ports import Port, Signature

NAMES: Final = ("config.pbtxt", "config.json")
MOST_BYTES: Final = 1 << 20
"""Of such a file."""

PARAMETERS: Final = ("runtime", "threads", "format", "facts", "transforms", "pulse", "join", "kind")
"""Of any model."""

TEXT_PARAMETERS: Final = (
    *("texts", "pages", "remembered", "cache", "exact", "adapters", "draft", "draft_tokens", "tokenizer"),
    *("pooling", "end"),
)
"""Of models of texts: see `tract_serve.chat.options`."""


@frozen
class ModelConfig:
    """What is said of a model. ``told``: the message that it was read from.

    ``most_waiting``: requests that may wait, where it does not say. ``folder``: that it is of, if it is of one.
    """

    told: Any
    most_waiting: int = 1024
    folder: Path | None = None

    @staticmethod
    def nothing() -> ModelConfig:
        """Where nothing is said."""
        return ModelConfig(message("ModelConfig")())

    @staticmethod
    def of_folder(folder: Path) -> ModelConfig:
        """That of a folder. Raises CorruptModel for what is none."""
        for name in NAMES:
            path = folder / name
            if path.is_file():
                if path.stat().st_size > MOST_BYTES:
                    raise CorruptModel(
                        f"has {path.stat().st_size} bytes, at most {MOST_BYTES} are read", where=str(path)
                    )
                if name == "config.json" and not _says_a_model(path):
                    continue
                return replace(ModelConfig.of_text(path.read_text(errors="replace"), str(path)), folder=folder)
        return ModelConfig.nothing()

    @staticmethod
    def of_text(text: str, where: str) -> ModelConfig:
        """That of a text, in JSON or in the text form of protobuf. Raises CorruptModel."""
        from google.protobuf import json_format, text_format

        made: Any = message("ModelConfig")()
        try:
            if text.lstrip().startswith("{"):
                json_format.Parse(text, made, ignore_unknown_fields=True, max_recursion_depth=32)
            else:
                text_format.Parse(text, made, allow_unknown_field=True)
        except (json_format.ParseError, text_format.ParseError, RecursionError) as error:
            raise CorruptModel(
                f"is no configuration of a model: {error}", where=where, hint="see docs/serve.md"
            ) from None
        return ModelConfig(made).checked(where)

    def checked(self, where: str) -> ModelConfig:
        """Itself. Raises CorruptModel for a parameter that is not known, or is none."""
        for key in self.told.parameters:
            if key not in PARAMETERS + TEXT_PARAMETERS:
                known = ", ".join(PARAMETERS + TEXT_PARAMETERS)
                raise CorruptModel(
                    f"there is no parameter {key!r}; parameters: {known}", where=where, hint="see docs/serve.md"
                )
        _ = (self.facts, self.transforms, self.threads)  # each of which raises where it is none
        return self

    def parameter(self, name: str) -> str | None:
        """A parameter, as it is written; ``None`` where it is not said."""
        return self.told.parameters[name].string_value if name in self.told.parameters else None

    @property
    def runtime(self) -> str | None:
        """The runtime, with options."""
        return self.parameter("runtime")

    @property
    def kind(self) -> str | None:
        """What the model is served as, where it could be several things."""
        return self.parameter("kind")

    @property
    def format_name(self) -> str | None:
        """The format of the file."""
        return self.parameter("format")

    @property
    def threads(self) -> int | None:
        """Threads of each run."""
        given = self.parameter("threads")
        if given is not None and not (given.isdecimal() and int(given) > 0):
            raise CorruptModel(f"threads is {given!r}, wanted a number from 1 on", where="parameters")
        return None if given is None else int(given)

    @property
    def facts(self) -> dict[str, str]:
        """Facts of inputs, by name."""
        found = self._json("facts", dict)
        if not all(isinstance(fact, str) for fact in found.values()):
            raise CorruptModel("facts: wanted texts by the names of inputs", where="parameters")
        return found

    @property
    def transforms(self) -> list[str]:
        """Transforms, as `Model.transform` takes them."""
        found = [one if isinstance(one, str) else json.dumps(one) for one in self._json("transforms", list)]
        pulse = self.parameter("pulse")
        if pulse is None:
            return found
        symbol, _, size = pulse.rpartition("=")
        given = {"name": "pulse", "pulse": size, **({"symbol": symbol} if symbol else {})}
        return [*found, json.dumps(given)]

    @property
    def joins(self) -> bool:
        """Whether requests are joined, where the model allows it."""
        return self.parameter("join") != "false"

    @property
    def ragged(self) -> list[str]:
        """Inputs of which requests of different lengths are joined."""
        return [one.name for one in self.told.input if one.allow_ragged_batch]

    @property
    def has_sequences(self) -> bool:
        """Whether the server gives inputs in place of clients: the state of sequences, or which turn it is."""
        batching = self.told.sequence_batching
        return bool(batching.state or batching.control_input)

    def labels(self) -> dict[str, list[str]]:
        """What the classes of outputs are called, by output (``label_filename``). Raises CorruptModel."""
        return {one.name: self._lines(one.label_filename) for one in self.told.output if one.label_filename}

    def _lines(self, name: str) -> list[str]:
        path = None if self.folder is None or Path(name).name != name else self.folder / name
        if path is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
            problem = f"there is no file {name[:100]!r} of labels, or it has more than {MOST_BYTES} bytes"
            raise CorruptModel(problem, where=str(self.folder or "the configuration"))
        return path.read_text(errors="replace").splitlines()

    @property
    def filename(self) -> str:
        """The file in a version's folder, if it is said."""
        return self.told.default_model_filename

    def versions(self, there: list[int]) -> list[int]:
        """Those of the versions that are there that are served: the latest, unless something else is said."""
        policy = self.told.version_policy
        which = policy.WhichOneof("policy_choice")
        if which == "all":
            return sorted(there)
        if which == "specific":
            return sorted(set(there) & set(policy.specific.versions))
        count = policy.latest.num_versions if which == "latest" else 1
        return sorted(there)[-max(count, 1) :]

    def waiting(self, rows: RowAxes | None) -> WaitingPolicy:
        """How requests wait."""
        told, batching = self.told, self.told.dynamic_batching
        queue = batching.default_queue_policy
        timeout = queue.default_timeout_microseconds
        return WaitingPolicy(
            most_rows=told.max_batch_size if told.max_batch_size > 0 else MOST_ROWS,
            delay_s=batching.max_queue_delay_microseconds * 1e-6,
            most_waiting=queue.max_queue_size or self.most_waiting,
            timeout_s=timeout * 1e-6 if timeout else None,
            allows_timeout=queue.allow_timeout_override or not timeout,
            instances=max(1, sum(max(group.count, 1) for group in told.instance_group)),
            priority=max(1, batching.default_priority_level),
            levels=batching.priority_levels,
        )

    def check(self, signature: Signature, where: str) -> None:
        """Raises CorruptModel where what is said of inputs and outputs is not what the model has."""
        for what, given, ports in (
            ("input", self.told.input, signature.inputs),
            ("output", self.told.output, signature.outputs),
        ):
            there = {port.name: port for port in ports}
            for one in given:
                if one.name not in there:
                    raise CorruptModel(f"there is no {what} {one.name!r}; {what}s: {', '.join(there)}", where=where)
                self._check_port(one, there[one.name], f"{where}: {what} {one.name!r}")

    def _check_port(self, given: Any, port: Port, where: str) -> None:
        datatype = datatype_of(given.data_type)
        if given.data_type and datatype != port.datatype:
            raise CorruptModel(f"the configuration says {datatype}, the model {port.datatype}", where=where)
        sizes = port.sizes[1:] if self.told.max_batch_size > 0 else port.sizes
        dims, name = list(given.dims), "dims"
        if given.HasField("reshape"):
            _check_reshape(given, where)
            dims, name = list(given.reshape.shape), "reshape"
        fits = len(dims) == len(sizes) and all(a < 0 or b is None or a == b for a, b in zip(dims, sizes, strict=True))
        if not fits and (dims or name == "reshape"):
            raise CorruptModel(f"the configuration says {name} {dims}, the model has {port.shape}", where=where)

    def _json(self, name: str, kind: type) -> Any:
        text = self.parameter(name)
        if text is None:
            return kind()
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, kind):
            raise CorruptModel(f"{name} is {text[:60]!r}, wanted a {kind.__name__} of JSON", where="parameters")
        return found


def _check_reshape(given: Any, where: str) -> None:
    """Raises CorruptModel where there are not as many elements in both shapes, and as many sizes that may be any."""
    pairs = [[size for size in sizes if size >= 0] for sizes in (given.dims, given.reshape.shape)]
    free = len(given.dims) - len(pairs[0]), len(given.reshape.shape) - len(pairs[1])
    if prod(pairs[0]) != prod(pairs[1]) or free[0] != free[1]:
        problem = f"dims {list(given.dims)} and reshape {list(given.reshape.shape)} do not have as many elements"
        raise CorruptModel(problem, where=where)


def _says_a_model(path: Path) -> bool:
    """Whether a ``config.json`` is ours: folders of Hugging Face have files of that name, which say something else."""
    try:
        found = json.loads(path.read_text(errors="replace"))
    except (ValueError, RecursionError):
        return True  # which is then refused, and told
    return isinstance(found, dict) and "model_type" not in found and "architectures" not in found


def default_config(settings: Settings) -> ModelConfig:
    """That of a model of which nothing is said."""
    return ModelConfig(message("ModelConfig")(), settings.limits.waiting)
