"""Certificates and kubeconfigs of the cluster."""

import base64
import datetime
import ipaddress
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devcluster.addresses import API_SERVICE_IP, API_URL, CLUSTER_DOMAIN, NODE, NODE_IP

_LIFETIME = datetime.timedelta(days=3650)
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class _Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


@dataclass(frozen=True)
class _Leaf:
    """One certificate: who it is for. The names and groups are what Kubernetes' RBAC expects of each component.
    https://kubernetes.io/docs/setup/best-practices/certificates/
    """

    name: str
    common_name: str
    usage: x509.ObjectIdentifier
    organization: str | None = None
    hosts: tuple[str, ...] = ()
    authority: str = "ca"


_API_HOSTS = (*_SERVICE_NAMES, f"kubernetes.default.svc.{CLUSTER_DOMAIN}", "localhost", NODE_IP, API_SERVICE_IP)
_LEAVES = (
    _Leaf("apiserver", "kube-apiserver", _SERVER, hosts=_API_HOSTS),
    _Leaf("apiserver-kubelet-client", "kube-apiserver-kubelet-client", _CLIENT, "system:masters"),
    _Leaf("front-proxy-client", "front-proxy-client", _CLIENT, authority="front-proxy-ca"),
    _Leaf("admin", "devcluster-admin", _CLIENT, "system:masters"),
    _Leaf("controller-manager", "system:kube-controller-manager", _CLIENT),
    _Leaf("scheduler", "system:kube-scheduler", _CLIENT),
    _Leaf("proxy", "system:kube-proxy", _CLIENT),
    _Leaf("kubelet", f"system:node:{NODE}", _CLIENT, "system:nodes"),
    _Leaf("kubelet-serving", f"system:node:{NODE}", _SERVER, "system:nodes", hosts=(NODE, NODE_IP)),
)
_KUBECONFIGS = ("admin", "controller-manager", "scheduler", "proxy", "kubelet")


def create(folder: Path) -> None:
    """Write keys, certificates and `<component>.kubeconfig` files into `folder`, unless it is there: it is complete."""
    if folder.exists():
        return
    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700, parents=True)
    authorities = {name: _authority(name) for name in ("ca", "front-proxy-ca")}
    for name, authority in authorities.items():
        _write(scratch / f"{name}.key", _key_pem(authority.key))
        _write(scratch / f"{name}.crt", _pem(authority.certificate))
    for leaf in _LEAVES:
        key = ec.generate_private_key(ec.SECP256R1())
        _write(scratch / f"{leaf.name}.key", _key_pem(key))
        _write(scratch / f"{leaf.name}.crt", _pem(_certificate(leaf, key, authorities[leaf.authority])))
    service_accounts = ec.generate_private_key(ec.SECP256R1())
    _write(scratch / "sa.key", _key_pem(service_accounts))
    public = service_accounts.public_key()
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    _write(scratch / "sa.pub", public.public_bytes(encoding, form))
    for name in _KUBECONFIGS:
        _write(scratch / f"{name}.kubeconfig", yaml.safe_dump(kubeconfig(scratch, name)).encode())
    scratch.rename(folder)


def kubeconfig(folder: Path, name: str) -> dict[str, object]:
    """A kubeconfig for the component `name` whose certificate is in `folder`, with everything inline."""

    def inline(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    cluster = {"server": API_URL, "certificate-authority-data": inline("ca.crt")}
    user = {"client-certificate-data": inline(f"{name}.crt"), "client-key-data": inline(f"{name}.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "devcluster", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "devcluster", "context": {"cluster": "devcluster", "user": name}}],
        "current-context": "devcluster",
    }


def _authority(name: str) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"devcluster-{name}")])
    builder = _builder(subject, subject, key)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _Authority(key, builder.sign(key, hashes.SHA256()))


def _certificate(leaf: _Leaf, key: ec.EllipticCurvePrivateKey, authority: _Authority) -> x509.Certificate:
    names = [x509.NameAttribute(NameOID.COMMON_NAME, leaf.common_name)]
    if leaf.organization:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, leaf.organization))
    builder = _builder(x509.Name(names), authority.certificate.subject, key)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([leaf.usage]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    if leaf.hosts:
        hosts = x509.SubjectAlternativeName([_general_name(host) for host in leaf.hosts])
        builder = builder.add_extension(hosts, critical=False)
    return builder.sign(authority.key, hashes.SHA256())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    # An hour back, so that a clock that is set back a little does not make them invalid.
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(start).not_valid_after(start + _LIFETIME)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _write(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
