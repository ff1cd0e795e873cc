"""Write docs/onnx.md, from what is registered and a run of ONNX's backend tests: ``python docs/generate_onnx.py``."""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import ast
import dataclasses
import re
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import onnx
from tract_onnx import plugin
from tract_onnx.frontend import NEWEST
from tract_onnx.ops.refused import REASONS
from tract_onnx.registry import ONNX
from tract_onnx.tensors import ELEMENT_TYPES

from tract_core.limits import LoadLimits
from tract_core.plugins import default_registry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "onnx.md"
sys.path.insert(0, str(ROOT / "plugins" / "tract_onnx" / "tests"))

Passed = dict[str, Counter[str]]
"""For each operator, as ``domain/OpType``, how many tests with it in their model had which outcome."""


_WRITING = """\
## Writing

```console
$ tract examples/digits/digits.onnx save /tmp/simplified.onnx
```

`Model.save("out.onnx")` and `tract MODEL save out.onnx` write a model, whichever format it came from, as it is at
that stage: by `save` in normal form, so that it is simpler than what was read, and with its transforms applied.
Inputs and outputs keep their names, and sizes that are symbols are `dim_param`s.

| option | on the command line | what |
|---|---|---|
| `opset=21` | `--onnx-opset 21` | the version of the operators, 17 to 26 |
| `external_data=True` | `--onnx-external-data` | tensors in a file beside, `out.onnx.data`; always above 2 GB |

What is written passes ONNX's own checks, or is refused, with all nodes that ONNX has no words for at once. What ONNX
has one operator for is that operator again, whatever it was in the model: `LayerNormalization`,
`InstanceNormalization`, `Gemm`, `GlobalAveragePool`, `LSTM`, `GRU`, `RNN` (both directions in one), `Gelu`, `Elu`,
`Selu`, `Celu`, `Mish`, `Softplus`, `HardSigmoid`, `HardSwish`, `PRelu`, `Clip`, `Split`, `DepthToSpace`, `Resize`,
`STFT`; where the version that is asked for has it, and where it computes the same: in f32, as a rule, as f64 would be
normalised in f32, and products of f16 are rounded before something is added. What only looks (`CheckShape`) is
left out.

**Of ONNX's cases** 4,000 of 4,024 come back as they must when ONNX Runtime, or the package `onnx` where that has no
kernel, runs what was written; so do all files of `make test-shipped`, and the networks that `make test-networks` has
PyTorch export, in versions 17, 21 and 23. `make bench-simplifiers` has the number of nodes, the bytes and ONNX
Runtime's time beside those of `onnxsim` and `onnxslim`: of 27 networks and trained files, ours had the fewest bytes
in 26, and the fewest nodes, or as few, in 22 (more in networks that lay channels side by side and cut them again,
as YOLO does). Runs took no more than 1.05 of the time of the faster one in all but three, on a machine that others
used as well: 1.07 in two detectors, and in one that takes a tenth of the time of the file as it was.

**Quantised products** are written as other engines know them, integers right in front of what multiplies them, so that
they run there as the originals do; what is quantised as it comes is `DynamicQuantizeLinear`, `ConvInteger` and
`MatMulInteger`. Tables of bytes that are none of a few functions (`Sigmoid`, `Tanh`, `HardSwish`, SiLU, with its
sigmoid rounded to bytes or not, `LeakyRelu`) are `Gather`, which ONNX Runtime runs several times slower.

**Models in pulses** (`tract MODEL --pulse 8 save stream.onnx`) keep something between runs, and ONNX does not: each
state is an input `NAME`, and an output `NAME_out` that is given to it in the next run. All are 0 at first; a size of a
state that is an expression is what it is with nothing in front (0 for what grows). Where the end of the signal
matters, an input with the name of the signal's symbol, i64 of shape [1], says how long it is: until that is known, a
number above all that has come.

**What a model says about itself** (`model.properties`) goes along: `onnx.metadata_props.KEY` as a pair of the file,
`doc_string`, `domain` and `model_version` as its fields, and what other formats said as pairs `tract.NAME`, which come
back as what they were. Who wrote the file is `tract`.

Not written: what models keep in bodies of loops and branches, exponential means of streams (`ExpUnitNorm`), types that
ONNX has no operator for; caches of language models are inputs and outputs after the transform `unfold_kv_cache`, and
are written then. A branch that ends the run (`Refuse`) is a `Gather` of a place that is not there, which ONNX Runtime
refuses when it comes to it.
"""


def page(modes: dict[str, Counter[str]], operators: Passed) -> str:
    """The page. ``modes``: how many tests had which outcome, in each mode."""
    parts = [_introduction(), _conformance(modes), _shipped(), _refused(), _operators(operators), _types(), _options()]
    parts.append(_limits())
    return "\n".join("\n".join(part) for part in parts)


def registered() -> dict[str, dict[str, list[int]]]:
    """By domain and operator: the versions of the operator set from which its rows hold, those that refuse left out."""
    found: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for key in default_registry()[ONNX].rows():
        if key not in REASONS:
            domain, name, since = key.rsplit("/", 2)
            found[domain].setdefault(name, []).append(int(since))
    return {domain: {name: sorted(rows[name]) for name in sorted(rows)} for domain, rows in sorted(found.items())}


def _introduction() -> Iterator[str]:
    yield "# ONNX\n"
    yield "<!-- Written by docs/generate_onnx.py: change that, and run it. -->\n"
    yield from _wrapped(
        f"""Files of every version of the operator set are read, 1 to {NEWEST}. `tract MODEL doctor` lists all that
        stands in the way of one, with what to do about it."""
    )
    yield EXAMPLE
    yield "## How a file is taken\n"
    for item in HABITS:
        yield from textwrap.wrap(" ".join(item.split()), 120, initial_indent="- ", subsequent_indent="  ")
    yield ""


EXAMPLE: Final = """\
```python
from pathlib import Path
import numpy as np
import onnx
import tract_core as tract
from tract_onnx import backend

path = Path("examples/digits/digits.onnx")
image = np.zeros((1, 1, 8, 8), np.float32)

model = tract.onnx().load(path)  # with the files beside it that hold its weights, if any
model = tract.onnx().load_bytes(path.read_bytes())  # or from memory
model = tract.onnx().load(onnx.load(path))  # or of an onnx.ModelProto, an onnx_ir.Model, an opened file
(scores,) = model.into_model().into_runnable().run([image])

rep = backend.prepare(onnx.load(path), "CPU")  # or behind the interface that onnx defines for all engines
print(np.array_equal(rep.run(image).probabilities, scores))  # True
```
"""

HABITS: Final = (
    """**Inputs stay inputs.** A shape, an axis or a bound that a file passes as an input may be computed, and may
    change from run to run.""",
    """**Sizes are symbols.** A size that the file names, as `batch`, is a symbol of that name; one without a name gets
    one from its input and axis, as `x_0`. The shapes of the arrays give the values; nothing is prepared again.""",
    """**Inputs with a default value are constants.** Where an initialiser is among the graph's inputs too, the standard
    lets a caller override it. Here it is a constant, as in most engines, so that it can be folded; the doctor names
    it. `model.set_input_names(["x", "scale"])` before `into_model`, or `--input-node x --input-node scale`, makes it
    an input, which then must be given.""",
    """**The operators know best.** What a file says about the types and shapes of inner tensors and outputs fills in
    what its operators leave open: a rank, a size that nobody named. What fills in a size is checked in every run.
    Where it disagrees with the operators, also a number with a name, it is set aside, with one warning
    (`tract_core.errors.ModelWarning`) for a file; `tract MODEL doctor` lists all of it, `strict_facts=True` makes an
    error of it. What you say with `set_input_fact` or `set_output_fact` is a contract: it holds in every run, or is an
    error.""",
    """**One name is one size.** Where a file gives sizes of two inputs one name and they differ, the run is refused,
    with what to write to part them; `own_symbols=True` gives each of them a symbol of its own.""",
    """**The rank is the same in every run.** A `Squeeze` that names no axes removes those that are known to be 1 when
    the model is loaded, and keeps a symbol that happens to be 1 in a run; give the size where it should go. Where the
    branches of an `If` differ in rank or type, the nodes behind get what they can use; a run that takes the other
    branch is refused, and told which inputs would be right. So is one that takes a branch that cannot be typed for the
    sizes given. The doctor lists these branches. A slice between bounds that are sizes themselves must lie inside the
    tensor in a run, which is refused if it does not; numbers stop at the ends of the axis, as the standard says.""",
    """**Sizes that must be equal are equal.** Where operators want that of two symbols, the run is refused in which
    they differ, before it begins, also where nothing but the shape of a result is read. Only operators that the
    standard lets broadcast stretch a size of 1. ONNX Runtime lets more pass: it stretches labels of an `Einsum`, the
    input of a `PRelu`, batches of `GatherND` and scales of a `GroupNormalization`, joins empty tensors of any shape
    with `Concat`, and cuts conditions of `Compress` that are too long.""",
    """**Weights are read in place**, also from external data, which must lie in the model's folder or below it. The
    files must stay as they are while the model is used.""",
    """**Roundings are those of the definitions.** Operators that quantise what they are given (`DynamicQuantizeLinear`,
    `DynamicQuantizeMatMul`, `DynamicQuantizeLSTM`) do so here, by the range of the tensor as a whole; the state of the
    LSTM in every step by that of the whole batch, in which items that have ended count as 0. ONNX Runtime does this on
    one thread; on several it cuts the batch into groups. Where rounding is only allowed, as by `accuracy_level` of
    `MatMulNBits`, nothing is rounded. Operators of `com.microsoft` that stand for several compute f16 and bf16 in f32
    and round once.""",
    """**Caches are what the file says they are.** Each row of a batch has its own number of keys in that of a
    `GroupQueryAttention`, which may be a buffer of fixed size or hold a window: its keys are gathered in every step.
    Who gives whole rows, as in generating text, loads with `growing_caches=True`: then new keys are put behind those of
    the past, whatever the file says of lengths, buffers and windows, and nothing else is moved.""",
    """**Values are NumPy's and Python's.** Texts are arrays of Python strings, sequences lists, optionals a value or
    `None`, maps dictionaries, whose entries may be plain numbers.""",
    """**Functions that a file defines** take the place of their calls; those that call each other in a circle are
    refused.""",
    """**Devices of `tract_onnx.backend`** are runtimes by name; `"CPU"` is the default one. The module has `prepare`,
    `run_model`, `run_node`, `supports_device` and `is_compatible`, and can be given to
    `onnx.backend.test.BackendTest`.""",
)
"""What users of other engines ask first."""


def _conformance(modes: dict[str, Counter[str]]) -> Iterator[str]:
    from onnx_backend_suite import REFUSED, TOLERANCES, WITHOUT_BATCH

    yield _WRITING
    yield "## Conformance\n"
    yield from _wrapped(
        f"""The backend tests of `onnx` {onnx.__version__} (node, simple, pytorch-operator, pytorch-converted), run by
        its own runner on the `reference` runtime, with the tolerances of each test, in three ways: as the file has the
        model (wired), simplified (decluttered), and simplified with a symbol for the leading axis of every input
        (symbolic). A refused test ends in an error that says why; none ends in a wrong answer, in another error, or not
        at all."""
    )
    yield from _table(
        ["", "passed", "refused", "failed"],
        [[mode, *(str(counts[kind]) for kind in ("passed", "refused", "failed"))] for mode, counts in modes.items()],
    )
    yield "The refused tests:\n"
    rows = [[f"`{name}`", error.__name__, reason] for name, (error, reason) in sorted(REFUSED.items())]
    rows += [
        [f"`{name}`", error.__name__, f"{reason} (with symbols only)"]
        for name, (error, reason) in sorted(WITHOUT_BATCH.items())
    ]
    yield from _table(["test", "error", "its message says"], rows)
    yield "These tests have other tolerances than their own:\n"
    rows = [
        [f"`{name}`", ", ".join(f"{key} {value}" for key, value in given.items())] for name, given in TOLERANCES.items()
    ]
    yield from _table(["test", "tolerance"], rows)
    yield from _wrapped(
        """The numbers that Bernoulli draws are compared by type and shape. The expected results of the two attentions
        in f16 were rounded after every step, and those of two inverse Fourier transforms in f32: they are further from
        the exact ones than those computed here."""
    )
    yield from _wrapped(
        """`onnx.backend.test.BackendTest(tract_onnx.backend, __name__)` runs the same tests. There, those of the two
        tables fail or are skipped, and `test_loop16_seq_none` fails, as the runner asks for the length of a tensor
        without axes; the tests of ImageDecoder need Pillow (`tract-onnx[images]`)."""
    )


def _shipped() -> Iterator[str]:
    yield "## Trained files\n"
    wheels = tomllib.loads((ROOT / "tests" / "shipped" / "wheels.toml").read_text())["wheels"]
    yield from _wrapped(
        f"""`make test-shipped` takes the 110 ONNX files of {len(wheels)} packages from the index as they are, and runs
        at two sizes, as the file has it and simplified, against ONNX Runtime. All load, and 100 agree within 1e-4 of
        the largest magnitude of an output. Where they do not, every node is asked alone, on the tensors that ONNX
        Runtime computed in front of it, and float64 decides: the reference evaluator of the `onnx` package, or, for
        `DynamicQuantizeLSTM`, its definition, step by step from the states that each engine found itself.
        Each comes back from an archive as the same model, and computes the same in ONNX Runtime when it is written
        again."""
    )
    yield from _table(["file", "what differs", "who is right"], [list(row) for row in SHIPPED])


SHIPPED: Final = (
    (
        "`ppocrv5_det`, `ch_PP-OCRv4_det`, `hey_marvin_v0.1`",
        "up to 2e-1 at the outputs",
        "ours: ONNX Runtime's `Sigmoid` is wrong near 0; here at most 1e-5 from float64",
    ),
    (
        "`whisper80`, `whisper128`",
        "up to 1e-3 at the outputs",
        "ours: ONNX Runtime's `STFT` is not exact enough for the logarithm behind it; here at most 3e-6 from float64",
    ),
    (
        "`embedder.int8`, batch 1",
        "up to 4e-1 at the output",
        "both: each step of `DynamicQuantizeLSTM` is within 1e-6 of "
        "float64 in either engine, then a state falls on two sides of a rounding, and what follows is built upon it",
    ),
    ("`common_old`, `bilstm.int8`", "up to 9e-4", "neither: both are equally far from float64, by roundings"),
    ("`rawi_v3.int8`", "4e-3", "ours: 6e-8 from float64"),
    (
        "`plcmos_v2`, batch 1",
        "the shape `1` here, none there",
        "a `Squeeze` that names no axes keeps a symbolic axis here, "
        "see above; with the sizes of the inputs given the results agree",
    ),
)
"""Files on which the engines do not agree, and what float64 says."""


def _refused() -> Iterator[str]:
    yield "## What is refused\n"
    yield "Operators that are known, and refused whenever they occur:\n"
    alike: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key, (reason, hint) in REASONS.items():
        domain, name, _ = key.rsplit("/", 2)
        alike[domain, reason, hint].append(f"`{name}`")
    rows = [[", ".join(names), domain, reason, hint] for (domain, reason, hint), names in alike.items()]
    yield from _table(["operators", "domain", "why", "what to do"], rows)
    yield from _wrapped(
        """Operators that are taken, but not in every form. The right column is the error's message, where `...` stands
        for what was found in the file:"""
    )
    yield from _table(["operators", "what is refused"], _messages())


Function = tuple[str, str]
"""A function of the modules that wire operators: the module's name, and its own."""


def _messages() -> Iterator[list[str]]:
    """The operators that may be refused, and the messages of ``Unsupported``, from the modules that wire them."""
    functions, uses = _functions()
    wired = {one: names for one, node in functions.items() if (names := _wired_by(node))}
    reached = {one: _reached_from(one, uses) for one in wired}
    for one, node in functions.items():
        operators = {name for user, needed in reached.items() if one in needed for name in wired[user]}
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Unsupported" and one[0] != "refused":
                yield [", ".join(f"`{name}`" for name in sorted(operators)), _text(call.args[0])]


def _functions() -> tuple[dict[Function, ast.FunctionDef], dict[Function, set[Function]]]:
    """The functions, and which others each of them uses."""
    functions: dict[Function, ast.FunctionDef] = {}
    uses: dict[Function, set[Function]] = {}
    for path in sorted((ROOT / "plugins" / "tract_onnx" / "tract_onnx" / "ops").glob("*.py")):
        body = ast.parse(path.read_text()).body
        own = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        known = {name: (path.stem, name) for name in own}
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tract_onnx.ops."):
                known |= {name.name: (node.module.rpartition(".")[2], name.name) for name in node.names}
        for name, node in own.items():
            functions[path.stem, name] = node
            used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            uses[path.stem, name] = {known[one] for one in used & known.keys()}
    return functions, uses


def _wired_by(function: ast.FunctionDef) -> list[str]:
    """The operators that a function wires: those that its decorators name."""
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call) and ast.unparse(one.func) == "onnx_op"]
    return [str(name.value) for call in calls for name in call.args[1:] if isinstance(name, ast.Constant)]


def _reached_from(start: Function, uses: dict[Function, set[Function]]) -> set[Function]:
    """All that a function needs, itself among them."""
    found, pending = {start}, [start]
    while pending:
        new = uses.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def _text(expression: ast.expr) -> str:
    pieces = expression.values if isinstance(expression, ast.JoinedStr) else [expression]
    return "".join(str(one.value) if isinstance(one, ast.Constant) else "..." for one in pieces).replace("|", "\\|")


def _operators(counts: Passed) -> Iterator[str]:
    yield "## Operators\n"
    yield from _wrapped(
        """`from` is the version of the operator set from which an operator is taken, up to the newest; `changes` are
        later versions from which it is taken differently. `tests` counts the backend tests with the operator in their
        model that pass when decluttered; where there are none, only this project's own tests have it."""
    )
    for domain, operators in registered().items():
        yield f"### {domain}\n"
        rows: list[list[str]] = []
        for name, (first, *others) in operators.items():
            found = counts.get(f"{domain}/{name}", Counter())
            passed = f"{found['passed']} of {sum(found.values())}" if found else "none"
            rows.append([f"`{name}`", str(first), ", ".join(map(str, others)), passed])
        yield from _table(["operator", "from", "changes", "tests"], rows)


def _types() -> Iterator[str]:
    yield "## Element types\n"
    names = dict(zip(onnx.TensorProto.DataType.values(), onnx.TensorProto.DataType.keys(), strict=True))
    yield from _table(
        ["ONNX", "here"], [[names.get(code, str(code)), f"`{kind.short}`"] for code, kind in ELEMENT_TYPES.items()]
    )
    yield "And sequences, optionals and maps of them.\n"


def _options() -> Iterator[str]:
    yield "## Options of the loader\n"
    yield from _wrapped("""Keywords of `tract.onnx().load`, and flags of the command, as `--onnx-ignore-value-info`.""")
    flags = next(iter(plugin.tract_formats())).flags
    yield from _table(["option", "what it does"], [[f"`{name}`", text] for name, text in flags.items()])


def _limits() -> Iterator[str]:
    yield "## Limits\n"
    yield from _wrapped(
        "What a file may ask for, as fields of `tract_core.limits.LoadLimits`; beyond it is `LimitExceeded`."
    )
    documentation = " ".join((LoadLimits.__doc__ or "").split())
    meanings = dict(re.findall(r"``(\w+)``: (.*?)(?= ``\w+``: |$)", documentation))
    rows = [
        [f"`{field.name}`", f"{field.default:,}", _sentence(meanings[field.name])]
        for field in dataclasses.fields(LoadLimits)
    ]
    yield from _table(["limit", "default", "of what"], rows)


def _sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".;")


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(" ".join(text.split()), 120)
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def main() -> None:
    """Run the tests, and write the page."""
    from onnx_backend_suite import MODES, all_cases, operators, outcome

    labels, cases = operators(), all_cases()
    modes: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
    counts: Passed = defaultdict(Counter)
    for name, run in cases.items():
        for mode in MODES:
            result, _ = outcome(run, name, mode, "reference")
            modes[mode][result] += 1
            if mode == "decluttered":
                for op in labels[name]:
                    counts[op][result] += 1
    PAGE.write_text(page(modes, counts))
    print(f"{PAGE}: {', '.join(f'{mode} {dict(found)}' for mode, found in modes.items())}")


if __name__ == "__main__":
    main()
