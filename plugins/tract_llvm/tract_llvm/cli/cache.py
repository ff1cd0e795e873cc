"""``tract cache``: what is kept between processes: where, how much, and how to be rid of it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from math import inf
from time import time
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.readings import NumberRange

if TYPE_CHECKING:
    from tract_core.cache.eviction import Contents
    from tract_core.cli.request import Request

DAY: Final = 86400.0

_UNITS: Final = ((DAY, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))

_json: Final = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(invoke_without_command=True, short_help="What is kept for other processes: how much, where; clear it.")
@_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show the machine code and the prepared models that are kept between processes: where, how much, when it was used.

    TRACT_CACHE names another folder, or is 0 to keep none. TRACT_CACHE_SIZE says how much is kept, as in 500M: what was
    unused longest makes room. What others may have written is not used, and is listed here.
    """
    if ctx.invoked_subcommand is not None:
        return
    found = _state()
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        _print(ctx.obj, found)


@command.command(short_help="Remove what is kept.")
@click.option("--unused-for", type=NumberRange(0), metavar="DAYS", help="Only what was not used for so long.")
@_json
@click.pass_obj
def clear(request: Request, unused_for: float | None, as_json: bool) -> None:
    """Remove what is kept, and what is left of processes that ended while they wrote.

    Programs that run go on as they are. What others may have written stays: remove it yourself.
    """
    from tract_core.api.display import size
    from tract_core.cache.cache import named_folder
    from tract_core.cache.eviction import clear_out
    from tract_core.trusted_files import trusted_folder

    folder, gone = named_folder(), []
    if folder is not None:
        with suppress(FileNotFoundError), trusted_folder(folder) as opened:
            gone = clear_out(opened, inf if unused_for is None else time() - unused_for * DAY)
    total = sum(one.bytes for one in gone)
    if as_json:
        told = {"folder": folder, "removed": len(gone), "removed_bytes": total}
        click.echo(json.dumps(told, indent=1))
    else:
        request.console.line(f"removed {_files(len(gone))}, {size(total)}")


def _state() -> dict[str, Any]:
    from tract_core.cache.cache import named_folder, named_size
    from tract_core.cache.entries import ENDING

    folder = named_folder()
    found, problem = _looked_at(folder)
    used = [one.used for one in found.kept] if found else []
    kernels = sum(one.name.endswith(ENDING) for one in found.kept) if found else 0
    return {
        "folder": folder,
        "is_there": found is not None,
        "problem": problem,
        "kernels": kernels,
        "plans": len(used) - kernels,
        "bytes": found.bytes if found else 0,
        "most_bytes": named_size(),
        "used_last": max(used, default=None),
        "used_first": min(used, default=None),
        "unfinished": len(found.abandoned) if found else 0,
        "not_used": [{"file": one.where, "problem": one.problem} for one in found.distrusted] if found else [],
    }


def _looked_at(folder: str | None) -> tuple[Contents | None, str | None]:
    """What is in the folder, if it is there, and why nothing is kept, if that is so."""
    from tract_core.cache.cache import VARIABLE
    from tract_core.cache.eviction import contents_of
    from tract_core.trusted_files import Distrusted, trusted_folder

    if folder is None:
        return None, f"{VARIABLE} says so" if VARIABLE in os.environ else "there is no folder for it"
    try:
        with trusted_folder(folder) as opened:
            return contents_of(opened), None
    except FileNotFoundError:
        above = folder
        while not os.path.exists(above):
            above = os.path.dirname(above)
        return None, None if os.access(above, os.W_OK) else f"{above} cannot be written to"
    except Distrusted as why:
        return None, f"others may write to {why.where}: {why.problem}"
    except OSError as error:
        return None, f"{folder}: {error.strerror or error}"


def _print(request: Request, found: dict[str, Any]) -> None:
    from tract_core.api.display import size
    from tract_core.cli.printing.printed import Column, PrintedTable

    if found["problem"] is not None:
        request.console.line((f"nothing is kept: {found['problem']}", "yellow"))
        return
    table = PrintedTable((Column(style="bold", whole=True), Column()))
    table.add("folder", found["folder"] if found["is_there"] else f"{found['folder']} (not there yet)")
    table.add("kernels", str(found["kernels"]))
    table.add("models", str(found["plans"]))
    table.add("size", f"{size(found['bytes'])} of {size(found['most_bytes'])}")
    if found["kernels"] or found["plans"]:
        table.add("last use", _ago(found["used_last"]))
        table.add("unused longest", _ago(found["used_first"]))
    if found["unfinished"]:
        table.add("unfinished", f"{found['unfinished']}, to be removed")
    request.console.table(table)
    for one in found["not_used"]:
        request.console.line((f"not used: {one['file']}: {one['problem']}", "yellow"))
    if found["not_used"]:
        request.console.line("what others may have written would be executed: remove it yourself", indent=2)


def _ago(moment: float) -> str:
    """``3 days ago``."""
    if not moment:
        return "not known, as the clock was set back"
    passed = max(time() - moment, 0)
    for seconds, unit in _UNITS:
        if passed >= seconds:
            count = int(passed // seconds)
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "now"


def _files(count: int) -> str:
    return f"{count} file{'s' * (count != 1)}"
