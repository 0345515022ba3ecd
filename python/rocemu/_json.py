"""From the command's JSON to dataclasses. Fields are only ever added to that JSON (docs/control.md),
and this package may be the older or the newer side: what it does not know is left out, what is not
there has the default of its field."""
from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


_known: dict[Any, dict[str, Any]] = {}


def _fields(kind: Any) -> dict[str, Any]:
    if kind not in _known:
        hints = get_type_hints(kind)
        _known[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return _known[kind]


def _value(kind: Any, data: Any) -> Any:
    if get_origin(kind) is Union:  # Optional
        return None if data is None else _value(get_args(kind)[0], data)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], each) for each in data)
    return from_json(kind, data) if isinstance(kind, type) and dataclasses.is_dataclass(kind) else data


def from_json(kind: type[T], data: dict[str, Any]) -> T:
    """An object of the dataclass `kind`, whose fields have the names of the JSON's."""
    return kind(**{name: _value(hint, data[name]) for name, hint in _fields(kind).items()
                   if name in data})
