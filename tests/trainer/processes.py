"""The trainer as a user runs it: real processes, real TensorFlow, a cluster on loopback."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

TRAINER = Path(__file__).parents[2] / "trainer"


@dataclass(frozen=True)
class Result:
    """How a process ended."""

    code: int
    output: str
    errors: str

    @property
    def epochs(self) -> list[str]:
        """Loss and accuracy of each epoch, as logged."""
        lines = [line.partition("loss ")[2] for line in self.output.splitlines() if " epoch " in line]
        return [", ".join(line.split(", ")[:2]) for line in lines]

    @property
    def losses(self) -> list[float]:
        """The loss of each epoch."""
        return [float(epoch.partition(",")[0]) for epoch in self.epochs]

    @property
    def summary(self) -> dict[str, Any]:
        """Worker 0's last line."""
        return dict(json.loads(self.output.splitlines()[-1]))


def start(script: str, *args: str, **env: str) -> "subprocess.Popen[str]":
    """Run a script of the trainer with nothing of the caller's environment but the search path."""
    base = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TF_CPP_MIN_LOG_LEVEL": "1"}
    return subprocess.Popen(  # noqa: S603  our own script
        [sys.executable, "-u", str(TRAINER / script), *args],
        env=base | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]", timeout: float = 150) -> Result:
    """Wait for the end; a process that does not end in time is killed, and fails the test."""
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(f"no end after {timeout} s:\n{output}\n{errors}") from None
    return Result(process.returncode, output, errors)


def start_gang(workers: int, **env: str) -> "list[subprocess.Popen[str]]":
    """`workers` processes of train.py that form one cluster on loopback; `{index}` in a variable is the worker's."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in _free_ports(workers)]}
    configs = [{"cluster": cluster, "task": {"type": "worker", "index": index}} for index in range(workers)]
    return [
        start("train.py", **{key: text.format(index=index) for key, text in env.items()}, TF_CONFIG=json.dumps(config))
        for index, config in enumerate(configs)
    ]


def finish_gang(gang: "list[subprocess.Popen[str]]") -> list[Result]:
    """Wait for all; when one hangs, none is left running."""
    try:
        return [finish(process) for process in gang]
    finally:
        for process in gang:
            process.kill()


def finish_after(
    gang: "list[subprocess.Popen[str]]", seen: Callable[[str], bool], act: Callable[[], None]
) -> list[Result]:
    """Act when the last worker has printed a certain line, then wait for all."""

    def watch() -> str:
        lines = []
        for line in gang[-1].stdout or ():
            lines.append(line)
            if seen(line):
                act()
                break
        return "".join(lines)

    with ThreadPoolExecutor(1) as pool:
        printed = pool.submit(watch)
        results = finish_gang(gang[:-1])
        last = finish(gang[-1])
    return [*results, replace(last, output=printed.result() + last.output)]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports
