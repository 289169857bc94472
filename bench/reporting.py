"""The form of a figure: one JSON object a line, never without what it is measured against."""

import json
import statistics
from typing import Any


def report(name: str, value: float, unit: str, **more: Any) -> None:
    """Print a figure.

    `more` has the `peer` (name, value, unit) that was measured side by side, with the `ratio` of the two, or the `goal`
    that is to be kept; and whatever says how much the figure is worth: `pairs`, `min`, `max`.
    """
    if not more.keys() & {"peer", "goal"}:
        raise ValueError(f"figure {name!r} has neither a peer nor a goal")
    print(json.dumps({"name": name, "value": round(value, 4), "unit": unit, **more}), flush=True)


def report_beside(name: str, unit: str, ours: float, peer: str, theirs: float, ratio: float, **more: Any) -> None:
    """Print a figure beside its peer's, and their ratio."""
    report(
        name, ours, unit, peer={"name": peer, "value": round(theirs, 4), "unit": unit}, ratio=round(ratio, 4), **more
    )


def report_pairs(name: str, unit: str, ours: list[float], peer: str, theirs: list[float], **more: Any) -> None:
    """Print a figure from interleaved pairs: medians, and the median and the spread of the pairs' ratios, ours by
    theirs."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    report_beside(
        name,
        unit,
        statistics.median(ours),
        peer,
        statistics.median(theirs),
        statistics.median(ratios),
        ratio_range=[round(min(ratios), 4), round(max(ratios), 4)],
        pairs=len(ratios),
        **more,
    )
