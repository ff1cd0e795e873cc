"""The page: complete, asking nobody for anything, and deaf to what a model says."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tract_view import page_of
from tract_view.constants import ConstantTable
from tract_view.document import Document, document_of
from tract_view.entries import LONGEST_NAME, LONGEST_TEXT, entries_of
from tract_view.page import SCRIPTS, served_html, whole_html
from tract_view.snapshots import Snapshot
from viewed_models import chain, layers, named, saved

import tract_core
from tract_core import Model
from tract_core.errors import InputError

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "javascript:alert(1)",
    "\"onmouseover='alert(1)",
    "{{7*7}}${7*7}",
    "]]></style><svg onload=alert(1)>",
)


class Page(HTMLParser):
    """What a browser would find in a page: the scripts, and everything with an address in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.addresses: list[str | None] = []
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(dict(attrs))
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def document(*names: str, title: str = "model.onnx") -> Document:
    constants = ConstantTable()
    entries = tuple(entries_of(chain(*names), constants))
    return document_of(title, [Snapshot("load", entries, {})], constants)


def unpacked(html: str, piece: str) -> Any:
    (found,) = re.findall(rf'id="piece-{piece}">([A-Za-z0-9+/=]*)</script>', html)
    return json.loads(gzip.decompress(b64decode(found)))


def test_a_whole_page_holds_the_model_as_letters_that_mean_nothing() -> None:
    html = whole_html(document(*HOSTILE, title=HOSTILE[0]))
    found = Page(html)
    assert found.tags <= {
        *("html", "head", "meta", "title", "style", "script", "body", "header", "h1", "label", "select", "input"),
        *("button", "span", "p", "main", "nav", "div", "aside", "noscript"),
    }
    assert (found.addresses, found.handlers) == ([], [])
    assert set(HOSTILE) <= set(unpacked(html, "stage-0")["texts"])
    assert unpacked(html, "summary")["title"] == HOSTILE[0]


def test_only_the_scripts_of_the_page_run() -> None:
    html = whole_html(document("a"))
    (nonce,) = set(re.findall(r'nonce="([^"]+)"', html))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy.startswith(f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}';")
    assert "unsafe" not in policy
    scripts = Page(html).scripts
    assert [one.get("type") for one in scripts if "nonce" not in one] == ["application/octet-stream"] * 3
    assert sum(one.get("nonce") == nonce for one in scripts) == len(SCRIPTS)
    assert nonce not in whole_html(document("a"))


def test_a_served_page_has_no_script_in_it() -> None:
    html = served_html(document(*HOSTILE, title=HOSTILE[0]))
    found = Page(html)
    assert [one.get("src") for one in found.scripts] == list(SCRIPTS)
    assert found.addresses == ["view.css", *SCRIPTS]
    assert found.handlers == []


def test_the_sources_of_the_page_make_no_markup_of_texts_and_ask_nobody() -> None:
    from tract_view.page import source

    for name in (*SCRIPTS, "view.css", "view.html"):
        text = source(name)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text), name
        assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert "</script" not in text
        assert not name.endswith(".js") or text.count("fetch(") <= 1


def test_long_texts_are_cut_and_that_is_said() -> None:
    found = unpacked(whole_html(document("n" * 100_000)), "stage-0")
    (name,) = (found["texts"][one] for one in found["name"] if found["texts"][one].startswith("nn"))
    assert name == "n" * LONGEST_NAME + "… (100000 characters)"
    assert max(map(len, found["texts"])) < LONGEST_TEXT + 40


def test_numbers_that_json_does_not_know_are_none_of_it() -> None:
    model = chain("a")
    weight = model.add_const("odd", np.array([np.nan, np.inf, -np.inf], np.float32))
    model.set_outputs([*model.outputs, weight])
    constants = ConstantTable()
    entries = tuple(entries_of(model, constants))
    pieces = document_of("m", [Snapshot("load", entries, {})], constants).pieces
    assert all(json.loads(text, parse_constant=pytest.fail) for text in pieces.values())


def test_models_in_memory(tmp_path: Path) -> None:
    path = saved(tmp_path, layers(2, named))
    model = tract_core.load(path)
    summary = unpacked(page_of(model, title="mine"), "summary")
    assert (summary["title"], [one["name"] for one in summary["stages"]]) == ("mine", ["the model"])
    assert not model.is_consumed
    assert len(unpacked(page_of(tract_core.onnx().load(path)), "stage-0")["name"]) >= 22
    runnable = tract_core.load(path).into_runnable("reference")
    plain = unpacked(page_of(runnable), "stage-1")
    assert (len(plain["placings"]), plain["times"]) == (20, None)
    timed = unpacked(page_of(runnable, [np.ones((1, 4), np.float32)]), "stage-1")
    assert timed["times"]["runtime"] == "reference"
    assert len(timed["times"]["parts"]) == 20


def test_inputs_are_for_what_runs() -> None:
    model = Model.from_typed(chain("a"))
    with pytest.raises(TypeError, match=r"give model\.into_runnable\(\)"):
        page_of(model, [np.ones((2, 3), np.float32)])
    with pytest.raises(InputError, match="x"):
        page_of(model.into_runnable("reference"), [np.ones((5, 3), np.float32)])
