"""A frame is what a template writes around any texts at all; where that depends on a text, there is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lading.encode.opaque import Looked, Opaque, frame, opaque

LOOP = "{%% for m in messages %%}<{{ m.role }}>%s</{{ m.role }}>{%% endfor %%}"
SEEN_THROUGH = {
    "plain": LOOP % "{{ m.content }}",
    "joined": LOOP % "{{ '(' + m.content + ')' }}",
    "twice": LOOP % "{{ m.content }}{{ m.content }}",
    "by role": LOOP % "{% if m.role == 'user' %}{{ m.content }}{% else %}[{{ m['content'] }}]{% endif %}",
    "string or not": LOOP % "{% if m.content is string %}{{ m.content }}{% endif %}",
    "role in a list": LOOP % "{% if m.role in ['user', 'tool'] %}!{% endif %}{{ m.content }}",
    "unused tools": "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" + LOOP % "{{ m.content }}",
    "counted": "{% set n = namespace(i=0) %}" + LOOP % "{% set n.i = n.i + 1 %}{{ n.i }}{{ m.content }}",
    "set": LOOP % "{% set said = m.content %}{{ said }}",
    "renamed roles": "{% set names = {'user': 'human'} %}" + LOOP % "{{ names.get(m.role, m.role) }} {{ m.content }}",
    "capital role": LOOP % "{{ m.role | capitalize }}: {{ m.content }}",
}
LOOKED_INTO = {
    "trimmed": LOOP % "{{ m.content | trim }}",
    "method": LOOP % "{{ m.content.strip() }}",
    "split": LOOP % "{{ m.content.split('</think>')[-1] }}",
    "empty": LOOP % "{% if m.content %}{{ m.content }}{% endif %}",
    "length": LOOP % "{% if m.content | length > 3 %}{{ m.content }}{% endif %}",
    "contains": LOOP % "{% if 'a' in m.content %}{{ m.content }}{% endif %}",
    "contained": LOOP % "{% if m.content in 'abc' %}!{% endif %}{{ m.content }}",
    "contained, by a test": LOOP % "{% if m.content is in 'abc' %}!{% endif %}{{ m.content }}",
    "contained, by a filter": "{{ messages | selectattr('content', 'in', 'abc') | list | length }}",
    "in lower case": LOOP % "{% if m.content is lower %}!{% endif %}{{ m.content }}",
    "contained in a text that was set": "{% set x = 'abc' %}" + LOOP % "{% if m.content in x %}!{% endif %}",
    "equal": LOOP % "{% if m.content == 'a' %}!{% endif %}{{ m.content }}",
    "one of a list": LOOP % "{% if m.content in ['a', 'b'] %}!{% endif %}{{ m.content }}",
    "sliced": LOOP % "{{ m.content[:1] }}",
    "letters": LOOP % "{% for c in m.content %}{{ c }}.{% endfor %}",
    "capital": LOOP % "{{ m.content | capitalize }}",
    "json in ASCII": LOOP % "{{ m.content | tojson(indent=2) }}",
    "a key": LOOP % "{{ {'a': 1}.get(m.content) }}",
    "json": LOOP % "{{ m.content | tojson }}",
    "joined and looked at": LOOP % "{% if 'a' in m.content + 'b' %}!{% endif %}",
    "joined otherwise": LOOP % "{{ ('a' ~ m.content) }}",
    "joined otherwise and looked at": LOOP % "{% if ('x' ~ m.content) == 'xa' %}!{% endif %}",
    "formatted": LOOP % "{% if '%s' % m.content == 'a' %}!{% endif %}",
    "macro": "{% macro say(t) %}{{ t }}{% endmacro %}" + LOOP % "{{ say(m.content) }}",
    "block": LOOP % "{% set said %}{{ m.content }}{% endset %}{% if said == 'a' %}!{% endif %}{{ said }}",
    "a sequence": LOOP % "{% if m.content is sequence %}{{ m.content | trim }}{% else %}{{ m.content }}{% endif %}",
    "a sequence, by a filter": "{{ messages | selectattr('content', 'sequence') | list | length }}",
    "an argument": LOOP % "{{ 'say no more' | trim(m.content) }}{{ m.content }}",
    "a name of a list's": LOOP % "{% if messages[m.content] is defined %}!{% endif %}{{ m.content }}",
    "a function of the same name": "{% set range = 'yes'.startswith %}"
    + LOOP % "{% if range(m.content) %}!{% endif %}",
    "a method of the same name": "{% set n = namespace(get='yes'.startswith) %}" + LOOP % "{{ n.get(m.content) }}",
    "set to a method of the same name": "{% set n = namespace() %}{% set n.get = 'a'.join %}"
    + LOOP % "{{ m.content }}",
    "one of these characters": LOOP % "{{ '\U000f0001' + m.content }}",
    "other filter": LOOP % "{{ m.content | replace('a', 'b') }}",
    "the time": "{{ strftime_now('%Y') }}" + LOOP % "{{ m.content }}",
}


def environment() -> ImmutableSandboxedEnvironment:
    own = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    own.globals["strftime_now"] = lambda said: said
    return own


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


@pytest.mark.parametrize("name", SEEN_THROUGH)
@settings(max_examples=50)
@given(texts=st.lists(st.text(max_size=4), min_size=1, max_size=3))
def test_a_frame_with_texts_in_it_is_what_the_template_writes(name: str, texts: list[str]) -> None:
    source = SEEN_THROUGH[name]
    template = environment().from_string(source)
    found = frame(template, source, said(*map(opaque, range(len(texts)))), tools=None)
    assert found is not None
    assert "".join(texts[part] if isinstance(part, int) else part for part in found) == template.render(
        messages=said(*texts), tools=None
    )


@pytest.mark.parametrize("name", LOOKED_INTO)
def test_a_template_that_looks_into_a_text_has_no_frame(name: str) -> None:
    source = LOOKED_INTO[name]
    assert frame(environment().from_string(source), source, said(opaque(0), opaque(1))) is None


def test_a_text_cannot_be_joined_to_what_is_not_there() -> None:
    source = LOOP % "{{ m.content + m.nothing }}"
    with pytest.raises(TemplateError):
        frame(environment().from_string(source), source, said(opaque(0)))


@pytest.mark.parametrize("name", sorted(name for name in dir(str) if not name.startswith("_")))
def test_no_method_of_a_text_is_answered(name: str) -> None:
    with pytest.raises(Looked):
        getattr(Opaque("text"), name)
