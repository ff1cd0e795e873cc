"""Read files of lines."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from tract_core.analysis.findings import Examination
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_inference_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
from tract_lines.words import OPERATORS


class Reader:
    """The format. ``default_type``: of inputs that name none. ``limits``: what a file may ask for."""

    def __init__(self, default_type: str = "f32", limits: LoadLimits = DEFAULT_LIMITS) -> None:
        self._default_type = default_type
        self._limits = limits

    def load(self, path: Path) -> TypedModel:
        """The model of a file. Raises CorruptModel or Unsupported for the first line that is wrong, LimitExceeded."""
        return _whole(self._read(self._content(path), str(path)))

    def load_bytes(self, content: bytes) -> TypedModel:
        """The model in a file's content; else like `load`."""
        return _whole(self._read(content, "model"))

    def examine(self, path: Path) -> Examination:
        """Every line that is wrong, for ``tract MODEL doctor``."""
        return self._read(self._content(path), str(path))

    def _content(self, path: Path) -> bytes:
        size = path.stat().st_size
        if size > self._limits.max_bytes:
            raise LimitExceeded(f"it has {size} bytes, allowed are {self._limits.max_bytes}", where=str(path))
        return path.read_bytes()

    def _read(self, content: bytes, where: str) -> Examination:
        model, named = TypedModel(), dict[str, OutletId]()
        outputs: list[OutletId] = []
        problems: list[TractError] = []
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            try:
                self._take(line.partition("#")[0].split(), model, named, outputs)
            except TractError as error:
                problems.append(error.at(f"{where}: line {number}"))
        model.set_outputs(outputs)
        if not outputs and not problems:
            problems.append(CorruptModel("it has no output", where=where, hint="end it with a line 'output NAME'"))
        return Examination(None if problems else model, tuple(problems), about={"format": "lines"})

    def _take(self, words: list[str], model: TypedModel, named: dict[str, OutletId], outputs: list[OutletId]) -> None:
        """One line: an input, an output, or a node."""
        match words:
            case []:
                return
            case ["input", name, fact] if name.endswith(":"):
                named[name[:-1]] = model.add_source(name[:-1], self._fact(fact, model))
            case ["output", *names] if names:
                outputs += [_known(name, named) for name in names]
            case [name, "=", word, *names]:
                if word not in OPERATORS:
                    near = get_close_matches(word, OPERATORS, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(OPERATORS)}"
                    raise Unsupported(f"there is no operator {word!r}", hint=hint)
                inputs = [_known(one, named) for one in names]
                named[name] = wire_one(model, name, OPERATORS[word], *inputs)
            case _:
                form = "'input NAME: FACT', 'NAME = OPERATOR NAMES' or 'output NAMES'"
                raise CorruptModel(f"{' '.join(words)!r} is no line of the format", hint=f"write {form}")

    def _fact(self, text: str, model: TypedModel) -> TypedFact:
        fact = parse_inference_fact(text, model.symbols)
        whole = text if fact.datum_type is not None else f"{text},{self._default_type}"
        return parse_inference_fact(whole, model.symbols).to_typed()


def _whole(found: Examination) -> TypedModel:
    if found.problems:
        raise found.problems[0]
    assert isinstance(found.model, TypedModel)  # there is one where nothing is wrong
    return found.model


def _known(name: str, named: dict[str, OutletId]) -> OutletId:
    if name not in named:
        raise CorruptModel(
            f"nothing is named {name!r} before this line", hint=f"there are {', '.join(named) or 'none'}"
        )
    return named[name]
