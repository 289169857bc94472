"""Start and stop the cluster, and find out how it is."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from devcluster import configs, dns, namespace, network, pki
from devcluster.commands import last_line
from devcluster.daemons import DAEMONS, Daemon, Needs
from devcluster.errors import DevclusterError
from devcluster.kube import Kubectl
from devcluster.paths import PACKAGE, Cache

MANIFESTS = PACKAGE / "manifests"
_START_SECONDS = 1.0
"""How long a daemon may take to turn up among the running ones."""


@dataclass(frozen=True)
class Health:
    """How the cluster is; `problems` is empty when all is well."""

    daemons: dict[str, int | None]
    """Name and pid; None if it does not run."""
    problems: list[str]

    @property
    def runs(self) -> bool:
        return any(self.daemons.values())


def health(cache: Cache) -> Health:
    """Look at the daemons, the API server, the node and DNS."""
    running = namespace.running(cache)
    daemons = {daemon.name: running.get(daemon.name) for daemon in DAEMONS}
    problems = [f"{name} does not run" for name, pid in daemons.items() if pid is None]
    if not problems:
        kubectl = Kubectl(cache)
        if not kubectl.api_ready():
            problems.append("the API server is not ready")
        elif not kubectl.node_ready():
            problems.append("the node is not Ready")
        elif not dns.answers(timeout=2):
            problems.append("DNS does not answer")
    return Health(daemons, problems)


def fingerprint(cache: Cache, binaries: dict[str, str]) -> str:
    """What the cluster would be started from: binaries (`binaries` has their keys), flags, configuration, manifests."""
    parts = [binaries[daemon.name] for daemon in DAEMONS]
    parts += [str(word) for daemon in DAEMONS for word in daemon.argv(cache)]
    parts += [
        configs.containerd(cache),
        str(configs.cni()),
        str(configs.kubelet(cache)),
        str(configs.kube_proxy(cache)),
    ]
    parts += [manifest.read_text() for manifest in sorted(MANIFESTS.iterdir())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def started_from(cache: Cache) -> str:
    """The fingerprint that the cluster was last started from; empty if there was none."""
    file = cache.cluster / "started-from"
    return file.read_text() if file.exists() else ""


def start(cache: Cache, fingerprint: str) -> None:
    """Start the cluster over whatever state there is. Its DNS comes up when its image is there: see `wait_for_dns`.

    Raises:
        DevclusterError: something did not start. Nothing runs then.
    """
    network.check_free()
    for folder in (cache.logs, cache.cluster / "kubelet", cache.images):
        folder.mkdir(parents=True, exist_ok=True)
    pki.create(cache.pki)
    shutil.copyfile(cache.pki / "admin.kubeconfig", cache.kubeconfig)
    cache.kubeconfig.chmod(0o600)
    configs.write(cache)
    (cache.cluster / "started-from").write_text(fingerprint)
    try:
        _start(cache)
    except BaseException:  # an interrupt, too, must not leave half a cluster
        kill(cache)
        raise


def _start(cache: Cache) -> None:
    since = time.time()
    kubectl = Kubectl(cache)
    cache.containerd_socket.unlink(missing_ok=True)
    cluster = namespace.create(cache)
    network.connect(cluster.pid)
    started: list[Daemon] = []

    def start(needs: Needs) -> None:
        for daemon in DAEMONS:
            if daemon.needs is needs:
                cluster.start(daemon.argv(cache), cache.logs / f"{daemon.name}.log")
                started.append(daemon)

    start(Needs.NOTHING)
    _wait(cache, "the API server", kubectl.api_ready, 60, started)
    start(Needs.API)
    _wait(cache, "containerd", cache.containerd_socket.exists, 30, started)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", MANIFESTS)
    _wait(cache, "the node", lambda: kubectl.node_ready(since), 60, started)
    start(Needs.NODE)
    cluster.release()


def wait_for_dns(cache: Cache) -> None:
    """Wait until pods can look up names. The images have to be there.

    Raises:
        DevclusterError: they still cannot after a while.
    """
    _wait(cache, "DNS", dns.answers, 90)


def kill(cache: Cache) -> None:
    """End every process of the cluster and what the kernel keeps for it. Its files stay."""
    namespace.destroy(cache)
    network.disconnect()


def _wait(
    cache: Cache, what: str, ready: Callable[[], bool], timeout: float, daemons: Iterable[Daemon] = DAEMONS
) -> None:
    """Wait until `ready`, up to `timeout` seconds, while `daemons` are to run.

    Raises:
        DevclusterError: one of them died, or the time is up.
    """
    begin = time.monotonic()
    while not ready():
        elapsed = time.monotonic() - begin
        running = namespace.running(cache)
        died = [daemon.name for daemon in daemons if daemon.name not in running]
        if died and elapsed > _START_SECONDS:
            log = cache.logs / f"{died[0]}.log"
            raise DevclusterError(
                f"{died[0]} stopped, see {log}: {last_line(log.read_text(errors='replace'))}; if its state is damaged, "
                "`python -m devcluster down` and `up` start anew"
            )
        if elapsed > timeout:
            raise DevclusterError(f"{what} is not ready after {timeout:g} s, see the logs in {cache.logs}")
        time.sleep(0.1)
