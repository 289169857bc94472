"""Certificates and kubeconfigs."""

import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from devcluster import pki
from devcluster.addresses import API_URL, NODE_IP


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("state") / "pki"
    pki.create(target)
    return target


def certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        pytest.param("admin", "CN=devcluster-admin,O=system:masters", id="the user of the kubeconfig may do anything"),
        pytest.param("kubelet", "CN=system:node:devcluster,O=system:nodes", id="kubelet is its node"),
        pytest.param("scheduler", "CN=system:kube-scheduler", id="the scheduler is in no group"),
    ],
)
def test_a_client_is_who_rbac_expects(folder: Path, name: str, subject: str) -> None:
    found = certificate(folder, name)
    assert found.subject.rfc4514_string() == subject
    found.verify_directly_issued_by(certificate(folder, "ca"))


def test_the_api_server_is_trusted_by_address_and_by_name(folder: Path) -> None:
    hosts = certificate(folder, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert NODE_IP in map(str, hosts.get_values_for_type(x509.IPAddress))
    assert "kubernetes.default.svc" in hosts.get_values_for_type(x509.DNSName)


def test_the_front_proxy_has_an_authority_of_its_own(folder: Path) -> None:
    certificate(folder, "front-proxy-client").verify_directly_issued_by(certificate(folder, "front-proxy-ca"))


def test_a_kubeconfig_holds_all_it_needs(folder: Path) -> None:
    config = yaml.safe_load((folder / "admin.kubeconfig").read_text())
    assert config["clusters"][0]["cluster"]["server"] == API_URL
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_only_the_owner_may_read_keys(folder: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_what_is_there_is_kept(folder: Path) -> None:
    before = (folder / "ca.crt").read_bytes()
    pki.create(folder)
    assert (folder / "ca.crt").read_bytes() == before


def test_remains_of_an_interrupted_run_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "pki.new").mkdir()
    (tmp_path / "pki.new" / "ca.key").write_text("half")
    pki.create(tmp_path / "pki")
    assert certificate(tmp_path / "pki", "ca")
