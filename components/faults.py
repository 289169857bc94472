"""Faults in the stack's config, told in one line each: the key, its value, and what is accepted."""

import difflib
import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from components.field_types import Accepts

SHOWN_AT_MOST = 80


def fault_lines(error: ValidationError, model: type[BaseModel], prefix: str, secret: Iterable[str]) -> list[str]:
    """One line per fault of a failed validation of `model`.

    `prefix` is the config namespace with its colon; the values of top-level keys in `secret` are not shown.
    """
    hidden = set(secret)
    return [_line(details, model, prefix, str(next(iter(details["loc"]), "")) in hidden) for details in error.errors()]


def _line(details: ErrorDetails, model: type[BaseModel], prefix: str, hide: bool) -> str:
    path = [part for part in details["loc"] if part != "[key]"]
    key = prefix + dotted(path)
    match details["type"]:
        case "extra_forbidden":
            return f"{key} is not a setting; {_suggestion(path, model)}"
        case "missing":
            return f"{key} is missing; accepted: {_accepts(path, model)}"
    value = "[secret]" if hide else shown(details["input"])
    return f"{key} is {value}; accepted: {_accepts(path, model)}"


def misspelt_namespaces(keys: Iterable[str], namespaces: Sequence[str]) -> list[str]:
    """One line for each key in a config namespace that is nearly one of these: Pulumi takes it, and nobody reads it.

    >>> misspelt_namespaces(["tftrainr:numNodes", "tftrainer:epochs", "aws:region"], ["tftrainer", "kubernetes"])
    ['tftrainr:numNodes is in a config namespace that nothing reads; did you mean tftrainer:numNodes?']
    """
    lines = []
    for namespace, _, key in (key.partition(":") for key in keys):
        close = difflib.get_close_matches(namespace, namespaces, n=1, cutoff=0.8)
        if close and close[0] != namespace:
            lines.append(
                f"{namespace}:{key} is in a config namespace that nothing reads; did you mean {close[0]}:{key}?"
            )
    return lines


def dotted(path: Iterable[str | int]) -> str:
    """The path as `pulumi config set --path` takes it.

    >>> dotted(["tolerations", 0, "effect"]), dotted(["nodeSelector", "a.b/c"])
    ('tolerations[0].effect', 'nodeSelector["a.b/c"]')
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not text:
            text = part
        else:
            text += f'["{part}"]' if "." in part else f".{part}"
    return text


def shown(value: Any) -> str:
    """The value as it stands in the config file, cut when long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_AT_MOST else f"{text[:SHOWN_AT_MOST]}..."


def fields_by_key(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """The model's fields under the names that the config uses."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def nested_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as `Model`, `Model | None`, `tuple[Model, ...]` or `dict[str, Model]`."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    if get_origin(annotation) in (Annotated, Union, types.UnionType, tuple, dict):
        return next((model for part in get_args(annotation) if (model := nested_model(part))), None)
    return None


def all_keys(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Every key of the model and of the models in it, dotted."""
    for key, field in fields_by_key(model).items():
        yield above + key
        if inner := nested_model(field.annotation):
            yield from all_keys(inner, f"{above}{key}.")


def accepted_words(field: FieldInfo) -> str:
    """The words of the field's type, be it optional or not; "" when it has none."""
    parts = [getattr(part, "__metadata__", ()) for part in get_args(field.annotation)]
    return next((data.text for data in chain(field.metadata, *parts) if isinstance(data, Accepts)), "")


def _accepts(path: Sequence[str | int], model: type[BaseModel]) -> str:
    """What the setting at the path accepts: its own words, or the keys of the object that it is."""
    words = "the settings that the README lists"
    where: type[BaseModel] | None = model
    for part in path:
        field = fields_by_key(where).get(str(part)) if where and isinstance(part, str) else None
        if field is None:
            continue  # an item of a list or a map: described with the whole
        where = nested_model(field.annotation)
        if own := accepted_words(field):
            words = own
        elif where:
            words = f"an object with the keys {', '.join(fields_by_key(where))}"
    return words


def _suggestion(path: Sequence[str | int], model: type[BaseModel]) -> str:
    """What an unknown key may have meant: a neighbour, the same name elsewhere, or else what there is."""
    where = model
    for part in path[:-1]:
        field = fields_by_key(where).get(str(part))
        where = (field and nested_model(field.annotation)) or where
    unknown = _folded(str(path[-1]))
    if path[-1] in set(all_keys(model)):
        return f"did you mean the nested key? Set it with `pulumi config set --path {path[-1]}`"
    neighbours = {_folded(key): dotted([*path[:-1], key]) for key in fields_by_key(where)}
    elsewhere = {_folded(key.rpartition(".")[2]): key for key in reversed(list(all_keys(model)))}
    for known in (neighbours, elsewhere):
        if close := difflib.get_close_matches(unknown, known, n=1, cutoff=0.6):
            return f"did you mean {known[close[0]]}?"
    return f"accepted: {', '.join(fields_by_key(where))}"


def _folded(key: str) -> str:
    """Spelling differences that do not matter when guessing: num_nodes, num-nodes and NUMNODES mean numNodes."""
    return key.replace("_", "").replace("-", "").lower()
