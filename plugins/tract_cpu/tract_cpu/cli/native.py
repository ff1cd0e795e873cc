"""``tract MODEL native``: the kernels of a model, what each was decided to be, and its code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel
    from tract_cpu.plan import CpuPlan
    from tract_cpu.program.program import NativeStep
    from tract_cpu.runtime import CpuRuntime


@click.command(cls=ModelCommand, short_help="Show the kernels of the runtime cpu.")
@click.option("--node", metavar="ID|NAME", help="Only what computes this node.")
@click.option("--plan", "plan_", is_flag=True, help="All that was decided about each kernel.")
@click.option(
    "--after",
    metavar="PASS",
    help="What one pass of the compiler gives: native_form, group, lay_out, choose_kernels, schedule or plan_memory.",
)
@click.option("--ir", is_flag=True, help="What LLVM is given.")
@click.option("--assembly", is_flag=True, help="What the processor is told.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(request: Request, node: str | None, after: str | None, as_json: bool, **flags: bool) -> None:
    """List the steps that the runtime cpu makes of MODEL, in order, each with the nodes that it computes.

    Options of the runtime are taken from -r, as in -r 'cpu(isa=avx2)'.
    """
    from tract_core.errors import InputError
    from tract_cpu.runtime import CpuRuntime

    model = request.typed_model()
    chosen = request.chosen_runtime
    if after is not None:
        runtime = chosen if isinstance(chosen, CpuRuntime) else CpuRuntime()
        text = _text_after(after, model, runtime)
        click.echo(json.dumps({"after": after, "lines": text.splitlines()}, indent=1) if as_json else text, nl=as_json)
        return
    plan: Any = request.prepare(model) if isinstance(chosen, CpuRuntime) else CpuRuntime().prepare(model)
    wanted = None if node is None else _node(plan.model, node)
    steps = [step for step in plan.steps if wanted is None or wanted in _outermost(step)]
    if not steps:
        raise InputError(f"no kernel computes node {node!r}", hint=f"{_why(plan, wanted)}")
    _print_all([_entry(plan, step) | _texts(plan, step, flags) for step in steps], as_json)


def _text_after(name: str, model: TypedModel, runtime: CpuRuntime) -> str:
    """What a pass gives, as text. Raises InputError where there is no such pass."""
    from tract_core.errors import InputError
    from tract_cpu.compile import COMPILE, after

    if name not in COMPILE:
        raise InputError(f"the compiler has no pass {name!r}", hint=f"its passes are {', '.join(COMPILE)}")
    return after(name, model, runtime.target()).text()


def _outermost(step: NativeStep) -> tuple[int, ...]:
    """The nodes of the model that a step is part of: for one in a body, the node whose body it is."""
    return (step.body[0][0],) if step.body else step.nodes


def _why(plan: CpuPlan, node: int | None) -> str:
    """What is done for a node instead."""
    placed = [one for one in plan.explain().placements if not one.part.body and node in one.part.nodes]
    return "; ".join(f"{one.how}: {one.why}" for one in placed) or "the model has no native steps"


def _node(model: TypedModel, text: str) -> int:
    """The id of a node, by its id or its name. Raises InputError where there is none."""
    from tract_core.errors import InputError

    named = [one.id for one in model.nodes if one.name == text]
    if text.isdigit() and int(text) < len(model.nodes):
        return int(text)
    if not named:
        raise InputError(f"there is no node {text!r}", hint="'tract MODEL dump' lists the nodes, with ids and names")
    return named[0]


def _entry(plan: CpuPlan, step: NativeStep) -> dict[str, Any]:
    """What a step is, and what it computes."""
    from tract_core.runtime.parts import body_at
    from tract_cpu.kernels.code import code_of

    names = [body_at(plan.model, step.body).nodes[node].name for node in step.nodes]
    symbol = code_of(step.kernel, plan.isa).name
    return {"kernel": step.kernel.name, "symbol": symbol, "body": step.body, "nodes": step.nodes, "names": names}


def _texts(plan: CpuPlan, step: NativeStep, flags: dict[str, bool]) -> dict[str, str]:
    """What was asked for of its code."""
    from tract_llvm.objects.library import module_text
    from tract_llvm.objects.target import assembly

    from tract_cpu.kernels.code import code_of
    from tract_cpu.program.text import kernel_text

    found = {"plan": kernel_text(step.kernel)} if flags["plan_"] else dict[str, str]()
    if flags["ir"] or flags["assembly"]:
        text = module_text(code_of(step.kernel, plan.isa).emit)
        found |= {"ir": text} if flags["ir"] else {}
        found |= {"assembly": assembly(text, plan.isa)} if flags["assembly"] else {}
    return found


def _print_all(entries: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(entries, indent=1))
        return
    for entry in entries:
        _print(entry)


def _print(entry: dict[str, Any]) -> None:
    ids = "".join(f"{node}/" for node, _ in entry["body"]) + "+".join(map(str, entry["nodes"]))
    click.echo(f"{ids:<16} {entry['symbol']:<28} {', '.join(entry['names']) or 'for the step behind'}")
    for key in ("plan", "ir", "assembly"):
        if key in entry:
            click.echo(f"\n{entry[key].strip()}\n")
