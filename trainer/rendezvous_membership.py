"""Who the workers are, in a few bytes: worker 0 tells it to every one of them, and there may be a thousand."""

from dataclasses import dataclass
from typing import Any

MOST = 1 << 16
"""Workers in a gang; a peer that says more is not to be believed."""
INDEX = "{}"
"""Stands for a worker's index in a pattern."""


@dataclass(frozen=True)
class Membership:
    """A gang that is complete: all its names follow one pattern, so the pattern and their number say everything."""

    pattern: str
    """`host:port` with INDEX in the place of the index."""
    size: int

    @property
    def hosts(self) -> list[str]:
        """`host:port` of every worker, by index.

        >>> Membership("mnist-node-0-{}.mnist.ml.svc.cluster.local:12345", 2).hosts[1]
        'mnist-node-0-1.mnist.ml.svc.cluster.local:12345'
        """
        return [self.pattern.replace(INDEX, str(index)) for index in range(self.size)]

    @property
    def message(self) -> dict[str, Any]:
        """What goes over the wire."""
        return {"pattern": self.pattern, "size": self.size}

    @classmethod
    def from_message(cls, body: Any) -> "Membership":
        """Raises ValueError for anything else than a `message`."""
        if not isinstance(body, dict):
            raise ValueError("no membership")
        pattern, size = body.get("pattern"), body.get("size")
        if not isinstance(pattern, str) or type(size) is not int or not 0 < size <= MOST:
            raise ValueError("no membership")
        return cls(pattern, size)
