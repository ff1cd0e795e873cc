"""``tract MODEL compile FILE``: the model as an object file, a shared library or a package, or for the web."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import NEW_FILE

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_cpu.ahead.object_file import CompiledModel
    from tract_cpu.ahead.targets import ObjectTarget

OBJECTS: Final = (".o", ".obj")
LIBRARIES: Final = (".so", ".dylib", ".dll")
MODULE: Final = ".wasm"
PACKAGE: Final = ".whl"
NPM: Final = ".tgz"

TARGET_HELP: Final = (
    "What it is for: this machine, or x86-64, x86-64-v3, x86-64-v4, these two with -vnni behind them, or aarch64, for "
    "Linux or, with -windows or -macos behind it, for another system; armv7, armv7+vfpv4, riscv64, riscv64+v; wasm32, "
    "or wasm32+relaxed-simd, where newer browsers compute faster, and others do not run it."
)


@click.command(cls=ModelCommand, short_help="Compile it to an object file, a package, or for the web.")
@click.argument("file", type=NEW_FILE)
@click.option("--target", default="native", show_default=True, metavar="NAME", help=TARGET_HELP)
@click.option("--name", metavar="NAME", help="What its functions begin with. Default: the name of FILE.")
@click.option("--header", type=NEW_FILE, metavar="FILE", help="The header of C. Default: FILE, ending in .h.")
@click.option(
    "--threads", type=int, default=1, metavar="N", help="How many threads of the caller may do a run. Default: one."
)
@click.option("--json", "as_json", is_flag=True, help="Say as JSON what was written.")
@click.pass_obj
def command(request: Request, file: str, target: str, threads: int, as_json: bool, **flags: str | None) -> None:
    """Compile MODEL to FILE, which is run without Python.

    Its ending says what it is: an object file (.o, .obj), a shared library for this machine (.so, .dylib, .dll), a
    package of Python that needs NumPy alone (.whl), or a module of WebAssembly (.wasm), with what loads it from
    JavaScript (.mjs, .d.mts), or all that as a package of npm (.tgz).

    Sizes that are open are arguments of runs, and code is better where they are known: --set N=1 gives a symbol its
    value. A header of C says what is called, with what.
    """
    from tract_cpu.ahead.npm import npm_name
    from tract_cpu.ahead.object_file import compile_model
    from tract_cpu.ahead.package import wheel_name
    from tract_cpu.ahead.targets import target_named

    path = Path(file)
    target = _target_for(path, target)
    _refuse_threads(path, threads)
    if path.suffix == PACKAGE and flags["name"] is None:
        flags["name"] = wheel_name(path)[0]
    if path.suffix == NPM:
        flags["name"] = flags["name"] or _name_of(Path(npm_name(path)[0]))
    chosen = target_named(target)
    model = request.typed_model()
    with request.progress("compiling"):
        found = compile_model(model, chosen, flags["name"] or _name_of(path), threads=threads)
        files = _files(found, chosen, path, flags["header"])
    _write(files)
    said = {"files": {str(one): len(content) for one, content in files.items()}, "target": target, "name": found.name}
    said |= {"memory": found.memory, "kept": found.kept, "threads": found.threads, "shared": found.shared}
    said |= {"sizes": list(found.sizes)}
    click.echo(json.dumps(said, indent=1) if as_json else _told(said))


def _target_for(path: Path, target: str) -> str:
    """The target, which is WebAssembly where the file is. Raises InputError where its ending says something else."""
    from tract_core.errors import InputError
    from tract_cpu.ahead.targets import NATIVE, TARGETS, WASM

    wanted = (*OBJECTS, *LIBRARIES, PACKAGE, MODULE, NPM)
    if path.suffix not in wanted:
        ending = repr(path.suffix) if path.suffix else "nothing"
        raise InputError(f"{str(path)!r} ends in {ending}", hint=f"its ending says what it is: {', '.join(wanted)}")
    if path.suffix not in {MODULE, NPM}:
        return target
    if target != NATIVE and (target not in TARGETS or not TARGETS[target].is_module):
        raise InputError(f"{str(path)!r} is for {WASM}, not for {target}", hint="leave --target out, or name a .o")
    return WASM if target == NATIVE else target


def _refuse_threads(path: Path, threads: int) -> None:
    """Raise InputError for threads where whoever calls has none."""
    from tract_core.errors import InputError

    if threads > 1 and path.suffix not in {*OBJECTS, *LIBRARIES}:
        hint = f"--threads is for {', '.join((*OBJECTS, *LIBRARIES))}"
        raise InputError(f"{str(path)!r} runs on one thread", hint=hint)


def _files(found: CompiledModel, target: ObjectTarget, path: Path, header: str | None) -> dict[Path, bytes | bytearray]:
    """What is written, by name."""
    from tract_cpu.ahead.header import header_text
    from tract_cpu.ahead.npm import npm_name, npm_package, web_files
    from tract_cpu.ahead.package import wheel, wheel_name
    from tract_cpu.ahead.shared import shared_library

    if path.suffix == MODULE:
        return {path.with_name(name): content for name, content in web_files(found, path.stem).items()}
    if path.suffix == NPM:
        return {path: npm_package(found, *npm_name(path))}
    if path.suffix == PACKAGE:
        name, version, file = wheel_name(path)
        return {path.with_name(file): wheel(found, shared_library(found.code, target), target, name, version)}
    code = shared_library(found.code, target) if path.suffix in LIBRARIES else found.code
    return {path: code, Path(header or path.with_suffix(".h")): header_text(found).encode()}


def _name_of(path: Path) -> str:
    """The name of a file as a name in C."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", path.stem, flags=re.ASCII)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _write(files: Mapping[Path, bytes | bytearray]) -> None:
    """All files whole, or none."""
    from tract_core.saving import whole_file

    with ExitStack() as opened:
        for path, content in files.items():
            opened.enter_context(whole_file(path)).write(content)


def _told(said: dict[str, Any]) -> str:
    stays = f", of which {said['kept']:,} stay from run to run" if said["kept"] else ""
    (first, size), *others = said["files"].items()
    beside = f"{first}: {size:,} bytes for {said['target']}"
    beside += f", and {', '.join(name for name, _ in others)}" if others else ""
    sizes, name = ", ".join(said["sizes"]), said["name"]
    bytes_ = f"as many bytes as {name}_memory({sizes}) gives" if sizes else f"{said['memory']:,} bytes"
    told = f"{beside}\n{name}_run works in {bytes_}{stays}"
    if said["threads"] == 1:
        return told
    if sizes:
        return f"{told}\n{name}_run_shared has steps with enough to do done by up to {said['threads']} threads"
    return f"{told}\n{said['name']}_run_shared has {said['shared']} steps done by up to {said['threads']} threads"
