"""A pod knows who it is from its hostname, its address and its resolver configuration."""

import socket
from pathlib import Path

import pod_identity
import pytest
from env_settings import InputError
from pod_identity import PodIdentity, Worker, cluster_domain, search_list


@pytest.mark.parametrize(
    ("hostname", "want"),
    [
        pytest.param("mnist-node-0-0", PodIdentity("mnist", 0), id="worker 0 fits both patterns"),
        pytest.param("mnist-node-0-3", PodIdentity("mnist", 3), id="one Job, completion index 3"),
        pytest.param("mnist-node-3-0", PodIdentity("mnist", 3, by_replica=True), id="one Job per worker, replica 3"),
        pytest.param("mnist-node-0-1023", PodIdentity("mnist", 1023), id="a large gang"),
        pytest.param("a-node-0-1-node-0-2", PodIdentity("a-node-0-1", 2), id="a job named like a pod"),
        pytest.param("tf-2-node-0-1", PodIdentity("tf-2", 1), id="a job name with digits and dashes"),
        pytest.param("mnist-node-0-1.mnist.ml.svc.cluster.local", PodIdentity("mnist", 1), id="a full name"),
    ],
)
def test_hostname_is_parsed(hostname: str, want: PodIdentity) -> None:
    assert PodIdentity.parse(hostname) == want
    assert want.hostname == hostname.partition(".")[0]


@pytest.mark.parametrize(
    "hostname",
    [
        pytest.param("", id="empty"),
        pytest.param("localhost", id="no pod at all"),
        pytest.param("mnist-node-1-2", id="two indexes"),
        pytest.param("mnist-node-0", id="one number only"),
        pytest.param("mnist-node-0-x", id="an index that is no number"),
        pytest.param("mnist-node-0-01", id="a leading zero"),
        pytest.param("mnist-node-0--1", id="a negative index"),
        pytest.param("mnist-node-0-1-x7k2p", id="the pod's name in place of its hostname"),
        pytest.param("mnist-launcher-0-1", id="another role"),
        pytest.param("-node-0-1", id="no job name"),
        pytest.param("mnist-node-0-1\n", id="a line end"),
        pytest.param("mnist-node-0-\u0661", id="a digit of another script"),
    ],
)
def test_any_other_hostname_is_refused_with_what_is_accepted(hostname: str) -> None:
    with pytest.raises(InputError, match=r"expected <trainjob>-node-0-<index> or <trainjob>-node-<index>-0"):
        PodIdentity.parse(hostname)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        pytest.param(
            "search ml.svc.cluster.local svc.cluster.local cluster.local", "cluster.local", id="the usual one"
        ),
        pytest.param(
            "search ml.svc.k8s.acme.io svc.k8s.acme.io k8s.acme.io", "k8s.acme.io", id="a domain of one's own"
        ),
        pytest.param("search ml.svc.corp svc.corp corp eu.acme.io", "corp", id="followed by the node's domains"),
        pytest.param("search a.b\nsearch svc.c.d", "c.d", id="the last search line counts"),
        pytest.param("search ml.svc.cluster.local. svc.cluster.local.", "cluster.local", id="final dots"),
        pytest.param("nameserver 10.96.0.10", "cluster.local", id="no search list"),
        pytest.param("search acme.io", "cluster.local", id="only the node's domains"),
    ],
)
def test_cluster_domain_comes_from_the_search_list(tmp_path: Path, text: str, domain: str) -> None:
    (tmp_path / "resolv.conf").write_text(text + "\n")
    assert cluster_domain(search_list(tmp_path / "resolv.conf")) == domain


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod without any of the runtime's variables; its files are in the folder."""
    monkeypatch.setattr(socket, "gethostname", lambda: "mnist-node-0-1")
    monkeypatch.setattr(pod_identity, "RESOLV_CONF", tmp_path / "resolv.conf")
    monkeypatch.setattr(pod_identity, "NAMESPACE_FILE", tmp_path / "namespace")
    return tmp_path


FULL = {
    "POD_NAMESPACE": "ml",
    "POD_IP": "10.1.2.3",
    "POD_UID": "uid-1",
    "JOB_UID": "job-1",
    "JOBSET_RESTART_ATTEMPT": "2",
}


def test_the_runtimes_variables_say_everything(pod: Path) -> None:
    worker = Worker.from_environment(12345, FULL)
    assert worker.host(0) == "mnist-node-0-0.mnist.ml.svc.cluster.local"
    assert (worker.address, worker.generation, worker.uid) == ("10.1.2.3", "job-1/2", "uid-1")


@pytest.mark.usefixtures("pod")
def test_an_ipv6_address_has_one_spelling() -> None:
    assert Worker.from_environment(1, FULL | {"POD_IP": "FD00:0::1"}).address == "fd00::1"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("namespace", "web\n", id="the service account's file"),
        pytest.param("resolv.conf", "search web.svc.cluster.local svc.cluster.local\n", id="the search list"),
    ],
)
def test_without_a_variable_the_namespace_comes_from(pod: Path, file: str, text: str) -> None:
    (pod / file).write_text(text)
    assert Worker.from_environment(1, {"POD_IP": "10.1.2.3"}).namespace == "web"


def test_without_a_variable_the_address_comes_from_the_hosts_file(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.9.8.7", 0))])
    assert Worker.from_environment(1, {"POD_NAMESPACE": "ml"}).address == "10.9.8.7"


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    ("env", "message"),
    [
        pytest.param({"POD_IP": "10.1.2.3"}, "no namespace: set POD_NAMESPACE", id="no namespace anywhere"),
        pytest.param({"POD_NAMESPACE": "ml"}, "no address for hostname 'mnist-node-0-1'.*set POD_IP", id="no address"),
        pytest.param(FULL | {"POD_IP": "here"}, "POD_IP='here': expected this pod's IPv4 or IPv6", id="a bad address"),
    ],
)
def test_what_cannot_be_found_is_named_with_the_remedy(env: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Worker.from_environment(1, env)
