"""What inputs and outputs of a language model are found to be, and what a past gives beside a plain loop in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny_llama import TinyLlama
from tract_transformers.generation.reading import read_prompt
from tract_transformers.language_model.description import describe
from tract_transformers.language_model.keep import description_of
from tract_transformers.language_model.past import StatelessPast, common_beginning
from tract_transformers.transforms.wanted_logits import LastLogits

from tract_core.dims import SymbolScope
from tract_core.errors import InputError, TransformError, Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum

FORMS: dict[str, dict[str, bool]] = {"contract": {}, "onnx": {"onnx_names": True}, "whole": {"past": False}}

TOKENS = [1, 5, 9, 3, 2, 60, 7, 0, 63]

NETWORK = TinyLlama()


def facts(**texts: str) -> dict[str, Any]:
    symbols = SymbolScope()
    return {name.replace("__", "."): parse_typed_fact(text, symbols) for name, text in texts.items()}


PAST = {"past__0__key": "B,2,P,8,f32", "past__0__value": "B,2,P,8,f32"}
PRESENT = {"present__0__key": "B,2,P+S,8,f32", "present__0__value": "B,2,P+S,8,f32"}
INPUTS, OUTPUTS = {"tokens": "B,S,i64", **PAST}, {"logits": "B,S,64,f32", **PRESENT}


def test_the_form_of_the_contract() -> None:
    found = describe(facts(**INPUTS), facts(**OUTPUTS))
    assert (found.tokens, found.logits, found.positions, found.mask) == ("tokens", "logits", None, None)
    assert [(one.input, one.output) for one in found.past] == [
        ("past.0.key", "present.0.key"),
        ("past.0.value", "present.0.value"),
    ]
    assert found.past[0].empty().shape == (1, 2, 0, 8)
    assert found.vocabulary == 64


def test_layers_are_in_the_order_of_their_numbers_and_may_differ() -> None:
    inputs = facts(**INPUTS, past__10__key="B,1,P,4,f16", past__10__value="B,1,P,2,f16", past__2__key="B,2,P,8,f32", past__2__value="B,2,P,8,f32")  # fmt: skip  # noqa: E501
    outputs = facts(**OUTPUTS, present__10__key="B,1,X,4,f16", present__10__value="B,1,X,2,f16", present__2__key="B,2,X,8,f32", present__2__value="B,2,X,8,f32")  # fmt: skip  # noqa: E501
    past = describe(inputs, outputs).past
    assert [one.input for one in past[::2]] == ["past.0.key", "past.2.key", "past.10.key"]
    assert past[-1].empty().shape == (1, 1, 0, 2)
    assert past[-1].empty().dtype == np.float16


def test_the_form_of_exporters_of_onnx() -> None:
    inputs = facts(
        input_ids="batch,seq,i64", attention_mask="batch,total,i64", position_ids="batch,seq,i32",
        past_key_values__0__key="batch,2,past,8,f32", past_key_values__0__value="batch,2,past,8,f32",
    )  # fmt: skip
    outputs = facts(
        logits="batch,seq,64,f32", present__0__key="batch,2,new,8,f32", present__0__value="batch,2,new,8,f32"
    )
    found = describe(inputs, outputs)
    assert (found.tokens, found.positions, found.mask) == ("input_ids", "position_ids", "attention_mask")
    assert [kind.short for kind in found.kinds] == ["i64", "i32", "i64"]


def test_other_names_where_there_is_no_doubt() -> None:
    found = describe(facts(text="B,S,i32"), facts(scores="B,S,64,f32"))
    assert (found.tokens, found.logits, found.past) == ("text", "scores", ())


@pytest.mark.parametrize(
    ("inputs", "outputs", "problem"),
    [
        ({"image": "B,3,4,4,f32"}, {"logits": "B,S,64,f32"}, "no input is named 'tokens' or 'input_ids'"),
        ({"a": "B,S,i64", "b": "B,S,i64"}, {"logits": "B,S,64,f32"}, "no input is named"),
        ({"tokens": "B,S,i64", "input_ids": "B,S,i64"}, OUTPUTS, "there are several for the input of tokens"),
        ({"tokens": "B,S,f32"}, {"logits": "B,S,64,f32"}, "'tokens' is B,S,f32, wanted whole numbers"),
        ({"tokens": "S,i64"}, {"logits": "B,S,64,f32"}, "'tokens' is S,i64"),
        (INPUTS, {"logits": "B,S,64,f32"}, r"'past.0.(key|value)' has no counterpart: no output 'present.0"),
        ({"tokens": "B,S,i64"}, OUTPUTS, "has no counterpart: no input 'past.0"),
        ({**INPUTS, "use_cache": "1,bool"}, OUTPUTS, "nobody knows what to give to 'use_cache'"),
        ({**INPUTS, "past__0__key": "B,H,P,8,f32"}, OUTPUTS, "'past.0.key' is B,H,P,8,f32, wanted B,H,P,D"),
        ({**INPUTS, "past__0__key": "B,2,32,8,f32"}, OUTPUTS, "a symbol for P"),
        ({**INPUTS, "past__0__key": "B,P,8,f32"}, OUTPUTS, "wanted B,H,P,D"),
        (INPUTS, {**OUTPUTS, "present__0__key": "B,4,T,8,f32"}, "which is not 'past.0.key'"),
        (INPUTS, {**OUTPUTS, "present__0__key": "B,2,T,8,f16"}, "which is not 'past.0.key'"),
        (INPUTS, {"y": "B,4,f32", **PRESENT}, "no output is named 'logits'"),
        ({**INPUTS, "past_key_values__0__key": "B,2,P,8,f32"}, OUTPUTS, "are both the key of layer 0"),
    ],
)
def test_what_is_no_language_model_is_refused(inputs: dict[str, str], outputs: dict[str, str], problem: str) -> None:
    with pytest.raises(Unsupported, match=f"no language model of a form that is known here: .*{problem}"):
        describe(facts(**inputs), facts(**outputs))


def past_of(form: str, *, last: bool = False, runtime: str = "cpu") -> StatelessPast:
    model = NETWORK.model(**FORMS[form])
    description = description_of(model)
    if last:
        model.transform(LastLogits(description.logits))
    runnable = model.into_runnable(runtime)
    return StatelessPast(runnable, description_of(runnable))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", [False, True])
def test_a_past_goes_on_where_it_was(form: str, last: bool) -> None:
    """Beside f64; the network has logits of about 3, so an error of 2e-5 is that of f32 through two layers."""
    exact, past = NETWORK.logits(TOKENS), past_of(form, last=last)
    for cuts in ((9,), (1,) * 9, (4, 1, 4), (8, 1)):
        past.truncate(0)
        seen = 0
        for count in cuts:
            found = past.extend(TOKENS[seen : seen + count])
            seen += count
            assert np.abs(found[-1] - exact[seen - 1]).max() < 2e-5
            assert found.shape == (1 if last else count, 64)
            assert np.abs(found - exact[seen - len(found) : seen]).max() < 2e-5
        assert list(past.tokens) == TOKENS


def test_a_past_forgets() -> None:
    past, exact = past_of("contract"), NETWORK.logits(TOKENS)
    past.extend([*TOKENS[:5], 33, 34])
    past.truncate(5)
    assert np.abs(past.extend(TOKENS[5:])[-1] - exact[-1]).max() < 2e-5
    with pytest.raises(InputError, match="the first 10 tokens cannot stay: there are 9"):
        past.truncate(10)
    with pytest.raises(InputError):
        past.truncate(-1)


def test_a_prompt_is_read_in_chunks_and_not_twice() -> None:
    exact = NETWORK.logits(TOKENS)
    for chunk in (1, 2, 4, 9, 100):
        assert np.abs(read_prompt(past_of("contract"), TOKENS, chunk) - exact[-1]).max() < 2e-5
    past, asked = past_of("contract"), []
    extend = past.extend
    past.extend = lambda tokens: asked.append(list(tokens)) or extend(tokens)  # type: ignore[method-assign]
    read_prompt(past, [*TOKENS[:6], 40, 41])
    assert np.abs(read_prompt(past, TOKENS) - exact[-1]).max() < 2e-5
    assert asked[1:] == [TOKENS[6:]]
    read_prompt(past, TOKENS)
    assert asked[2:] == [TOKENS[-1:]]
    assert common_beginning([1, 2], [1, 2, 3]) == 2


@pytest.mark.parametrize("tokens", [[], [64], [-1], [1, 1 << 40]])
def test_tokens_that_a_model_does_not_have(tokens: list[int]) -> None:
    past = past_of("contract", runtime="reference")
    with pytest.raises(InputError, match=r"there are no tokens|is outside the model's vocabulary of 64"):
        past.extend(tokens)
    assert list(past.tokens) == []


def test_only_the_last_logits_are_computed() -> None:
    model = NETWORK.model()
    model.transform(LastLogits("logits"))
    typed = model.typed
    assert model.output_names()[0] == "logits"
    assert str(typed.outlet_fact(typed.outputs[0])) == "B,1,64,f32"
    products = [typed.outlet_fact(node.outlets()[0]) for node in typed.live_nodes() if isinstance(node.op, EinSum)]
    assert not [fact for fact in products if fact.shape[-1] == 64 and fact.shape[1] != 1]


def test_last_logits_of_what_is_computed_otherwise() -> None:
    model = TypedModel()
    model.set_outputs([model.add_source("logits", parse_typed_fact("B,S,4,f32", model.symbols))])
    found = LastLogits("logits").apply(model)
    assert str(found.outlet_fact(found.outputs[0])) == "B,1,4,f32"
    assert found.outlet_name(found.outputs[0]) == "logits"
    for name in ("other", "past"):
        with pytest.raises(TransformError, match="there is no output"):
            LastLogits(name).apply(model)
