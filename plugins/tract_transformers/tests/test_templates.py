"""Chat templates: what they write, and that none goes on for ever, grows without end, or reaches out."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from tract_transformers.templates.template import ChatTemplate

from tract_core.errors import CorruptModel, InputError, LimitExceeded, TractError
from tract_core.testing.hostile import bounded

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello {{ x }} <b>"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "Größe?"},
]

CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""


def test_the_widely_used_form() -> None:
    wanted = "".join(f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in TALK)
    assert ChatTemplate(CHATML).render(TALK) == wanted + "<|im_start|>assistant\n"
    assert ChatTemplate(CHATML).render(TALK, add_generation_prompt=False) == wanted


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>Be brief.</s>"),
        ("{{ messages | length }} {{ messages[-1]['content'] | upper | trim }}", "4 GRÖSSE?"),
        ("{{ messages[3] | tojson }}", json.dumps(TALK[3], ensure_ascii=False)),
        ("{{ {'a': [1, 2]} | tojson(indent=2) }}", json.dumps({"a": [1, 2]}, indent=2)),
        ("{{ strftime_now('%Y') }}", str(datetime.now().year)),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ loop.index }}{% endfor %}", "234"),
        ("{% for m in messages %}{% if loop.last %}!{% endif %}{{ loop.length }}{% endfor %}", "444!4"),
        ("{% for i in range(5) %}{{ i }}{% if i == 2 %}{% break %}{% endif %}{% endfor %}", "012"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "4"),
        ("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f('a') ~ f(2) }}", "[a][2]"),
        ("{% generation %}a{% endgeneration %}b", "ab"),
        ("{% if tools is none and missing is not defined %}ok{% endif %}", "ok"),
        (
            "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(', ') }}",
            "Hello {{ x }} <b>, Größe?",
        ),
        ("{{ 'a,b'.split(',')[1] }}{{ 'x'.startswith('x') }}{{ ' a '.strip() }}", "bTruea"),
        ("{{ '%s-%d' % ('a', 3) }}{{ '{}'.format(4) }}{{ 'ab' * 2 }}{{ [1] + [2] }}", "a-34abab[1, 2]"),
        ("{{ messages[::-1][0].role }}{% set a, b = 1, 2 %}{{ b }}", "user2"),
        ("{{ 'a\nb' | indent(2) }}{{ 'aXa'.replace('X', '-') }}{{ 'aXa' | replace('X', '+') }}", "a\n  ba-aa+a"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}{{ {'b': 2} | items | list }}", "a1[('b', 2)]"),
        ("{% set x %}block{% endset %}{{ x }}{{ none }}", "blockNone"),
        ("a\n  {% if true %}\nb\n  {% endif %}\nc", "a\nb\nc"),
    ],
)
def test_what_templates_of_models_use(source: str, written: str) -> None:
    assert ChatTemplate(source).render(TALK, {"bos_token": "<s>", "eos_token": "</s>"}) == written


def test_a_template_that_refuses_says_so() -> None:
    with pytest.raises(InputError, match="chat template: it refuses the conversation: no system"):
        ChatTemplate("{{ raise_exception('no system') }}").render(TALK)


@pytest.mark.parametrize(
    "source", ["{% for %}", "{{", "{% if x %}", "{% foo %}", "{{ x | nofilter }}", "(" * 10 + "{{" + "(" * 5000]
)
def test_what_is_no_template(source: str) -> None:
    with pytest.raises(CorruptModel, match="chat template: "):
        ChatTemplate(source)


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ missing.x.y }}", "{{ messages.nothing() }}", "{% include 'a' %}", "{{ 'a' + 1 }}"]
)
def test_a_template_that_fails(source: str) -> None:
    with pytest.raises(CorruptModel, match="chat template: it fails: "):
        ChatTemplate(source).render(TALK)


@pytest.mark.parametrize("source", [
    "{{ ''.__class__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(role='x') }}",
    "{{ self.__init__.__globals__ }}",
    "{{ raise_exception.__globals__['json'] }}",
    "{{ ''.format.__self__ }}{{ '{0.__class__.__mro__}'.format(1).x() }}",
])  # fmt: skip
def test_a_template_reaches_nothing(source: str) -> None:
    """It fails, or writes nothing."""
    try:
        assert ChatTemplate(source).render(TALK) == ""
    except TractError as error:
        assert isinstance(error, CorruptModel)  # noqa: PT017
    assert TALK[0] == {"role": "system", "content": "Be brief."}


DOUBLING = "{{% set ns = namespace(x={}) %}}{{% for i in range(60) %}}{{% set ns.x = {} %}}{{% endfor %}}{{{{ ns.x }}}}"

HOSTILE = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops of letters": "{% for a in 'x' * 99999 %}{% for b in 'x' * 99999 %}{% endfor %}{% endfor %}",
    "a long range": "{% for a in range(10 ** 9) %}{% endfor %}",
    "doubled by ~": DOUBLING.format("'ab'", "ns.x ~ ns.x"),
    "doubled by +": DOUBLING.format("'ab'", "ns.x + ns.x"),
    "lists doubled": DOUBLING.format("[1]", "ns.x + ns.x"),
    "lists in lists": DOUBLING.format("[1]", "[ns.x, ns.x]"),
    "dictionaries": DOUBLING.format("{}", "{'a': ns.x, 'b': ns.x}"),
    "tuples": DOUBLING.format("(1,)", "(ns.x, ns.x)"),
    "dict()": DOUBLING.format("{}", "dict(a=ns.x, b=ns.x)"),
    "doubled by join": DOUBLING.format("'ab'", "[ns.x, ns.x] | join"),
    "doubled by .join": DOUBLING.format("'ab'", "''.join([ns.x, ns.x])"),
    "doubled by %": DOUBLING.format("'ab'", "'%s%s' % (ns.x, ns.x)"),
    "doubled by format": DOUBLING.format("'ab'", "'{0}{0}'.format(ns.x)"),
    "doubled by replace": DOUBLING.format("'ab'", "ns.x.replace('', ns.x)"),
    "doubled by a filter": DOUBLING.format("'ab'", "ns.x | replace('', ns.x)"),
    "numbers squared": DOUBLING.format("9", "ns.x * ns.x"),
    "written twice": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set t %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = t %}{% endfor %}",  # noqa: E501
    "a macro that calls itself": "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "a tree of macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "a loop that calls itself": "{% for x in [1, 2, 3] recursive %}{% if loop.depth < 40 %}{{ loop([1, 2, 3]) }}{% endif %}{% endfor %}",  # noqa: E501
    "text repeated": "{{ 'x' * 10 ** 9 }}",
    "a list repeated": "{{ [1] * 10 ** 9 }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "a wide format": "{{ '%999999999d' % 1 }}",
    "a width by a star": "{{ '%*d' % (10 ** 9, 1) }}",
    "a wide format()": "{{ '{:999999999}'.format(1) }}",
    "a wide format() by a number": "{{ '{:{}}'.format(1, 10 ** 9) }}",
    "centred": "{{ 'x'.center(10 ** 9) }}",
    "centred by a filter": "{{ 'x' | center(10 ** 9) }}",
    "filled": "{{ 'x'.zfill(10 ** 9) }}",
    "tabulators": "{{ ('\t' * 100000).expandtabs(99999) }}",
    "indented": "{{ ('\n' * 90000) | indent(90000) }}",
    "a year": "{{ strftime_now('%999999999Y') }}",
    "words": "{{ lipsum(n=99999) }}",
    "JSON": "{{ {'a': [1, 2]} | tojson(indent=10 ** 6) }}",
    "long texts in a loop": "{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}",
    "long constants in a loop": "{% for i in range(99999) %}" + "x" * 5000 + "{% endfor %}",
    "long texts in a macro": "{% macro f() %}{% for i in range(99999) %}" + "x" * 5000 + "{% endfor %}{% endmacro %}{% set x = f() %}",  # noqa: E501
    "a map": "{{ range(99999) | map('replace', '', 'x' * 90000) | list | length }}",
    "a batch": "{{ range(9) | batch(10 ** 9, 'x') | list | length }}",
}  # fmt: skip


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_template_that_wants_too_much_is_stopped(source: str) -> None:
    """What would take gigabytes or hours ends at once."""
    with bounded(6, 300 << 20), pytest.raises((LimitExceeded, CorruptModel)) as caught:
        ChatTemplate(source).render(TALK)
    assert not isinstance(caught.value.__cause__, MemoryError)


def test_a_long_conversation_is_no_attack() -> None:
    talk = [{"role": role, "content": "word " * 2000} for role in ("user", "assistant") * 150]
    assert len(ChatTemplate(CHATML).render(talk)) > 3_000_000
    assert len(ChatTemplate("{{ messages | tojson }}").render(talk)) > 3_000_000


def test_a_template_that_is_too_long() -> None:
    with pytest.raises(LimitExceeded):
        ChatTemplate("x" * 2_000_000)
