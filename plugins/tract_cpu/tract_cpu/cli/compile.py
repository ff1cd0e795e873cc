"""``tract MODEL compile FILE``: the model as an object file or a shared library, with a header of C."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import NEW_FILE

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_cpu.ahead.object_file import CompiledModel

OBJECTS: Final = (".o", ".obj")
LIBRARIES: Final = (".so", ".dylib", ".dll")

TARGET_HELP: Final = (
    "What it is for: this machine, or x86-64, x86-64-v3, x86-64-v4, x86-64-v4-vnni or aarch64, for Linux or, with "
    "-windows or -macos behind it, for another system."
)


@click.command(cls=ModelCommand, short_help="Compile it to an object file, to be run without Python.")
@click.argument("file", type=NEW_FILE)
@click.option("--target", default="native", show_default=True, metavar="NAME", help=TARGET_HELP)
@click.option("--name", metavar="NAME", help="What its functions begin with. Default: the name of FILE.")
@click.option("--header", type=NEW_FILE, metavar="FILE", help="The header of C. Default: FILE, ending in .h.")
@click.option("--json", "as_json", is_flag=True, help="Say as JSON what was written.")
@click.pass_obj
def command(request: Request, file: str, target: str, as_json: bool, **flags: str | None) -> None:
    """Compile MODEL to FILE: an object file (.o, .obj), or a shared library for this machine (.so, .dylib, .dll).

    Sizes have to be known: --set N=1 gives a symbol its value. A header of C says what is called, with what.
    """
    from tract_core.errors import InputError
    from tract_cpu.ahead.object_file import compile_model
    from tract_cpu.ahead.shared import shared_library
    from tract_cpu.ahead.targets import target_named

    path, chosen = Path(file), target_named(target)
    if path.suffix not in (*OBJECTS, *LIBRARIES):
        wanted = ", ".join((*OBJECTS, *LIBRARIES))
        ending = repr(path.suffix) if path.suffix else "nothing"
        raise InputError(f"{file!r} ends in {ending}", hint=f"its ending says what it is: {wanted}")
    model = request.typed_model()
    with request.progress("compiling"):
        found = compile_model(model, chosen, flags["name"] or _name_of(path))
        code = shared_library(found.code, chosen) if path.suffix in LIBRARIES else found.code
    beside = Path(flags["header"] or path.with_suffix(".h"))
    _write(found, code, path, beside)
    said = {"file": str(path), "bytes": len(code), "header": str(beside), "target": target, "name": found.name}
    said |= {"memory": found.memory, "kept": found.kept}
    click.echo(json.dumps(said, indent=1) if as_json else _told(said))


def _name_of(path: Path) -> str:
    """The name of a file as a name in C."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", path.stem, flags=re.ASCII)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _write(found: CompiledModel, code: bytes, path: Path, header: Path) -> None:
    """Both files whole, or none."""
    from tract_core.saving import whole_file
    from tract_cpu.ahead.header import header_text

    with whole_file(path) as target, whole_file(header) as beside:
        target.write(code)
        beside.write(header_text(found).encode())


def _told(said: dict[str, Any]) -> str:
    stays = f", of which {said['kept']:,} stay from run to run" if said["kept"] else ""
    first = f"{said['file']}: {said['bytes']:,} bytes for {said['target']}, and {said['header']}"
    return f"{first}\n{said['name']}_run works in {said['memory']:,} bytes{stays}"
