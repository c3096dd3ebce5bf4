"""Chat templates of the toys: the family's own turn markers, in as few lines as will do."""

from __future__ import annotations

from collections.abc import Mapping

_TEMPLATE = """\
{{{{ {first} }}}}
{{%- set names = {names} -%}}
{{%- set marks = {marks} -%}}
{default_system}
{{%- set said = namespace(first='') -%}}
{{%- for message in messages -%}}
{{%- if {merged} and message.role == 'system' -%}}
{{%- set said.first = (message.content if message.content is string else message.content[0].text) + '\n\n' -%}}
{{%- else -%}}
{{%- set role = names.get(message.role, message.role) -%}}
{{{{ {opening} + said.first }}}}
{{%- set said.first = '' -%}}
{{%- if message.content is string -%}}
{{{{ message.content }}}}
{{%- else -%}}
{{%- for part in message.content -%}}
{{{{ part.text if part.type == 'text' else marks[part.type] }}}}
{{%- endfor -%}}
{{%- endif -%}}
{{{{ {closing} }}}}
{{%- endif -%}}
{{%- endfor -%}}
{{%- if add_generation_prompt -%}}
{{%- set role = names.get('assistant', 'assistant') -%}}
{{{{ {opening} }}}}
{{%- endif -%}}
"""

_DEFAULT_SYSTEM = """\
{{%- if messages[0].role != 'system' -%}}
{{%- set role = 'system' -%}}
{{{{ {opening} + 'You are a helpful assistant.' + {closing} }}}}
{{%- endif -%}}"""


def chat_template(
    *,
    opening: str = "<|im_start|>{role}\n",
    closing: str = "<|im_end|>\n",
    marks: Mapping[str, str],
    names: Mapping[str, str] | None = None,
    first: str = "",
    default_system: bool = False,
    merged_system: bool = False,
) -> str:
    r"""A template that frames turns with `opening` and `closing` and writes `marks` where media stand.

    With `merged_system`, what a system message says goes into the next turn.

    >>> from jinja2 import Template
    >>> text = chat_template(marks={"image": "<i>"})
    >>> Template(text).render(messages=[{"role": "user", "content": [{"type": "image"}]}])
    '<|im_start|>user\n<i><|im_end|>\n'
    """
    pieces = {"opening": _spelled(opening), "closing": repr(closing)}
    return _TEMPLATE.format(
        **pieces,
        first=repr(first),
        names=repr(dict(names or {})),
        marks=repr(dict(marks)),
        default_system=_DEFAULT_SYSTEM.format(**pieces) if default_system else "",
        merged="true" if merged_system else "false",
    )


def _spelled(opening: str) -> str:
    """A Jinja expression that puts the role in its place."""
    return " + role + ".join(repr(piece) for piece in opening.split("{role}"))
