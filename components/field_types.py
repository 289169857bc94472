"""The types of single settings: each knows what it accepts and says so in words."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Accepts:
    """What a setting accepts, in words: the end of its fault line."""

    text: str


def whole(pattern: str, longest: int = 253) -> Callable[[str], str]:
    """A validator that admits text of at most `longest` characters that matches the pattern from start to end."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if len(value) > longest or compiled.fullmatch(value) is None:
            raise ValueError("does not match")
        return value

    return check


def or_empty(check: Callable[[str], str]) -> Callable[[str], str]:
    """The same validator, admitting "" (not set) as well."""
    return lambda value: value and check(value)


def not_empty(values: tuple[str, ...]) -> tuple[str, ...]:
    """The values, of which there must be one. (pydantic's own bound also counts against items that are wrong.)"""
    if not values:
        raise ValueError("empty")
    return values


def one_fault(value: Any, validated: ValidatorFunctionWrapHandler) -> Any:
    """The value as one of a union's types, or one fault rather than one for each of them."""
    try:
        return validated(value)
    except ValidationError as error:
        raise ValueError("none of the types") from error


# --- Kubernetes quantities (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/) ---
QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|Ki|[MGTPE]i?|e[0-9]{1,2})?")
SUFFIXES = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000), "Ki": Decimal(1024)} | {
    letter + i: Decimal(base) ** power
    for power, letter in enumerate("MGTPE", 2)
    for i, base in (("", 1000), ("i", 1024))
}
MEBIBYTE = 2**20


def quantity(text: str) -> Decimal:
    """The number a Kubernetes quantity stands for.

    >>> quantity("500m"), quantity("2"), quantity("1Gi")
    (Decimal('0.500'), Decimal('2'), Decimal('1073741824'))

    Raises ValueError for anything else, signs included: nothing here can be negative.
    """
    match = QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Decimal(match[1]), match[2] or ""
    return number.scaleb(int(suffix[1:])) if suffix[:1] == "e" else number * SUFFIXES[suffix]


def number_as_text(value: Any) -> Any:
    """YAML reads `cpu: 2` as a number; as a quantity it is the text "2"."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def integer_as_text(value: Any) -> Any:
    """`pulumi config set --path env.EPOCHS 50` stores a number. Other numbers stay out: 1.10 would become "1.1"."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def at_least(least: Decimal) -> Callable[[str], str]:
    """A validator that admits quantities of at least `least`."""

    def check(value: str) -> str:
        if quantity(value) < least:
            raise ValueError("too small")
        return value

    return check


# --- Texts ---
LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
IMAGE = rf"({SUBDOMAIN}(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?"
PATH = r"/(?!(.*/)?\.\.(/|$))[^:\n]*"

Text = Annotated[str, Accepts("text")]
Flag = Annotated[bool, Accepts("true or false, without quotes")]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1), Accepts("a whole number of at least 1, without quotes")]
NotNegative = Annotated[int, Field(ge=0, le=2**31 - 1), Accepts("a whole number of at least 0, without quotes")]
Number = Annotated[int | float, WrapValidator(one_fault), Accepts("a number")]
Value = Annotated[int | float | str, WrapValidator(one_fault), Accepts("a number or a text")]
Values = Annotated[tuple[Value, ...], Accepts("a list of numbers or texts")]
Port = Annotated[int, Field(ge=1024, le=65535), Accepts("a port from 1024 to 65535, without quotes")]

JobName = Annotated[
    str,
    AfterValidator(whole("[a-z]([-a-z0-9]*[a-z0-9])?", 63)),
    Accepts("at most 48 lower-case letters, digits and -, starting with a letter and not ending with - (RFC 1035)"),
]
_NAMESPACE = "a namespace's name: at most 63 lower-case letters, digits and -"
Namespace = Annotated[str, AfterValidator(whole(LABEL, 63)), Accepts(_NAMESPACE)]
Namespaces = Annotated[tuple[Namespace, ...], Accepts(f"a list; each item {_NAMESPACE}")]
_OBJECT_NAME = "an object's name: at most 253 lower-case letters, digits, - and ."
ObjectName = Annotated[str, AfterValidator(whole(SUBDOMAIN)), Accepts(_OBJECT_NAME)]
OptionalName = Annotated[str, AfterValidator(or_empty(whole(SUBDOMAIN))), Accepts(f'{_OBJECT_NAME}, or "" for none')]
Names = Annotated[tuple[ObjectName, ...], Accepts(f"a list; each item {_OBJECT_NAME}")]
NetworkNames = Annotated[
    tuple[Annotated[str, AfterValidator(whole(rf"({LABEL}/)?{SUBDOMAIN}"))], ...],
    AfterValidator(not_empty),
    Accepts("a list of at least one NetworkAttachmentDefinition, each as name or namespace/name"),
]
OptionalImage = Annotated[
    str,
    AfterValidator(or_empty(whole(IMAGE, 500))),
    Accepts('an image such as registry/name:tag, or "" for the default'),
]
OptionalPath = Annotated[
    str, AfterValidator(or_empty(whole(PATH, 4096))), Accepts('an absolute path without "..", or "" for none')
]
OptionalScript = Annotated[
    str,
    AfterValidator(or_empty(whole(r"[^\0\n]*\.py", 4096))),
    Accepts('the path of a Python file (.py), relative to the project, or "" for the built-in training'),
]
Arguments = Annotated[
    tuple[Annotated[str, BeforeValidator(integer_as_text)], ...],
    Field(max_length=128),
    Accepts("a list of at most 128 texts"),
]

_QUANTITY_WORDS = "a quantity such as"
Quantity = Annotated[str, BeforeValidator(number_as_text), AfterValidator(at_least(Decimal(0)))]
Cpu = Annotated[
    str,
    BeforeValidator(number_as_text),
    AfterValidator(or_empty(at_least(Decimal("0.001")))),
    Accepts(f'CPUs, {_QUANTITY_WORDS} 2 or 500m, or "" for no request'),
]
Memory = Annotated[
    str,
    BeforeValidator(number_as_text),
    AfterValidator(or_empty(at_least(Decimal(MEBIBYTE)))),
    Accepts(f'bytes, {_QUANTITY_WORDS} 512Mi or 16Gi, or "" for no request'),
]
SharedMemory = Annotated[
    str,
    BeforeValidator(number_as_text),
    AfterValidator(or_empty(at_least(Decimal(MEBIBYTE)))),
    Accepts(f'bytes, {_QUANTITY_WORDS} 2Gi, or "" for the container runtime\'s own (64Mi)'),
]
ResourceName = Annotated[str, AfterValidator(whole(rf"cpu|memory|pods|ephemeral-storage|{SUBDOMAIN}/{QUALIFIED}"))]
ResourceAmounts = Annotated[
    dict[ResourceName, Quantity],
    Accepts(f"resources (cpu, memory, nvidia.com/gpu, ...), each with {_QUANTITY_WORDS} 4, 500m or 16Gi"),
]
DeviceResource = Annotated[
    str,
    AfterValidator(whole(f"{SUBDOMAIN}/{QUALIFIED}")),
    Accepts("a device plugin's resource such as nvidia.com/hostdev"),
]
EnvName = Annotated[str, AfterValidator(whole("[A-Za-z_][A-Za-z0-9_]*"))]
Environment = Annotated[
    dict[EnvName, Annotated[str, BeforeValidator(integer_as_text)]],
    Field(max_length=120),  # the TrainJob takes 128; the rest is ours
    Accepts(
        'variable names (letters, digits, _), each with a text; write numbers and booleans in quotes: "0.1", "true"'
    ),
]
TaintKey = Annotated[
    str,
    AfterValidator(or_empty(whole(rf"({SUBDOMAIN}/)?{QUALIFIED}", 317))),
    Accepts('a taint\'s key such as nvidia.com/gpu, or "" for all'),
]
TaintValue = Annotated[
    str,
    AfterValidator(or_empty(whole(QUALIFIED, 63))),
    Accepts("at most 63 letters, digits, -, _ and ."),
]
NodeLabels = Annotated[
    dict[
        Annotated[str, AfterValidator(whole(rf"({SUBDOMAIN}/)?{QUALIFIED}", 317))],
        Annotated[str, AfterValidator(or_empty(whole(QUALIFIED, 63)))],
    ],
    Accepts('node labels, each with its value in quotes: {"disktype": "ssd"}'),
]
Affinity = Annotated[
    dict[Literal["nodeAffinity", "podAffinity", "podAntiAffinity"], dict[str, Any]],
    Accepts("an object with nodeAffinity, podAffinity or podAntiAffinity, each as in a pod's spec"),
]
