"""What tells code from other code: whatever a kernel depends on is in its key, in every process alike."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from tract_llvm.elements.expressions import ELEMENTS, Apply, step_text
from tract_llvm.language.types import F32
from tract_llvm.objects.origins import origin_of

from tract_core.cache.cache import ONLY_HERE
from tract_core.data import Constant
from tract_core.frozen import frozen
from tract_core.ops.elementwise import ElementWise
from tract_core.plugins import default_registry

OTHER = """
from tract_core.frozen import frozen
from tract_core.ops.elementwise import ElementWise
from tract_core.plugins.hookspecs import hookimpl
from tract_core.plugins.tables import Rows
from tract_llvm.elements.expressions import elements
from other.amounts import AMOUNT

ROWS = Rows()

@frozen
class Shift(ElementWise):
    pass

@elements(ROWS, "f", Shift)
def shift(op, x):
    return x + AMOUNT

class Plugin:
    @hookimpl
    def tract_api_version(self):
        return "1.0"

    @hookimpl
    def tract_rows(self):
        return {"elements": ["other"]}
"""

CHILD = """
import sys
import numpy as np
import other
from tract_llvm.isa import chosen
from tract_llvm.objects import library
from tract_cpu.plan import CpuPlan
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.plugins.registry import Registry

compiled = []
write = library.module_text
library.module_text = lambda *arguments: compiled.append(1) or write(*arguments)
model = TypedModel(registry=Registry({"other": other.Plugin()}))
x = model.add_source("x", parse_typed_fact("4,f32", model.symbols))
model.set_outputs(model.wire_node("y", other.Shift(), [x]))
(y,) = CpuPlan(model, chosen("")).spawn().run([np.zeros(4, "f4")])
print(y[0], len(compiled))
"""


class Package:
    """Another distribution, on disk, and what a process makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seed = 0
        self.write("__init__", OTHER)
        self.write("amounts", "AMOUNT = 1.0")

    def write(self, module: str, text: str, *, old: bool = True) -> None:
        file = self.folder / "other" / f"{module}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        if old:
            os.utime(file, (1e9, 1e9))

    def run(self) -> tuple[float, int]:
        """What one process computes of 0, and how many kernels it compiles for that."""
        self.seed += 1
        changes = {
            "TRACT_CACHE": str(self.folder / "cache"),
            "PYTHONHASHSEED": str(self.seed),
            "PYTHONPATH": os.pathsep.join([str(self.folder), *sys.path]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        told = subprocess.check_output([sys.executable, "-c", CHILD], env={**os.environ, **changes}, text=True)
        result, compiled = told.split()
        return float(result), int(compiled)


def test_code_of_others_is_compiled_once_and_anew_when_anything_in_their_package_changes(tmp_path: Path) -> None:
    package = Package(tmp_path)
    assert package.run() == (1, 5)  # the kernel, the executor in both its forms, its helper, and what repeats a turn
    assert package.run() == (1, 0)
    package.write("amounts", "AMOUNT = 2.0")
    assert package.run() == (2, 1)
    package.write("__init__", OTHER.replace("x + AMOUNT", "x - AMOUNT"))
    assert package.run() == (-2, 1)
    assert package.run() == (-2, 0)


def test_what_may_have_changed_since_it_was_imported_is_not_kept(tmp_path: Path) -> None:
    package = Package(tmp_path)
    package.write("amounts", "AMOUNT = 3.0", old=False)
    future = 4e9
    os.utime(tmp_path / "other" / "amounts.py", (future, future))
    assert package.run() == (3, 5)
    assert package.run() == (3, 1)


def test_every_function_of_this_distribution_is_told_by_its_name() -> None:
    rows = default_registry()[ELEMENTS].rows()
    found = [origin_of(element.emit) for element in rows.values()]
    assert [one for one in found if ONLY_HERE in one] == []


def test_functions_without_a_name_are_told_apart_here_and_nowhere_else() -> None:
    both = [partial(pow, exp=2), lambda x: x + 1, lambda x: x + 2]
    texts = [origin_of(one) for one in both]
    assert len(set(texts)) == len(both)
    assert texts == [origin_of(one) for one in both]
    assert all(ONLY_HERE in one for one in texts)


@frozen
class Table(ElementWise):
    values: Constant


def look_up(op: Table, x: object) -> object:
    return x


def test_operators_are_told_apart_by_all_elements_of_their_constants() -> None:
    constants = [Constant(np.arange(100) + one) for one in (0, 0, 1)]
    first, same, other = (step_text(Apply(Table(one), (0,), F32, look_up)) for one in constants)
    assert first == same
    assert first != other
    assert "@" in origin_of(look_up)
