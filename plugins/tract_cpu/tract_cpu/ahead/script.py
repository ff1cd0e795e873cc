"""The JavaScript that loads a compiled model, in browsers and elsewhere, and its types for TypeScript."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import Unsupported
from tract_core.model.fact import TypedFact
from tract_cpu.ahead.glue import function_names
from tract_cpu.ahead.object_file import CompiledModel
from tract_cpu.ahead.wasm import HEAP
from tract_cpu.aligned import ALIGNMENT

_ARRAYS: Final[Mapping[DatumType, str]] = {
    DatumType.BOOL: "Uint8Array",
    DatumType.F16: "Uint16Array",
    DatumType.BF16: "Uint16Array",
    DatumType.F32: "Float32Array",
    DatumType.F64: "Float64Array",
    DatumType.I8: "Int8Array",
    DatumType.I16: "Int16Array",
    DatumType.I32: "Int32Array",
    DatumType.I64: "BigInt64Array",
    DatumType.U8: "Uint8Array",
    DatumType.U16: "Uint16Array",
    DatumType.U32: "Uint32Array",
    DatumType.U64: "BigUint64Array",
}
"""What holds elements; halves as their bits."""

_SCRIPT: Final = """\
// @NAME@: a model, compiled by tract. What is given and found lies row by row.

export const inputs = @INPUTS@;
export const outputs = @OUTPUTS@;

const ARGUMENTS = @ARGUMENTS@; // of objects, names that are numbers come first
const ALIGNMENT = @ALIGNED@;
const MEMORY = @BYTES@;

const HERE = import.meta.url; // by a name, as bundlers take what is written with it for a file to bring along

async function read(source) {
  const place = new URL(source, HERE);
  if (place.protocol === "file:") {
    const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
    return readFile(place);
  }
  const response = await fetch(place);
  if (!response.ok) throw new Error(`${place}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

/** Load the model: from its bytes, or from where they are, which is beside this file if nothing else is said. */
export async function load(source = new URL(@FILE@, import.meta.url)) {
  const isThere = source instanceof ArrayBuffer || ArrayBuffer.isView(source);
  const { instance } = await WebAssembly.instantiate(isThere ? source : await read(source), {});
  return new Model(instance.exports);
}

@MODEL@"""

_MODEL: Final = """\
export class Model {
  #functions;
  #memory;
  #places = new Map();

  constructor(functions) {
    this.#functions = functions;
    const aligned = (place) => Math.ceil(place / ALIGNMENT) * ALIGNMENT;
    this.#memory = aligned(functions.@HEAP@.value);
    let end = this.#memory + MEMORY;
    for (const name of ARGUMENTS) {
      const { size, array } = { ...inputs, ...outputs }[name];
      this.#places.set(name, aligned(end));
      end = aligned(end) + size * array.BYTES_PER_ELEMENT;
    }
    const lacks = end - functions.memory.buffer.byteLength;
    if (lacks > 0) functions.memory.grow(Math.ceil(lacks / 65536));
    this.start();
  }

  /** Begin anew: nothing was run yet. */
  start() {
    this.#functions.@START@(this.#memory);
  }

  /** Run the model on arrays by the names of inputs. Gives new arrays by the names of outputs. */
  run(given) {
    for (const [name, { size, shape }] of Object.entries(inputs)) {
      const found = given[name];
      if (found === undefined) throw new RangeError(`there is no input ${name}`);
      const wanted = `${size}, [${shape}]`;
      if (found.length !== size) throw new RangeError(`${name} has ${found.length} elements, wanted ${wanted}`);
      this.#array(name, inputs[name]).set(found);
    }
    if (this.#functions.@RUN@(this.#memory, ...this.#places.values()) !== 0) {
      throw new Error("the model could not be run, as an index is beyond its axis");
    }
    return Object.fromEntries(Object.entries(outputs).map(([name, one]) => [name, this.#array(name, one).slice()]));
  }

  #array(name, { array, size }) {
    return new array(this.#functions.memory.buffer, this.#places.get(name), size);
  }
}
"""

_OPEN_MODEL: Final = """\
const SIZES = @SIZES@;
const AXES = @AXES@;

export class Model {
  #functions;
  #shapes; // where these are written
  #memory;

  constructor(functions) {
    this.#functions = functions;
    this.#shapes = aligned(functions.@HEAP@.value);
    this.#memory = aligned(this.#shapes + AXES * BigInt64Array.BYTES_PER_ELEMENT);
    this.#reach(this.#memory + MEMORY);
    this.start();
  }

  /** Begin anew: nothing was run yet. */
  start() {
    this.#functions.@START@(this.#memory);
  }

  /** The shapes of all inputs and outputs, by their names, of a run with such sizes. */
  shapes(sizes) {
    if (this.#functions.@SHAPES@(...values(sizes), this.#shapes) !== 0) throw unfit(sizes);
    const found = Array.from(new BigInt64Array(this.#functions.memory.buffer, this.#shapes, AXES), Number);
    const ranks = ARGUMENTS.map((name) => [name, tensor(name).shape.length]);
    return new Map(ranks.map(([name, rank]) => [name, found.splice(0, rank)]));
  }

  /** Run the model on arrays by the names of inputs, with such sizes. Gives new arrays by the names of outputs. */
  run(given, sizes) {
    const shapes = this.shapes(sizes);
    const asked = values(sizes);
    const bytes = Number(this.#functions.@MEMORY@(...asked));
    if (bytes === 0) throw unfit(sizes);
    const places = new Map();
    let end = this.#memory + bytes;
    for (const [name, shape] of shapes) {
      const size = shape.reduce((all, one) => all * one, 1);
      places.set(name, [aligned(end), size]);
      end = aligned(end) + size * tensor(name).array.BYTES_PER_ELEMENT;
    }
    this.#reach(end);
    const at = (name) => new (tensor(name).array)(this.#functions.memory.buffer, ...places.get(name));
    for (const name of Object.keys(inputs)) {
      const found = given[name];
      if (found === undefined) throw new RangeError(`there is no input ${name}`);
      const wanted = `${places.get(name)[1]}, [${shapes.get(name)}]`;
      if (found.length !== places.get(name)[1]) {
        throw new RangeError(`${name} has ${found.length} elements, wanted ${wanted}`);
      }
      at(name).set(found);
    }
    const addresses = ARGUMENTS.map((name) => places.get(name)[0]);
    if (this.#functions.@RUN@(this.#memory, ...asked, ...addresses) !== 0) {
      throw new Error("the model could not be run, as an index is beyond its axis");
    }
    return Object.fromEntries(Object.keys(outputs).map((name) => [name, at(name).slice()]));
  }

  #reach(end) {
    const lacks = end - this.#functions.memory.buffer.byteLength;
    if (lacks > 0) this.#functions.memory.grow(Math.ceil(lacks / 65536));
  }
}

function aligned(place) {
  return Math.ceil(place / ALIGNMENT) * ALIGNMENT;
}

function tensor(name) {
  return Object.hasOwn(inputs, name) ? inputs[name] : outputs[name];
}

function values(sizes) {
  return SIZES.map((name) => {
    if (!Number.isSafeInteger(sizes?.[name])) throw new RangeError(`there is no size ${name}, or it is no integer`);
    return BigInt(sizes[name]);
  });
}

function unfit(sizes) {
  return new RangeError(`sizes cannot be ${SIZES.map((name) => `${name}=${sizes[name]}`).join(", ")}`);
}
"""

_TYPES: Final = """\
// @NAME@: a model, compiled by tract. What is given and found lies row by row.

export interface Inputs {
@INPUTS@}
export interface Outputs {
@OUTPUTS@}
@TENSOR@export const inputs: Readonly<Record<keyof Inputs, Tensor>>;
export const outputs: Readonly<Record<keyof Outputs, Tensor>>;

/** Load the model: from its bytes, or from where they are, which is beside this file if nothing else is said. */
export function load(source?: ArrayBuffer | ArrayBufferView | string | URL): Promise<Model>;

export class Model {
  private constructor();
  /** Begin anew: nothing was run yet. */
  start(): void;
@METHODS@}
"""

_FIXED_TYPES: Final = {
    "TENSOR": """\
interface Tensor {
  readonly shape: readonly number[];
  readonly size: number;
}
""",
    "METHODS": """\
  /** Run the model on arrays by the names of inputs. Gives new arrays by the names of outputs. */
  run(given: Inputs): Outputs;
""",
}
_OPEN_TYPES: Final = {
    "TENSOR": """\
/** Sizes that each run is given. */
export interface Sizes {
@SIZES@}
interface Tensor {
  readonly shape: readonly (number | string)[];
}
""",
    "METHODS": """\
  /** The shapes of all inputs and outputs, by their names, of a run with such sizes. */
  shapes(sizes: Sizes): Map<keyof Inputs | keyof Outputs, number[]>;
  /** Run the model on arrays by the names of inputs, with such sizes. Gives new arrays by the names of outputs. */
  run(given: Inputs, sizes: Sizes): Outputs;
""",
}


def script_text(found: CompiledModel, file: str) -> str:
    """A module of JavaScript. ``file``: the name of the module of WebAssembly, which is beside it."""
    names, (given, gives) = function_names(found.name, is_open=bool(found.sizes)), _tensors(found)
    values = {
        "NAME": found.name,
        "INPUTS": _object(given),
        "OUTPUTS": _object(gives),
        "ARGUMENTS": json.dumps([name for name, _ in found.arrays]),
        "ALIGNED": str(ALIGNMENT),
        "BYTES": str(found.memory),
        "FILE": json.dumps(f"./{file}"),
        "HEAP": HEAP,
        "SIZES": json.dumps(found.sizes),
        "AXES": str(sum(len(fact.shape) for _, fact in found.arrays)),
        **{key.upper(): name for key, name in names.items()},
    }
    return _filled(_SCRIPT.replace("@MODEL@", _OPEN_MODEL if found.sizes else _MODEL), values)


def types_text(found: CompiledModel) -> str:
    """Its types."""
    given, gives = (
        "".join(f"  {json.dumps(name)}: {_array(fact)}; // {_shape(fact)}\n" for name, fact in one)
        for one in _tensors(found)
    )
    sizes = "".join(f"  {json.dumps(name)}: number;\n" for name in found.sizes)
    text = _filled(
        _TYPES, {"NAME": found.name, "INPUTS": given, "OUTPUTS": gives, **(_OPEN_TYPES if sizes else _FIXED_TYPES)}
    )
    return text.replace("@SIZES@", sizes)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub("@([A-Z]+)@", lambda found: values[found[1]], text)


def _tensors(found: CompiledModel) -> tuple[Sequence[tuple[str, TypedFact]], Sequence[tuple[str, TypedFact]]]:
    """The inputs, and the outputs. Raises Unsupported where two have one name, as an output that is an input."""
    names = [name for name, _ in found.arrays]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Unsupported(f"several inputs or outputs are called {', '.join(twice)}", hint="write FILE.o")
    return found.arrays[: found.inputs], found.arrays[found.inputs :]


def _object(tensors: Sequence[tuple[str, TypedFact]]) -> str:
    lines = [f"  [{json.dumps(name)}]: {{ {_told(fact)}, array: {_array(fact)} }},\n" for name, fact in tensors]
    return f"{{\n{''.join(lines)}}}"


def _told(fact: TypedFact) -> str:
    """The shape, and where it is known, how many elements there are."""
    size = f", size: {fact.shape.volume}" if fact.shape.is_concrete else ""
    return f"shape: {_shape(fact)}{size}"


def _array(fact: TypedFact) -> str:
    return _ARRAYS[fact.datum_type.storage]


def _shape(fact: TypedFact) -> str:
    """As JavaScript has it, with open sizes as texts."""
    return json.dumps([str(size) if is_symbolic(size) else int(size) for size in fact.shape])
