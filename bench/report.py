"""Run every benchmark, keep the figures in results.json, and write docs/performance.md from them.

    python -m bench.report [benchmark ...]

Without arguments it runs all; with some it runs these and keeps the others' figures. A benchmark is a module of this
folder that can be run with `python -m`: its docstring is the method, every line that it prints is a figure in the form
of reporting.py.
"""

import ast
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
PAGE = FOLDER.parent / "docs" / "performance.md"
MAIN = 'if __name__ == "__main__":'
HEAD = """\
# Performance

Made by `make bench` from [bench/results.json](../bench/results.json); don't edit. Every figure stands beside what it
was measured against on the same machine at the same time: a peer, or a goal. Unless a figure says
otherwise, values are medians and brackets hold the spread, from least to most.
"""


def benchmarks() -> list[str]:
    """The names of all."""
    return [file.stem for file in sorted(FOLDER.glob("*.py")) if file.stem != "report" and MAIN in file.read_text()]


def run(name: str) -> dict[str, Any]:
    """Run one, passing its lines on, and return its entry for results.json.

    Raises SystemExit when it fails, or prints a figure without a peer or a goal.
    """
    print(f"{name} …", file=sys.stderr, flush=True)
    load, started = os.getloadavg()[0], time.monotonic()
    figures: list[dict[str, Any]] = []
    command = [sys.executable, "-m", f"bench.{name}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (our own module)
        for line in process.stdout or ():
            print(line, end="", flush=True)
            figures.append(json.loads(line))
    if process.returncode:
        raise SystemExit(f"bench.{name} failed with exit status {process.returncode}")
    for figure in figures:
        if not figure.keys() & {"peer", "goal"}:
            raise SystemExit(f"bench.{name}: figure {figure['name']!r} has neither a peer nor a goal")
    return {
        "seconds": round(time.monotonic() - started),
        "machine": machine(),
        "load_before": round(load, 1),
        "figures": figures,
    }


def machine() -> str:
    """What it runs on, in one line."""
    cpus = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    return (
        f"{os.cpu_count()} cores ({cpus[0] if cpus else platform.machine()}), {memory:.0f} GiB of memory, "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


def page(results: Mapping[str, Any]) -> str:
    """docs/performance.md."""
    return HEAD + "".join(
        f"\n{part}\n" for name in benchmarks() if name in results for part in section(name, results[name])
    )


def section(name: str, result: Mapping[str, Any]) -> Iterator[str]:
    """One benchmark: its method as its docstring tells it, its figures, its machine."""
    title, _, method = (ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or name).partition("\n")
    yield f"## {title.rstrip('.')}"
    yield method.strip("\n")  # an indented line stays one: a command
    rows = [cells(figure) for figure in result["figures"]]
    header = ["figure", "value", "measured against", "ratio", "pairs", "goal"]
    used = [index for index in range(len(header)) if any(row[index] for row in rows)]
    lines = [header, ["---"] * len(header), *rows]
    yield "\n".join("| " + " | ".join(line[index] for index in used) + " |" for line in lines)
    yield (f"Measured in {result['seconds']} s on {result['machine']}; load average before: {result['load_before']}.")


def cells(figure: Mapping[str, Any]) -> list[str]:
    """A row of the table."""
    peer = figure.get("peer")
    return [
        figure["name"],
        amount(figure) + spread(figure.get("range") or [figure[key] for key in ("min", "max") if key in figure]),
        f"{peer['name']}: {amount(peer)}" if peer else "",
        f"{figure['ratio']:g}{spread(figure.get('ratio_range', []))}" if "ratio" in figure else "",
        str(figure.get("pairs", figure.get("runs", ""))),
        figure.get("goal", ""),
    ]


def amount(figure: Mapping[str, Any]) -> str:
    return (
        f"{figure['value']:,g} {figure['unit']}"
        if figure["value"] < 10000
        else f"{figure['value']:,.0f} {figure['unit']}"
    )


def spread(values: list[float]) -> str:
    return f" [{min(values):g}, {max(values):g}]" if values else ""


def main(names: list[str]) -> None:
    """Run the benchmarks of these names, or all; every one that is done is kept, whatever becomes of the next."""
    known = benchmarks()
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; accepted: {', '.join(known)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or known:
        results[name] = run(name)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        PAGE.write_text(page(results))


if __name__ == "__main__":
    main(sys.argv[1:])
