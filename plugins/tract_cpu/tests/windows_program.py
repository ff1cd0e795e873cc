"""A program for Windows with many models in it, built by mingw-w64 and run by Wine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from linked_objects import outputs_of
from tract_cpu.ahead.header import header_text
from tract_cpu.ahead.object_file import CompiledModel

COMPILER: Final = shutil.which("x86_64-w64-mingw32-gcc")
WINE: Final = next(filter(None, map(shutil.which, ("wine64", "wine64-stable", "/usr/lib/wine/wine64", "wine"))), None)

_STRICT: Final = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]

_SECONDS: Final = 300

_PROGRAM: Final = """\
#include <stdio.h>
#include <windows.h>
@INCLUDED@
struct model {
  void (*start)(void *memory);
  int32_t (*run)(void *memory, void **arrays);
  size_t memory;
  int inputs, arrays;
  size_t sizes[@MOST@];
};
@RUNS@
static const struct model models[] = {
@MODELS@};

static void *room(size_t size) {
  return VirtualAlloc(NULL, size + 64, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

/* In a thread, whose stack is as small as it can be in the beginning. */
static DWORD WINAPI work(void *unused) {
  FILE *given = fopen("given.bin", "rb"), *found = fopen("found.bin", "wb");
  (void)unused;
  if (!given || !found) return 2;
  for (size_t number = 0; number < sizeof models / sizeof *models; number++) {
    const struct model *model = &models[number];
    void *memory = room(model->memory), *arrays[@MOST@];
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

int main(void) {
  DWORD status = 7;
  HANDLE thread = CreateThread(NULL, 0, work, NULL, 0, NULL);
  WaitForSingleObject(thread, INFINITE);
  GetExitCodeThread(thread, &status);
  return (int)status;
}
"""


class Work(NamedTuple):
    """A model whose functions begin with a name of its own, and what it is given."""

    found: CompiledModel
    given: Sequence[np.ndarray]


def run_on_windows(works: Sequence[Work], folder: Path) -> list[list[np.ndarray]]:
    """What each model gives. Builds and runs one program in a folder."""
    assert COMPILER is not None
    assert WINE is not None
    for work in works:
        (folder / f"{work.found.name}.h").write_text(header_text(work.found))
        (folder / f"{work.found.name}.obj").write_bytes(work.found.code)
    (folder / "main.c").write_text(_program([work.found for work in works]))
    objects = [f"{work.found.name}.obj" for work in works]
    subprocess.run([COMPILER, *_STRICT, "main.c", *objects, "-o", "main.exe"], cwd=folder, check=True)
    (folder / "given.bin").write_bytes(
        b"".join(np.ascontiguousarray(x).tobytes() for work in works for x in work.given)
    )
    settings = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all", "DISPLAY": ""}
    subprocess.run([WINE, "main.exe"], cwd=folder, env=settings, check=True, timeout=_SECONDS)
    content, place, found = (folder / "found.bin").read_bytes(), 0, list[list[np.ndarray]]()
    for work in works:
        outputs = outputs_of(work.found)
        for one in outputs:
            one.reshape(-1).view(np.uint8)[:] = np.frombuffer(content, np.uint8, one.nbytes, place)
            place += one.nbytes
        found.append(outputs)
    assert place == len(content)
    return found


def _program(models: Sequence[CompiledModel]) -> str:
    rows, runs = list[str](), list[str]()
    for model in models:
        sizes = _sizes(model)
        arrays = ", ".join(f"arrays[{number}]" for number in range(len(sizes)))
        runs.append(
            f"static int32_t run_{model.name}(void *memory, void **arrays) {{\n"
            f"  return {model.name}_run(memory, {arrays});\n}}\n"
        )
        upper, counts = model.name.upper(), f"{model.inputs}, {len(sizes)}"
        rows.append(
            f"  {{{model.name}_start, run_{model.name}, {upper}_MEMORY, {counts}, {{{', '.join(map(str, sizes))}}}}},\n"
        )
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


def _sizes(model: CompiledModel) -> list[int]:
    return [one.nbytes for one in outputs_of(model, everything=True)]
