"""``tract serve PATH``: a server of the models of a folder, or of one model."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_serve.server import Server
    from tract_serve.settings import Limits, Settings

_FILE = click.Path(exists=True, dir_okay=False)
_PORT = click.IntRange(-1, 65535)


@click.command(cls=ModelCommand, short_help="Serve the models of a folder, or one model, over HTTP and gRPC.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address; other machines reach 0.0.0.0.")
@click.option("--http-port", type=_PORT, default=8000, show_default=True, help="0 for any that is free, -1 for none.")
@click.option("--grpc-port", type=_PORT, default=8001, show_default=True, help="0 for any that is free, -1 for none.")
@click.option("--name", metavar="NAME", help="Of the model, where MODEL is one and no folder of models.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Of each model that does not say how many.")
@click.option(
    "--watch", "watch_s", default=2.0, show_default=True, metavar="S", help="Look for changed files; 0: never."
)
@click.option(
    "--control/--no-control",
    default=None,
    help="Let clients load and unload models; unless said, if only this machine reaches the server.",
)
@click.option(
    "--shared-memory/--no-shared-memory",
    default=None,
    help="Take tensors from memory of this machine; unless said, the same.",
)
@click.option("--token-file", type=_FILE, help="Each line is a token, one of which each request must show.")
@click.option("--tls-certificate", "certificate", type=_FILE, help="A chain of certificates, PEM.")
@click.option("--tls-key", "key", type=_FILE, help="Its key, PEM.")
@click.option("--store", metavar="PLACE", help="Keep states of sequences in this folder, or redis://...")
@click.option("--store-key", type=_FILE, help="A file with the key that they are signed with, 32 bytes or more.")
@click.option(
    "--store-every",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Keep the state of a sequence after every N requests; 0: when it has been idle for a moment.",
)
@click.option(
    "--origin", "origins", multiple=True, metavar="URL", help="Pages from there may open a WebSocket; '*' for all."
)
@click.option(
    "--serve-limit", "limits", multiple=True, metavar="NAME=N", help="A limit on what clients ask for; see --explain."
)
@click.option(
    "--trace-rate", type=click.IntRange(0), default=0, metavar="N", help="Trace one request in N, by OpenTelemetry."
)
@click.option("--strict", is_flag=True, help="End with an error where a model cannot be loaded.")
@click.option("--log-json", is_flag=True, help="Log lines of JSON.")
@click.option("--explain", is_flag=True, help="Say what would be served, and how, and end.")
@click.pass_obj
def command(request: Request, log_json: bool, explain: bool, **given: Any) -> None:
    """Serve the models of the folder MODEL, as NAME/1/model.onnx, or the one model MODEL.

    The Open Inference Protocol over HTTP and gRPC; for models that write text, the OpenAI interface under /v1.
    SIGHUP looks for changes, SIGTERM and Ctrl-C end it once all requests are answered.
    """
    from tract_serve.logs import log_to_stderr
    from tract_serve.server import Server

    if request.model is None:
        raise click.UsageError("name a folder of models, or a model: tract serve MODEL")
    settings = _settings(request, given)
    if explain:
        from tract_serve.cli.explain import print_explanation

        print_explanation(Path(request.model), settings, as_json=log_json)
        return
    log_to_stderr(as_json=log_json, level="debug" if request.verbose else "info")
    Server(request.model, settings).run(None if log_json else _say)


def _say(server: Server) -> None:
    """What is there, for who has started it."""
    host = server.settings.host
    kind = "https" if server.settings.certificate else "http"
    if server.http_port is not None:
        click.echo(f"HTTP  {kind}://{host}:{server.http_port}/v2", err=True)
        if server.serving.writes_texts:
            click.echo(f"      {kind}://{host}:{server.http_port}/v1  (as OpenAI's)", err=True)
    if server.grpc_port is not None:
        click.echo(f"gRPC  {host}:{server.grpc_port}", err=True)
    for one in server.serving.repository.index:
        reason = one.reason.splitlines()[:1]
        click.echo(f"  {one.name} {one.version}  {one.state}{': ' + reason[0] if reason else ''}", err=True)


def _settings(request: Request, given: dict[str, Any]) -> Settings:
    from tract_serve.settings import Limits, Settings

    _refuse_flags(request)
    for name in ("http_port", "grpc_port"):
        given[name] = None if given[name] == -1 else given[name]
    if (given["certificate"] is None) != (given["key"] is None):
        raise click.UsageError("--tls-certificate and --tls-key go together")
    if (given["store"] is None) != (given["store_key"] is None):
        raise click.UsageError("--store and --store-key go together")
    file = given.pop("token_file")
    tokens = () if file is None else tuple(Path(file).read_text().split())
    if file is not None and not tokens:
        raise click.UsageError(f"{file} holds no token")
    limits = _limits(Limits(), given.pop("limits"))
    more: dict[str, Any] = {} if request.limits is None else {"model_limits": request.limits}
    return Settings(**given, runtime=request.runtime, tokens=tokens, limits=limits, **more)


def _limits(limits: Limits, given: tuple[str, ...]) -> Limits:
    """Limits, some of which are said: ``body_bytes=1e8``."""
    known = [one.name for one in fields(limits)]
    for one in given:
        name, _, text = one.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if name not in known or not value > 0:
            raise click.UsageError(f"--serve-limit {one}: wanted NAME=NUMBER, of {', '.join(known)}")
        whole = isinstance(getattr(limits, name), int)
        limits = replace(limits, **{name: int(value) if whole else value})
    return limits


def _refuse_flags(request: Request) -> None:
    """Raises UsageError for global flags that say something of a model: its configuration does that here."""
    said = (request.inputs, request.transforms, request.settings, request.override_fact, request.stage, request.staged)
    if any(said):
        words = "facts, transforms and pulse of a model"
        where = os.path.join(str(request.model), "config.pbtxt")
        raise click.UsageError(f"{words} are parameters in its configuration here, as in {where}; see docs/serve.md")
