"""Command line: ``python -m devcluster up|down|status|load-image|env``."""

import argparse
import os
import sys
from pathlib import Path

from devcluster import checks, cluster, environment, lifecycle, namespace, simulation
from devcluster.addresses import NODE
from devcluster.catalog import CONTAINERD_VERSION, KUBERNETES_VERSION
from devcluster.errors import DevclusterError
from devcluster.images import Store
from devcluster.paths import Cache

EXIT_UNHEALTHY = 3
MAX_SIMULATED_NODES = 5000
"""What Kubernetes itself is made for: https://kubernetes.io/docs/setup/best-practices/cluster-large/"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit status: 0, 1 after a one-line error, 3 if `status` finds it unwell."""
    arguments = _parser().parse_args(argv)
    cache = Cache.from_environment()
    try:
        match arguments.command:
            case "up":
                lifecycle.up(cache, arguments.simulated_nodes)
            case "down":
                lifecycle.down(cache)
            case "status":
                return _status(cache)
            case "load-image":
                _load_image(cache, arguments.archive)
            case "env":
                print(environment.exports(cache), end="")
    except (DevclusterError, OSError) as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("devcluster: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devcluster", description="An embedded single-node Kubernetes.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="build what is missing and start the cluster; leave a healthy one alone")
    up.add_argument(
        "--simulated-nodes",
        type=_node_count,
        metavar="N",
        help="have N nodes with GPUs beside the real one, on which pods only seem to run (default: as many as before)",
    )
    commands.add_parser("down", help="stop the cluster and remove it; keep what was built")
    commands.add_parser("status", help="say how the cluster is; exit status 3 if it is not well")
    load = commands.add_parser("load-image", help="import an image archive, as of `docker save`, into the cluster")
    load.add_argument("archive", type=Path, metavar="FILE.tar")
    commands.add_parser("env", help='print what a shell needs to use the cluster: eval "$(python -m devcluster env)"')
    return parser


def _node_count(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_SIMULATED_NODES:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of nodes; accepted: 0 to {MAX_SIMULATED_NODES}")
    return int(text)


def _status(cache: Cache) -> int:
    checks.linux()
    checks.root(os.geteuid())
    health = cluster.health(cache)
    if not health.runs:
        print("not running; start it with `python -m devcluster up`")
        return EXIT_UNHEALTHY
    for name, pid in health.daemons.items():
        print(f"{name:24} {f'pid {pid}' if pid else 'does not run'}")
    print(f"node {NODE:19} Kubernetes {KUBERNETES_VERSION}, containerd {CONTAINERD_VERSION}")
    if nodes := simulation.recorded(cache):
        pid = namespace.running(cache).get("kwok")
        print(f"{'kwok':24} {f'pid {pid}' if pid else 'does not run'}, {nodes} simulated nodes")
    print("; ".join(health.problems) or "healthy")
    return EXIT_UNHEALTHY if health.problems else 0


def _load_image(cache: Cache, archive: Path) -> None:
    checks.root(os.geteuid())
    if not archive.is_file():
        raise DevclusterError(f"{archive} is no file; a tar archive of an image, as of `docker save`, is accepted")
    if not cluster.health(cache).runs:
        raise DevclusterError("the cluster does not run; start it with `python -m devcluster up`")
    for name in Store(cache).load(archive.absolute()):
        print("loaded", name)


if __name__ == "__main__":
    sys.exit(main())
