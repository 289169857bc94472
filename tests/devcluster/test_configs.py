"""Configuration files and command lines of the daemons."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import cgroups, cluster, configs
from devcluster.addresses import DNS_SERVICE_IP, NODE_IP, POD_CIDR, SERVICE_CIDR
from devcluster.catalog import BINARIES
from devcluster.cluster import MANIFESTS
from devcluster.daemons import DAEMONS, Daemon
from devcluster.images import IMAGES
from devcluster.paths import TOOLS, Cache
from tests.devcluster.builders import a_cache


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return a_cache(tmp_path)


def test_all_files_can_be_read_back(cache: Cache) -> None:
    configs.write(cache)
    tomllib.loads((cache.config / "containerd.toml").read_text())
    json.loads((cache.config / "cni" / "10-devcluster.conflist").read_text())
    assert yaml.safe_load((cache.config / "kubelet.yaml").read_text())["kind"] == "KubeletConfiguration"
    assert yaml.safe_load((cache.config / "kube-proxy.yaml").read_text())["kind"] == "KubeProxyConfiguration"


def test_containerd_has_socket_and_store_of_its_own(cache: Cache) -> None:
    found = tomllib.loads(configs.containerd(cache))
    assert found["grpc"]["address"] == str(cache.containerd_socket)
    assert found["root"] == str(cache.images)


def test_a_quote_in_the_cache_path_does_not_break_the_file(tmp_path: Path) -> None:
    odd = Cache(tmp_path / 'a "quoted" folder')
    assert tomllib.loads(configs.containerd(odd))["root"] == str(odd.images)


def test_kubelet_talks_to_our_containerd(cache: Cache) -> None:
    assert configs.kubelet(cache)["containerRuntimeEndpoint"] == f"unix://{cache.containerd_socket}"


def test_kubelet_keeps_pods_in_our_control_group(cache: Cache) -> None:
    assert configs.kubelet(cache)["cgroupRoot"] == f"/{cgroups.ROOT}"


def test_pods_get_addresses_of_the_pod_network(cache: Cache) -> None:
    bridge, _ = configs.cni()["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": POD_CIDR}]]
    assert not bridge["ipMasq"]


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda daemon: daemon.name)
def test_a_daemon_is_a_binary_that_we_build(daemon: Daemon, cache: Cache) -> None:
    assert daemon.name in {binary.name for binary in BINARIES}
    assert daemon.argv(cache)[0] == cache.bin / daemon.name


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda daemon: daemon.name)
def test_a_daemon_keeps_to_the_cluster_state(daemon: Daemon, cache: Cache) -> None:
    flags = [str(word).partition("=")[2] for word in daemon.argv(cache)[1:]]
    paths = [Path(value) for value in flags if value.startswith("/")]
    assert all(path.is_relative_to(cache.cluster) for path in paths)


def coredns_documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((MANIFESTS / "coredns.yaml").read_text()))


def test_coredns_is_where_kubelet_points_pods_and_from_an_image_that_we_build() -> None:
    objects = {document["kind"]: document for document in coredns_documents()}
    assert objects["Service"]["spec"]["clusterIP"] == DNS_SERVICE_IP
    [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] in {ref for image in IMAGES for ref in image.refs}


def test_coredns_is_built_with_the_plugins_that_it_is_told_to_use() -> None:
    [config] = [document for document in coredns_documents() if document["kind"] == "ConfigMap"]
    used = re.findall(r"(?m)^    (\w+)", config["data"]["Corefile"])
    built = re.findall(r"coredns/plugin/(\w+)", (TOOLS / "coredns" / "main.go").read_text())
    assert sorted(built) == sorted(used)
    assert "kubernetes" in used


def test_the_api_server_is_inside_the_namespace_only(cache: Cache) -> None:
    [server] = [daemon for daemon in DAEMONS if daemon.name == "kube-apiserver"]
    assert f"--bind-address={NODE_IP}" in server.argv(cache)
    assert f"--service-cluster-ip-range={SERVICE_CIDR}" in server.argv(cache)


def test_a_new_binary_makes_another_cluster(cache: Cache) -> None:
    keys = {daemon.name: "built" for daemon in DAEMONS}
    assert cluster.fingerprint(cache, keys) == cluster.fingerprint(cache, dict(keys))
    assert cluster.fingerprint(cache, keys) != cluster.fingerprint(cache, {**keys, "etcd": "built anew"})
