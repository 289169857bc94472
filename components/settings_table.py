"""The settings as tables: every key in docs/config.md, the top-level ones in the README.

`python -m components.settings_table` (or `make docs`) writes both; a test keeps them in step with the settings.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from components.faults import accepted_words, fields_by_key, nested_model
from components.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
CONFIG = ROOT / "docs" / "config.md"
BEGIN = "<!-- settings: begin (made by `make docs`) -->\n"
END = "<!-- settings: end -->\n"
INTRODUCTION = """\
# Settings

Made by `make docs` from [components/settings.py](../components/settings.py); edit that.

All keys go into `Pulumi.<stack>.yaml`, with the project's name before the first part (`tftrainer:numNodes`), or are set
with `pulumi config set numNodes 3` and, inside an object, `pulumi config set --path volcano.queue.weight 2`. A wrong
key, type or value is refused at preview with one line that says what is accepted. Amounts are Kubernetes quantities
(`500m`, `16Gi`), times are whole seconds. `[]` stands for the items of a list, `*` for a name of your own.

NCCL's variables have no settings of their own: they go into `env`, or with InfiniBand into `infiniband.ncclEnv`.

"""


def config_page() -> str:
    """docs/config.md."""
    rows = [(f"`{key}`", _accepts(field), _default(field), _meaning(field)) for key, field in every_field(Settings)]
    return INTRODUCTION + _table(("key", "accepts", "default", "meaning"), rows)


def readme_page(text: str) -> str:
    """The README with its table made anew. Raises ValueError when it lacks the marks around the table."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{README.name} lacks the lines {BEGIN.strip()} and {END.strip()}")
    rows = []
    for key, field in fields_by_key(Settings).items():
        inner = nested_model(field.annotation)
        keys = f" Keys: {', '.join(f'`{one}`' for one in fields_by_key(inner))}." if inner else ""
        rows.append((f"`{key}`", _default(field), _meaning(field) + keys))
    return before + BEGIN + _table(("key", "default", "meaning"), rows) + END + after


def every_field(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key of the model and of the models in it, dotted, in their order."""
    for key, field in fields_by_key(model).items():
        yield above + key, field
        if inner := nested_model(field.annotation):
            origin = get_origin(field.annotation)
            items = "[]" if origin is tuple else ".*" if origin is dict else ""
            yield from every_field(inner, f"{above}{key}{items}.")


def _accepts(field: FieldInfo) -> str:
    return accepted_words(field) or ("a list of objects" if get_origin(field.annotation) is tuple else "an object")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.default
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return ""  # told key by key
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _meaning(field: FieldInfo) -> str:
    inner = nested_model(field.annotation)
    return " ".join((field.description or (inner and inner.__doc__) or "").split())


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    CONFIG.write_text(config_page())
    README.write_text(readme_page(README.read_text()))
