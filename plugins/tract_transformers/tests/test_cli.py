"""The subcommands: what they print, and with which exit status."""

from __future__ import annotations

import json
import math
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from model_files import NETWORK, folder_with_model
from vocabularies import CORPUS, trained_bytes

from tract_core.cli.frame import app
from tract_core.texts import printable_lines

PROMPT = "the quick fox"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_model(tmp_path_factory.mktemp("tiny"))


def tract(*arguments: object, given: str | None = None, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    return result


def greedy(text: str, count: int) -> str:
    """What the plain loop in f64 writes."""
    return trained_bytes().decode(NETWORK.greedy(trained_bytes().encode(text).ids, count))


def shown(text: str) -> str:
    """As the command prints it: what would steer a terminal is escaped."""
    return printable_lines(text)


def test_generate_prints_the_text(model: Path) -> None:
    wanted = shown(greedy(PROMPT, 5))
    for line in (["generate", model], [model, "generate"], ["generate", model.parent]):
        assert tract(*line, "--prompt", PROMPT, "-n", 5, "--temperature", 0).stdout.rstrip("\n") == wanted.rstrip("\n")
    found = tract(model, "generate", "-p", "-", "-n", 5, "--temperature", 0, "--threads", 1, given=PROMPT)
    assert found.stdout.rstrip("\n") == wanted.rstrip("\n")


def test_generate_as_json(model: Path) -> None:
    line = [model, "generate", "--prompt", PROMPT, "-n", 4, "--json", "--seed", 3]
    found = json.loads(tract(*line, "--logprobs", 2).stdout)
    assert (found["finish_reason"], found["seed"], len(found["tokens"])) == ("length", 3, 4)
    assert found["prompt_tokens"] == len(trained_bytes().encode(PROMPT).ids)
    assert [one["token"] for one in found["logprobs"]] == found["tokens"]
    assert all(len(one["likeliest"]) == 2 for one in found["logprobs"])
    assert json.loads(tract(*line).stdout)["tokens"] == found["tokens"]


def test_generate_by_the_template(model: Path) -> None:
    text = "<|start|>system\nb<|end|>\n<|start|>user\na<|end|>\n<|start|>assistant\n"
    found = tract(model, "generate", "--message", "a", "--system", "b", "-n", 3, "--temperature", 0).stdout
    assert found.rstrip("\n") == shown(greedy(text, 3)).rstrip("\n")


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        ([], 2, "give the text with --prompt"),
        (["--prompt", "a", "--message", "b"], 2, "give the text with --prompt"),
        (["--prompt", "a", "--system", "b"], 2, "--system goes with --message"),
        (["--prompt", "a", "--top-p", "2"], 2, "2"),
        (["--prompt", "a", "--threads", "0"], 2, "0"),
        (["--prompt", "a", "--tokenizer", "nowhere"], 2, "does not exist"),
        (["--prompt", "the quick " * 200], 1, "the model's context is 128"),
        (["--prompt", "a", "--threads", "1", "-r", "reference"], 1, "threads"),
    ],
)
def test_generate_refuses(model: Path, flags: list[str], status: int, message: str) -> None:
    assert message in tract(model, "generate", *flags, status=status).stderr


def test_chat_answers_line_by_line_and_remembers(model: Path) -> None:
    flags = ["--temperature", 0, "-n", 3, "--stop", "\n"]
    first = "<|start|>user\na<|end|>\n<|start|>assistant\n"
    answer = greedy(first, 3).partition("\n")[0]
    second = (
        f"<|start|>user\na<|end|>\n<|start|>assistant\n{answer}<|end|>\n<|start|>user\nb<|end|>\n<|start|>assistant\n"
    )
    wanted = [answer, greedy(second, 3).partition("\n")[0], answer]
    found = tract(model, "chat", *flags, given="a\n\nb\n/clear\na\n/exit\nc\n")
    assert found.stdout == "".join(f"{shown(one)}\n" for one in wanted)
    system = greedy(f"<|start|>system\nS s<|end|>\n{first}", 3).partition("\n")[0]
    assert tract("chat", model, *flags, given="/system S s\na\n/nothing\n").stdout == f"{shown(system)}\n"
    assert "there is no /nothing" in tract("chat", model, *flags, given="/nothing\n").stderr
    assert tract(model, "chat", *flags, "--system", "S s", given="a").stdout == f"{shown(system)}\n"


def test_chat_goes_on_where_a_conversation_is_too_long(model: Path) -> None:
    found = tract(model, "chat", "-n", 1, "--temperature", 0, given=f"{'the quick ' * 200}\na\n")
    assert "the model's context is 128" in found.stderr
    assert "/clear begins anew" in found.stderr
    assert len(found.stdout) > 1


def test_chat_without_a_template(tmp_path: Path) -> None:
    path = folder_with_model(tmp_path, template=False)
    assert "the model has no chat template" in tract(path, "chat", given="a", status=1).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_in_a_terminal_ctrl_c_ends_the_answer_and_not_the_program(model: Path) -> None:
    ours, theirs = pty.openpty()
    line = [
        sys.executable,
        "-m",
        "tract_core",
        str(model),
        "chat",
        "-n",
        "100",
        "-r",
        "reference",
        "--temperature",
        "0",
    ]
    program = subprocess.Popen(line, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    assert program.stdout is not None
    try:
        os.write(ours, b"a\n")
        assert program.stdout.read(1)  # the answer begins
        program.send_signal(signal.SIGINT)
        time.sleep(0.2)
        os.write(ours, b"/exit\n")
        assert program.wait(timeout=60) == 0
    finally:
        program.kill()
        program.communicate()
        os.close(ours)


def test_llm_bench_as_json_and_as_a_table(model: Path) -> None:
    line = ["llm-bench", model, "--pp", "16,32", "--tg", "4", "--threads", "1", "--repetitions", "2"]
    found = json.loads(tract(*line, "--json").stdout)
    assert [one["test"] for one in found] == ["pp16", "pp32", "tg4"]
    assert all(one["tokens_per_second"] > 0 and one["threads"] == 1 and one["repetitions"] == 2 for one in found)
    assert found[0]["size"] == model.stat().st_size
    assert found[0]["params"] >= sum(one.size for one in NETWORK.weights.values())
    assert found[0]["params"] < 1.1 * sum(one.size for one in NETWORK.weights.values())
    title, *rows = tract(*line, "--depth", "8").stdout.splitlines()
    assert title.split() == ["model", "size", "params", "runtime", "threads", "test", "t/s"]
    assert [row.split()[7] for row in rows] == ["pp16", "pp32", "tg4"]
    assert all("±" in row for row in rows)


@pytest.mark.parametrize(
    ("flags", "activations"),
    [([], "8 bits"), (["--exact"], "floats"), (["-r", "cpu(bytes=false)"], "floats"), (["-r", "reference"], "floats")],
)
def test_rounding_is_told(model: Path, flags: list[str], activations: str) -> None:
    """Commands ask the runtime for it where that has the option, unless somebody says otherwise."""
    line = [*flags[-2:], "llm-bench", model] if "-r" in flags else ["llm-bench", model, *flags]
    line += ["--pp", "0", "--tg", "1", "--repetitions", "1"]
    assert [one["activations"] for one in json.loads(tract(*line, "--json").stdout)] == [activations]
    assert ("(bytes=true)" in tract(*line).stdout) == (activations == "8 bits")


@pytest.mark.parametrize(
    ("flags", "cache"), [([], "f16"), (["--exact"], "f32"), (["--cache", "i8"], "i8"), (["--cache", "bf16"], "bf16")]
)
def test_how_the_past_is_kept_is_told(model: Path, flags: list[str], cache: str) -> None:
    line = ["llm-bench", model, *flags, "--pp", "0", "--tg", "2", "--repetitions", "1", "--json"]
    assert [one["cache"] for one in json.loads(tract(*line).stdout)] == [cache]


def test_llm_bench_refuses(model: Path) -> None:
    assert "is no list of numbers" in tract(model, "llm-bench", "--pp", "many", status=2).stderr
    assert "nothing to measure" in tract(model, "llm-bench", "--pp", "0", "--tg", "0", status=2).stderr


def test_perplexity_is_that_of_the_definition(model: Path, tmp_path: Path) -> None:
    text = "".join(CORPUS)[:900]
    (tmp_path / "text.txt").write_text(text)
    tokens = trained_bytes().encode(text).ids
    losses: list[float] = []
    for start in range(0, 3 * 20, 20):
        window = tokens[start : start + 20]
        logits = NETWORK.logits(window)
        for place in range(11, 20):
            row = logits[place - 1]
            losses.append(float(row.max() + math.log(np.exp(row - row.max()).sum()) - row[window[place]]))
    line = ["perplexity", model, tmp_path / "text.txt", "--context", 20, "--windows", 3]
    found = json.loads(tract(*line, "--json").stdout)
    assert found["perplexity"] == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)
    error = np.std(losses, ddof=1) / math.sqrt(len(losses)) * found["perplexity"]
    assert found["error"] == pytest.approx(error, rel=1e-4)
    assert (found["tokens"], found["windows"]) == (27, 3)
    assert f"{found['perplexity']:.4f} ± " in tract(*line).stdout
    assert tract(model, "perplexity", tmp_path / "text.txt", "--context", 2, "--json").exit_code == 0


def test_perplexity_refuses(model: Path, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("the end")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    assert (
        "less than one window" in tract(model, "perplexity", tmp_path / "short.txt", "--context", 64, status=1).stderr
    )
    assert "no text in UTF-8" in tract(model, "perplexity", tmp_path / "bytes.txt", status=1).stderr
    told = tract(model, "perplexity", tmp_path / "short.txt", "--context", 4096, status=1).stderr
    assert "the model's own is 128" in told


def test_generate_as_a_schema_wants_it(model: Path, tmp_path: Path) -> None:
    schema, grammar = tmp_path / "schema.json", tmp_path / "grammar.lark"
    schema.write_text('{"type": "array", "items": {"enum": ["the", 3]}, "minItems": 2, "maxItems": 4}')
    grammar.write_text('start: "dog" | "fox"')
    found = json.loads(tract(model, "generate", "--prompt", PROMPT, "--schema", schema, "--seed", 1).stdout)
    assert set(map(str, found)) <= {"the", "3"}
    assert 2 <= len(found) <= 4
    assert tract(model, "generate", "-p", PROMPT, "--grammar", grammar).stdout.strip() in {"dog", "fox"}
    assert tract(model, "generate", "-p", PROMPT, "--regex", "[ab]{2}").stdout.strip() in {"aa", "ab", "ba", "bb"}
    schema.write_text('{"type": "nothing"}')
    failed = tract(model, "generate", "--prompt", PROMPT, "--schema", schema, status=1)
    assert "schema: Invalid type: nothing" in failed.stderr


def test_drafts_change_nothing_of_the_likeliest(model: Path) -> None:
    line = [model, "generate", "--prompt", PROMPT, "-n", 9, "--temperature", 0]
    plain = tract(*line).stdout
    for draft in ("prompt", model.parent):
        assert tract(*line, "--draft", draft, "--draft-tokens", 3).stdout == plain
    chat = ["chat", model, "--temperature", 0, "-n", 3]
    assert tract(*chat, "--draft", "prompt", given="a\nb\n").stdout == tract(*chat, given="a\nb\n").stdout
    assert "there is no such file" in tract(*line, "--draft", "nowhere", status=1).stderr


def test_a_prompt_is_kept_in_a_file(model: Path, tmp_path: Path) -> None:
    line = [model, "generate", "--prompt", PROMPT, "-n", 5, "--temperature", 0]
    plain, path = tract(*line).stdout, tmp_path / "prompt"
    assert tract(*line, "--prompt-cache", path).stdout == plain
    content = path.read_bytes()
    assert tract(*line, "--prompt-cache", path).stdout == plain
    assert path.read_bytes() == content
    path.write_bytes(content[:50])
    assert "TextModel.save_prompt" in tract(*line, "--prompt-cache", path, status=1).stderr
