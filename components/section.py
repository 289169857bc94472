"""What the parts of the stack's settings have in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A part of the settings: read-only, with camelCase keys, admitting no other keys and no other types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, alias_generator=to_camel
    )
