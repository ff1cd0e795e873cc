"""``tract MODEL cuda``: the program of a model for a GPU, what each pass decided, and the kernels as PTX."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.command import ModelCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel
    from tract_cuda.compile import Planned
    from tract_cuda.kernels.kernel import KernelPlan
    from tract_cuda.lowering import Target
    from tract_cuda.program import Step

_MULTIPROCESSORS: Final = 132
"""Of an H100."""


@click.command(cls=ModelCommand, short_help="Show the program of the runtime cuda.")
@click.option("--node", metavar="ID|NAME", help="Only what computes this node.")
@click.option(
    "--after", metavar="PASS", help="What one pass of the compiler gives: group, choose_kernels or plan_memory."
)
@click.option("--plan", "plan_", is_flag=True, help="All that was decided about each kernel.")
@click.option("--ptx", metavar="KERNEL", help="The kernels of this name as PTX, or that of the step of this number.")
@click.option(
    "--arch", metavar="NAME", default="sm_90", show_default=True, help="The architecture, as sm_80 or sm_90a."
)
@click.option(
    "--multiprocessors",
    type=click.IntRange(1),
    default=_MULTIPROCESSORS,
    show_default=True,
    help="How many the device has.",
)
@click.option("--tf32", is_flag=True, help="Whether products of f32 may be computed with 10 bits of each factor.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(
    request: Request, node: str | None, after: str | None, ptx: str | None, as_json: bool, **options: Any
) -> None:
    """List the steps that the runtime cuda makes of MODEL, in order: launches, copies, nodes of the host.

    No GPU is needed: --arch, --multiprocessors and --tf32 say what for. What bodies of loops become is not shown.
    """
    from tract_cuda.compile import compiled

    target = _target(options["arch"], options["multiprocessors"], tf32=options["tf32"])
    model = request.typed_model()
    if after is not None:
        text = _text_after(after, model, target)
        click.echo(json.dumps({"after": after, "lines": text.splitlines()}, indent=1) if as_json else text, nl=as_json)
        return
    planned = compiled(model, target)
    if ptx is not None:
        _print_ptx(_kernels(planned, ptx), target, as_json=as_json)
        return
    wanted = None if node is None else _node(planned.model, node)
    entries = [_entry(planned.model, number, step) for number, step in enumerate(planned.program.steps)]
    chosen = [entry for entry in entries if wanted is None or wanted in entry["nodes"]]
    if options["plan_"]:
        chosen = [entry | _plan(planned, entry["step"]) for entry in chosen]
    if not chosen:
        _refuse_nothing(planned.model, node)
    _print_all(chosen, as_json=as_json)


def _target(arch: str, multiprocessors: int, *, tf32: bool) -> Target:
    """Raises InputError where there is no such architecture."""
    from tract_core.errors import InputError
    from tract_cuda.language.arch import ARCHS, arch_named
    from tract_cuda.lowering import Target

    found = arch_named(arch)
    if found is None:
        raise InputError(f"there is no architecture {arch!r}", hint=f"there are {', '.join(one.name for one in ARCHS)}")
    return Target(found, multiprocessors, tf32=tf32)


def _text_after(name: str, model: TypedModel, target: Target) -> str:
    """What a pass gives, as text. Raises InputError where there is no such pass."""
    from tract_core.errors import InputError
    from tract_cuda.compile import COMPILE, after

    if name not in COMPILE:
        raise InputError(f"the compiler has no pass {name!r}", hint=f"its passes are {', '.join(COMPILE)}")
    return after(name, model, target).text()


def _node(model: TypedModel, text: str) -> int:
    """The id of a node, by its id or its name. Raises InputError where there is none."""
    from tract_core.errors import InputError

    named = [one.id for one in model.nodes if one.name == text]
    if text.isdigit() and int(text) < len(model.nodes):
        return int(text)
    if not named:
        raise InputError(f"there is no node {text!r}", hint="'tract MODEL dump' lists the nodes, with ids and names")
    return named[0]


def _refuse_nothing(model: TypedModel, node: str | None) -> None:
    from tract_core.errors import InputError

    if node is None:
        raise InputError("the program has no steps", hint="all that the model gives is part of it")
    why = "it lies in what is there, as a view or as part of the model, or another node of its group is named first"
    raise InputError(f"no step computes node {node!r}", hint=f"{why}: --after group lists groups")


def _entry(model: TypedModel, number: int, step: Step) -> dict[str, Any]:
    """What a step is, and what it computes."""
    from tract_core.compile.groups import outlet_text
    from tract_cuda.program import Download, Hosted, Launch, Repeat, Upload
    from tract_cuda.program_text import kernels_text

    nodes, told = list[int](), dict[str, Any]()
    if isinstance(step, Launch):
        nodes, told = list(step.nodes), {"kernel": step.kernel.name, "grid": "x".join(map(str, step.grid))}
    elif isinstance(step, Repeat):
        nodes, told = list(step.nodes), {"kernel": kernels_text(step), "count": str(step.count)}
    elif isinstance(step, Hosted):
        nodes, told = [step.node.node], {"operator": step.node.op.name, "why": step.why}
    elif isinstance(step, Upload | Download):
        told = {"tensor": outlet_text(model, step.outlet)}
    names = [model.nodes[node].name for node in nodes]
    return {"step": number, "kind": type(step).__name__.lower(), **told, "nodes": nodes, "names": names}


def _plan(planned: Planned, number: int) -> dict[str, str]:
    from tract_llvm.elements.plan_text import plan_text

    from tract_cuda.program import Launch

    step = planned.program.steps[number]
    return {"plan": plan_text(step.kernel)} if isinstance(step, Launch) else {}


def _kernels(planned: Planned, wanted: str) -> list[KernelPlan]:
    """The kernels of a name, each once, or that of a step. Raises InputError where there is none."""
    from tract_core.errors import InputError
    from tract_cuda.program import launches_in

    steps = enumerate(planned.program.steps)
    launches = [(number, launch) for number, step in steps for launch in launches_in([step])]
    found = [step.kernel for number, step in launches if wanted in (step.kernel.name, str(number))]
    if not found:
        names = ", ".join(dict.fromkeys(step.kernel.name for _, step in launches))
        raise InputError(
            f"there is no kernel {wanted!r} in the program",
            hint=f"its kernels are {names}" if names else "it has none: 'tract MODEL cuda' says why",
        )
    return list(dict.fromkeys(found))


def _print_ptx(kernels: list[KernelPlan], target: Target, *, as_json: bool) -> None:
    from tract_cuda.ptx import written

    found = [written(kernel, target.arch) for kernel in kernels]
    if as_json:
        told = [
            {"kernel": one.name, "threads": one.threads, "shared_bytes": one.shared_bytes, "ptx": one.text}
            for one in found
        ]
        click.echo(json.dumps(told, indent=1))
        return
    for one in found:
        click.echo(f"// {one.name}: {one.threads} threads a block, {one.shared_bytes} bytes of shared memory")
        click.echo(one.text.strip())


def _print_all(entries: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(entries, indent=1))
        return
    for entry in entries:
        what = entry.get("kernel") or entry.get("operator") or entry.get("tensor", "")
        told = ", ".join(entry["names"])
        grid = f"[{entry['grid']}]" if "grid" in entry else ""
        why = f": {entry['why']}" if "why" in entry else ""
        click.echo(f"{entry['step']:4} {entry['kind']:<8} {what:<20} {grid:<22} {told}{why}".rstrip())
        if "plan" in entry:
            click.echo(f"\n{entry['plan'].strip()}\n")
