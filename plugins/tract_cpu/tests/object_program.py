"""A program in C with many models in it, which reads what they are given from a file, and writes what they give."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from linked_objects import outputs_of
from tract_cpu.ahead.header import header_text
from tract_cpu.ahead.object_file import CompiledModel

_STRICT: Final = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]

_PROGRAM: Final = """\
#include <stdio.h>
#include <stdlib.h>
@INCLUDED@
struct model {
  void (*start)(void *memory);
  int32_t (*run)(void *memory, void **arrays);
  int64_t (*memory)(void);
  int inputs, arrays;
  size_t sizes[@MOST@];
};
@RUNS@
static const struct model models[] = {
@MODELS@};

static void *room(size_t size);

static int work(void) {
  FILE *given = fopen("given.bin", "rb"), *found = fopen("found.bin", "wb");
  if (!given || !found) return 2;
  for (size_t number = 0; number < sizeof models / sizeof *models; number++) {
    const struct model *model = &models[number];
    void *memory = room((size_t)model->memory()), *arrays[@MOST@];
    for (int i = 0; i < model->arrays; i++) {
      arrays[i] = room(model->sizes[i]);
      if (i < model->inputs && fread(arrays[i], 1, model->sizes[i], given) != model->sizes[i]) return 3;
    }
    model->start(memory);
    if (model->run(memory, arrays)) return 4;
    for (int i = model->inputs; i < model->arrays; i++)
      if (fwrite(arrays[i], 1, model->sizes[i], found) != model->sizes[i]) return 5;
  }
  return fclose(found) ? 6 : 0;
}
"""

MAIN: Final = """
static void *room(size_t size) {
  char *found = malloc(size + 64);
  return found ? found + (64 - (uintptr_t)found % 64) : found;
}

int main(void) { return work(); }
"""
"""The rest of it, on systems of POSIX."""


class Work(NamedTuple):
    """A model whose functions begin with a name of its own, and what it is given. ``sizes``: the open ones."""

    found: CompiledModel
    given: Sequence[np.ndarray]
    sizes: Mapping[str, int] = MappingProxyType({})

    def values(self) -> list[str]:
        """Of open sizes, in C."""
        return [str(self.sizes[name]) for name in self.found.sizes]


def build(
    works: Sequence[Work],
    folder: Path,
    compiler: Sequence[str],
    *,
    main: str = MAIN,
    ending: str = ".o",
    settings: Mapping[str, str] | None = None,
) -> None:
    """Build ``main.exe`` in a folder, and write what it will read.

    ``compiler``: how to call it, with ``settings`` as its environment. ``main``: the rest of the program. ``ending``:
    of objects.
    """
    for work in works:
        (folder / f"{work.found.name}.h").write_text(header_text(work.found))
        (folder / f"{work.found.name}{ending}").write_bytes(work.found.code)
    (folder / "main.c").write_text(_program(works) + main)
    objects = [f"{work.found.name}{ending}" for work in works]
    subprocess.run([*compiler, *_STRICT, "main.c", *objects, "-o", "main.exe"], cwd=folder, env=settings, check=True)
    (folder / "given.bin").write_bytes(
        b"".join(np.ascontiguousarray(x).tobytes() for work in works for x in work.given)
    )


def given_by(works: Sequence[Work], folder: Path) -> list[list[np.ndarray]]:
    """What each model gave, as the program has written it."""
    content, place, found = (folder / "found.bin").read_bytes(), 0, list[list[np.ndarray]]()
    for work in works:
        outputs = outputs_of(work.found, work.sizes)
        for one in outputs:
            one.reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8, one.nbytes, place)
            place += one.nbytes
        found.append(outputs)
    assert place == len(content)
    return found


def _program(works: Sequence[Work]) -> str:
    rows, runs, models = list[str](), list[str](), [work.found for work in works]
    for work in works:
        name, values = work.found.name, work.values()
        sizes = [one.nbytes for one in outputs_of(work.found, work.sizes, everything=True)]
        passed = ", ".join(["memory", *values, *(f"arrays[{number}]" for number in range(len(sizes)))])
        memory = f"{name}_memory({', '.join(values)})" if values else f"{name.upper()}_MEMORY"
        runs.append(
            f"static int32_t run_{name}(void *memory, void **arrays) {{\n  return {name}_run({passed});\n}}\n"
            f"static int64_t memory_{name}(void) {{\n  return {memory};\n}}\n"
        )
        counts, told = f"{work.found.inputs}, {len(sizes)}", ", ".join(map(str, sizes))
        rows.append(f"  {{{name}_start, run_{name}, memory_{name}, {counts}, {{{told}}}}},\n")
    filled = {
        "INCLUDED": "".join(f'#include "{model.name}.h"\n' for model in models),
        "MOST": str(max(len(model.arrays) for model in models)),
        "RUNS": "".join(runs),
        "MODELS": "".join(rows),
    }
    text = _PROGRAM
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text
