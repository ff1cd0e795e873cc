"""How the values of flags are read. What no model could make right is a usage error, in words of its own.

What depends on the model, as whether it has an input of that name, is told when the model is there.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from tract_core.errors import DimError, FactError, InputError, TractError

if TYPE_CHECKING:
    from tract_core.dims import Dim
    from tract_core.dims.assertion import Assertion
    from tract_core.limits import LoadLimits
    from tract_core.lookalikes import Lookalike
    from tract_core.testing.tolerance import Tolerance

SEED: Final = 21242
"""The seed of random inputs, so that two runs see the same values."""


_HOLDS_VALUES: Final = r"(?is).*\.(npy|npz|png|jpe?g|gif|bmp|webp|tiff?|wav|mp3|flac|ogg|csv|txt|json|pt|pkl)"
"""Names of files in which people keep what goes into models. No fact ends so."""


IMAGES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
SOUNDS: Final = (".wav",)
HOLDS_INPUT: Final = (".npy", *IMAGES, *SOUNDS)
"""How the names of files end that are the value of an input."""


class NumberRange(click.FloatRange):
    """Numbers in a range, of which NaN is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter."""
        found: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is no number.", param, ctx) if math.isnan(found) else found


class ValueRange(NamedTuple):
    """Between which values random ones are taken. ``name``: that of an input; the empty one stands for all."""

    name: str
    low: float
    high: float


class Context(NamedTuple):
    """How many frames an input gets before or after its own. ``name``: that of the input; the empty one means all."""

    name: str
    frames: int


class Bindings(NamedTuple):
    """Values of symbols. ``helpers``: those that others were computed from, and that need not be in the model."""

    values: dict[str, int]
    helpers: frozenset[str]


def each(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback of a flag that may be repeated: each of its texts as ``read`` gives it."""
    return whole(lambda texts: tuple(map(read, texts)))


def whole(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback of a flag: its value as ``read`` gives it. What ``read`` refuses is a usage error."""

    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
        try:
            return None if value is None else read(value)
        except TractError as error:
            raise click.UsageError(str(error), ctx) from None

    return callback


def setting(text: str) -> tuple[str, Dim]:
    """``SYM=EXPR``: the symbol, as it is or written ``i"a=b"``, and the size that it becomes. Raises InputError."""
    from tract_core.dims import parse_dim
    from tract_core.dims.names import QUOTED, check_name, read_quoted

    quoted = re.match(rf"\s*({QUOTED})\s*=", text)
    name, equals, value = (part.strip() for part in text.partition("="))
    if quoted is not None:
        name, value = read_quoted(quoted[1]), text[quoted.end() :].strip()
    if not equals or not name or not value:
        raise InputError(f"--set {text!r} is not of the form SYM=VALUE", hint="as in --set B=1")
    try:
        check_name(name)
        dim = parse_dim(value)
    except DimError as error:
        raise InputError(f"--set {text}: {error.problem}", hint="as in --set B=1") from None
    if isinstance(dim, int) and dim < 0:
        raise InputError(f"--set {text}: a size is not negative", hint="sizes are 0 or more")
    return name, dim


def bindings(texts: Sequence[str]) -> Bindings:
    """``SYM=INT`` each; later ones may use earlier ones. Raises InputError for values that are no numbers."""
    from tract_core.dims import evaluate, symbols_of

    values: dict[str, int] = {}
    helpers: frozenset[str] = frozenset()
    for text in texts:
        name, dim = setting(text)
        unknown = symbols_of(dim) - values.keys()
        if unknown:
            problem = f"--set {text}: {', '.join(sorted(unknown))} is no number"
            raise InputError(problem, hint="random inputs need sizes in numbers, as in --set B=2")
        try:
            values[name] = evaluate(dim, values)
        except DimError as error:
            raise InputError(f"--set {text}: {error.problem}") from None
        if values[name] < 0:
            raise InputError(f"--set {text}: a size is not negative, and this is {values[name]}")
        helpers |= symbols_of(dim)
    return Bindings(values, helpers)


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of ``0.485,0.456,0.406``. Raises InputError."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = (math.nan,)
    if not all(map(math.isfinite, found)):
        raise InputError(f"{text!r} is no list of numbers", hint="as in --image-mean 0.485,0.456,0.406")
    return found


def factors(text: str) -> tuple[float, ...]:
    """The same, without zeros. Raises InputError."""
    found = numbers(text)
    if not all(found):
        raise InputError(f"{text!r} has a zero in it, and images are divided by these numbers")
    return found


def assertion(text: str) -> Assertion:
    """What is assumed of sizes, as ``S>=1``. Raises InputError."""
    from tract_core.dims.assertion import parse_assertion

    try:
        return parse_assertion(text)
    except DimError as error:
        raise InputError(f"--assert {text!r}: {error.problem}", hint="as in --assert 'S>=1'") from None


def input_text(text: str) -> str:
    """``[NAME:]FACT[=VALUES]`` or ``NAME=FILE.npy``, as it is: names are told apart when the model is there.

    Raises InputError where that can be no fact, however long the name is, and for a file that is not there.
    """
    given = array_file(text)
    if given is None:
        _check_no_file(text)
        _check_fact("--input", text)
    elif not given[1].is_file():
        raise InputError(f"--input {text!r}: there is no file {str(given[1])!r}")
    return text


def override_text(text: str) -> str:
    """``NAME:FACT``, as it is. Raises InputError where that can be none."""
    if ":" not in text:
        raise InputError(f"--override-fact {text!r} names no tensor", hint="write it as NAME:1,3,S,f32")
    _check_fact("--override-fact", text)
    return text


def output_text(text: str) -> str:
    """``[NAME:]FACT=VALUES``, as it is. Raises InputError where that can be none."""
    if "=" not in text:
        raise InputError(f"--assert-output {text!r} is not [NAME:]FACT=VALUES", hint="as in '2,f32=1.0,2.0'")
    _check_fact("--assert-output", text)
    return text


def output_fact(text: str) -> str:
    """A fact, as it is. Raises InputError where it is none, or lacks a size or the element type."""
    from tract_core.model.fact_text import parse_inference_fact, parse_typed_fact

    wrong = _problem(text, parse_inference_fact)
    if wrong is not None:
        raise _no_fact("--assert-output-fact", text, wrong)
    partial = _problem(text, parse_typed_fact)
    if partial is not None:
        raise InputError(f"--assert-output-fact {text!r}: {partial.problem}", hint=partial.hint)
    return text


def array_file(text: str) -> tuple[str, Path] | None:
    """The name and the file of ``NAME=FILE.npy``, or of an image or a sound; ``None`` for another text.

    Where there are several equals signs, the first counts behind which a file is that exists.
    """
    if not text.lower().endswith(HOLDS_INPUT):
        return None
    halves = [(text[:at], Path(text[at + 1 :])) for at, sign in enumerate(text) if sign == "=" and at]
    return next((half for half in halves if half[1].is_file()), halves[0] if halves else None)


def _check_no_file(text: str) -> None:
    """Refuse the name of a file that holds no array, as of an image: no fact is written so."""
    for path in (*(text[at + 1 :] for at, sign in enumerate(text) if sign in "=:"), text):
        if os.path.isfile(path):
            raise InputError(f"--input {text!r}: {what_else(path)}", hint=how_values_are_given(path))
        if re.fullmatch(_HOLDS_VALUES, path):
            raise InputError(f"--input {text!r}: there is no file {path!r}", hint=how_values_are_given(path))


def what_else(path: str) -> str:
    """What a file is that holds no arrays, as a sentence."""
    known = _lookalike(path)
    return f"{path!r} is {known.what}" if known else f"{path!r} is no .npy file"


def how_values_are_given(path: str) -> str:
    """How a file becomes the values of an input."""
    known = _lookalike(path)
    asked = "numpy.save('FILE.npy', array) writes an array, which --input NAME=FILE.npy takes for the input NAME"
    return known.as_values if known and known.as_values else asked


def _lookalike(path: str) -> Lookalike | None:
    from tract_core.lookalikes import HEAD, recognise

    try:
        with Path(path).open("rb") as file:
            return recognise(file.read(HEAD), Path(path).name)
    except OSError:
        return None


def _check_fact(flag: str, text: str) -> None:
    """Refuse a text of which no part behind a colon is a fact, nor the whole."""
    from tract_core.model.fact_text import parse_inference_fact

    parts = text.partition("=")[0].split(":")
    last = _problem(parts[-1], parse_inference_fact)
    if last is not None and all(_problem(":".join(parts[start:]), parse_inference_fact) for start in range(len(parts))):
        raise _no_fact(flag, text, last)


def _problem(fact: str, parse: Callable[[str], object]) -> TractError | None:
    try:
        parse(fact)
    except (FactError, DimError) as error:
        return error
    return None


def _no_fact(flag: str, text: str, error: TractError) -> InputError:
    place = f"{error.where}: " if error.where else ""
    problem = f"{flag} {text!r} is no fact: {place}{error.problem}"
    return InputError(problem, hint=error.hint or "write it as in '1,3,S,f32'")


def random_range(text: str) -> ValueRange:
    """``[NAME=]A..B``. Raises InputError."""
    name, _, interval = text.rpartition("=")
    low, _, high = interval.partition("..")
    try:
        found = ValueRange(name, float(low), float(high))
    except ValueError:
        problem = f"--random-range {text!r} is not of the form [NAME=]A..B"
        raise InputError(problem, hint="as in --random-range 0..5") from None
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        raise InputError(f"--random-range {text!r}: both ends must be finite numbers")
    if found.low > found.high:
        raise InputError(f"--random-range {text!r} is empty: {low} is more than {high}", hint=f"write {high}..{low}")
    return found


def context(text: str) -> Context:
    """``[NAME=]FRAMES``. Raises InputError."""
    name, _, count = text.rpartition("=")
    if not (count.isascii() and count.isdecimal()):
        raise InputError(f"{text!r} is no number of frames, and not of the form NAME=FRAMES", hint="as in 5, or x=5")
    return Context(name, int(count))


def limits(texts: Sequence[str]) -> LoadLimits | None:
    """The default limits with what ``texts`` say, as ``max_nodes=5000``; ``None`` without any. Raises InputError."""
    if not texts:
        return None
    from dataclasses import replace

    from tract_core.limits import DEFAULT_LIMITS

    return replace(DEFAULT_LIMITS, **dict(map(_limit, texts)))


def _limit(text: str) -> tuple[str, Any]:
    from dataclasses import fields

    from tract_core.limits import LoadLimits

    name, equals, number = text.partition("=")
    known = {field.name for field in fields(LoadLimits)}
    if not equals or name.strip() not in known:
        raise InputError(
            f"--limit {text!r} is not of the form NAME=NUMBER with one of the names {', '.join(sorted(known))}",
            hint="as in --limit max_bytes=1e9 --limit deadline_s=10",
        )
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise InputError(f"--limit {text!r}: {number!r} is no number that is 0 or more")
    return name.strip(), value if name.strip().endswith("_s") else _counted(text, value)


def _counted(text: str, value: float) -> int:
    if not value.is_integer():
        raise InputError(f"--limit {text!r}: it is counted in whole numbers")
    return int(value)


def transform(text: str) -> str:
    """A transform as the library takes it: a name, ``NAME(key=value, ...)``, or JSON. Raises InputError."""
    import json

    from tract_core.plugins.parameters import parse_call

    try:
        json.loads(text) if text.lstrip().startswith("{") else parse_call(text)
    except json.JSONDecodeError as error:
        raise InputError(f"--transform {text!r}: {error.msg}", hint='as in {"name": "set_symbols", ...}') from None
    except InputError as error:
        raise InputError(f"--transform {error.problem}", hint=error.hint) from None
    return text


def tolerance(text: str) -> Tolerance:
    """``ATOL,RTOL,OUTLIERS``. Raises InputError where it is not that, and where everything would be close enough."""
    from tract_core.testing.tolerance import Tolerance

    try:
        absolute, relative, outliers = map(float, text.split(","))
    except ValueError:
        raise InputError(f"--approx-custom {text!r} is not ATOL,RTOL,OUTLIERS", hint="as in 1e-4,5e-4,0") from None
    if not (0 <= absolute < math.inf and 0 <= relative < math.inf and 0 <= outliers < 1):
        raise InputError(
            f"--approx-custom {text!r} is no tolerance",
            hint="ATOL and RTOL are finite and not negative; OUTLIERS is a share, from 0 to below 1",
        )
    return Tolerance(absolute, relative, outliers)
