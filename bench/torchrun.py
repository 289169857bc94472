"""How long processes take to agree on who they are: this project's rendezvous against torchrun's.

    python -m bench.torchrun

From the moment when the last process can be found until all know the membership; the processes turn up in random order
within 2 s. Ours runs as in bench.rendezvous, with its model of the cluster's DNS; torchrun's is the c10d rendezvous of
PyTorch 1.13 (Debian's), in a pod of the embedded cluster, with as many processes that know each other's address.
"""

import json
import subprocess
import uuid
from pathlib import Path

from bench.rendezvous import rendezvous
from bench.reporting import report_pairs
from tests.launch import images

SIZES = (2, 8)
RUNS = 5
SCRIPT = Path(__file__).with_name("torch_rendezvous.py")


def torchrun(size: int) -> list[float]:
    """Seconds of every run."""
    name = f"bench-torchrun-{uuid.uuid4().hex[:6]}"
    command = ["python3", "-c", SCRIPT.read_text(), str(size), str(RUNS)]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "torch", "image": images.TRAINING_IMAGE, "command": command}],
        },
    }
    kubectl("create", "--filename=-", stdin=json.dumps(pod))
    try:
        kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=300s")
        found: list[float] = json.loads(kubectl("logs", name).splitlines()[-1])
        return found
    finally:
        kubectl("delete", "pod", name, "--wait=false")


def kubectl(*words: str, stdin: str = "") -> str:
    return subprocess.run(["kubectl", *words], input=stdin, check=True, capture_output=True, text=True).stdout  # noqa: S603, S607


def main() -> None:
    """Compare for every size."""
    images.ensure()
    for size in SIZES:
        theirs = torchrun(size)
        ours = [rendezvous(size, seed).seconds for seed in range(RUNS)]
        report_pairs(f"agreement of {size} processes", "s", ours, "torchrun's rendezvous", theirs)


if __name__ == "__main__":
    main()
