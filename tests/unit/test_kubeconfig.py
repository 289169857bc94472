"""Which cluster is asked, and the one line when it does not answer."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.errors import ConfigError
from components.kubeconfig import Kubeconfig, require_reachable

CHOOSE = "choose another with KUBECONFIG or `pulumi config set kubernetes:context`"


def a_kubeconfig(server: str, context: str = "here", **cluster: Any) -> dict[str, Any]:
    return {
        "current-context": context,
        "contexts": [{"name": context, "context": {"cluster": f"{context}-cluster", "user": "me"}}],
        "clusters": [{"name": f"{context}-cluster", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def answering() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def silent() -> str:
    """An address at which nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"https://127.0.0.1:{listener.getsockname()[1]}"


def written(path: Path, document: Any) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return str(path)


def refusal(kubeconfig: Kubeconfig) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        require_reachable(kubeconfig)
    return list(refused.value.lines)


def test_contents_in_the_config(answering: str) -> None:
    require_reachable(Kubeconfig(yaml.safe_dump(a_kubeconfig(answering))))


def test_a_path_in_the_config(answering: str, tmp_path: Path) -> None:
    require_reachable(Kubeconfig(written(tmp_path / "mine", a_kubeconfig(answering))))


def test_the_default_file(answering: str, tmp_path: Path) -> None:
    written(tmp_path / ".kube" / "config", a_kubeconfig(answering))
    require_reachable(Kubeconfig())


def test_the_environment_before_the_default_file(
    answering: str, silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / ".kube" / "config", a_kubeconfig(silent))
    first = written(tmp_path / "first", a_kubeconfig(answering, "first"))
    second = written(tmp_path / "second", a_kubeconfig(silent, "second"))
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}:{tmp_path / 'missing'}")
    require_reachable(Kubeconfig())
    assert silent in refusal(Kubeconfig(context="second"))[0]


def test_nobody_answers(silent: str) -> None:
    assert refusal(Kubeconfig(yaml.safe_dump(a_kubeconfig(silent)))) == [
        f"the Kubernetes cluster of context 'here' is unreachable: {silent}: Connection refused; {CHOOSE}"
    ]


def test_a_host_that_does_not_exist() -> None:
    (line,) = refusal(Kubeconfig(yaml.safe_dump(a_kubeconfig("https://no-such-host.invalid:6443"))))
    assert line.startswith(
        "the Kubernetes cluster of context 'here' is unreachable: https://no-such-host.invalid:6443: "
    )


def test_no_kubeconfig_at_all(tmp_path: Path) -> None:
    assert refusal(Kubeconfig()) == [
        f"no Kubernetes cluster is configured: {tmp_path}/.kube/config does not exist; {CHOOSE}"
    ]


def test_in_a_pod_the_pods_own_account_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    require_reachable(Kubeconfig())


def test_an_unknown_context(answering: str) -> None:
    assert refusal(Kubeconfig(yaml.safe_dump(a_kubeconfig(answering)), "there")) == [
        "the kubeconfig has no context 'there'; accepted for kubernetes:context: here"
    ]


def test_a_file_that_is_no_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "broken", "a: [1"))
    (line,) = refusal(Kubeconfig())
    assert line.startswith(f"the kubeconfig {tmp_path}/broken cannot be read: ")
    assert "\n" not in line


def test_contents_that_are_no_yaml() -> None:
    (line,) = refusal(Kubeconfig("a: [1"))
    assert line.startswith("kubernetes:kubeconfig cannot be read: ")


@pytest.mark.parametrize("token", ["eyJSECRET", "'eyJSECRET", '"eyJSECRET', "[eyJSECRET", "\teyJSECRET", "*eyJSECRET:"])
def test_a_fault_quotes_no_credentials(tmp_path: Path, token: str) -> None:
    contents = f"users:\n- name: me\n  user:\n    token: {token}\n   wrong: indent\n"
    for kubeconfig in (Kubeconfig(contents), Kubeconfig(written(tmp_path / "broken", contents))):
        (line,) = refusal(kubeconfig)
        assert "in line " in line
        assert "SECRET" not in line


def test_contents_in_another_form_are_not_quoted() -> None:
    assert refusal(Kubeconfig("YXBpVmVyc2lvbjog" * 300)) == [
        "no Kubernetes cluster is configured: kubernetes:kubeconfig is no kubeconfig, and a path that does not exist;"
        f" {CHOOSE}"
    ]


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", "/any")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert refusal(Kubeconfig(str(tmp_path / "config"))) == [
        f"the kubeconfig {tmp_path}/config cannot be read: Permission denied"
    ]


def test_a_host_that_dns_cannot_hold() -> None:
    (line,) = refusal(Kubeconfig(yaml.safe_dump(a_kubeconfig("https://api..example:6443"))))
    assert line.startswith("the Kubernetes cluster of context 'here' is unreachable: https://api..example:6443: ")


def test_behind_a_proxy_only_the_proxy_can_tell(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_reachable(Kubeconfig(yaml.safe_dump(a_kubeconfig(silent, **{"proxy-url": "http://proxy:3128"}))))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    require_reachable(Kubeconfig(yaml.safe_dump(a_kubeconfig(silent))))


@pytest.mark.parametrize(
    "users",
    [
        pytest.param([], id="a user that is not there"),
        pytest.param([{"name": "me", "user": None}], id="an empty user"),
        pytest.param([{"name": "me", "user": {"token": "", "as": "you"}}], id="an empty token"),
    ],
)
def test_a_context_without_credentials(answering: str, users: list[dict[str, Any]]) -> None:
    assert refusal(Kubeconfig(yaml.safe_dump(a_kubeconfig(answering) | {"users": users}))) == [
        "the kubeconfig's context 'here' has no credentials: its user 'me' has none of token, tokenFile,"
        f" client-certificate, client-certificate-data, username, exec, auth-provider; {CHOOSE}"
    ]


def test_nothing_is_sent_in_clear_so_no_credentials_are_needed(answering: str) -> None:
    """As `kubectl proxy` is used."""
    plain = a_kubeconfig(answering.replace("https:", "http:")) | {"users": []}
    require_reachable(Kubeconfig(yaml.safe_dump(plain)))


def test_the_client_is_for_the_same_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = a_kubeconfig("https://here:1"), a_kubeconfig("https://there:2", "there")
    monkeypatch.setenv("KUBECONFIG", f"{written(tmp_path / 'a', here)}:{written(tmp_path / 'b', there)}")
    assert Kubeconfig().api_client().configuration.host == "https://here:1"
    assert Kubeconfig(context="there").api_client().configuration.host == "https://there:2"
    assert Kubeconfig(yaml.safe_dump(there)).api_client().configuration.host == "https://there:2"
    assert Kubeconfig(str(tmp_path / "b")).api_client().configuration.host == "https://there:2"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"contexts": ["here"]}, "cannot be used: 'str' object has no attribute 'get'", id="no map"),
        pytest.param({"current-context": ["here"]}, "cannot be used: unhashable type: 'list'", id="a list"),
        pytest.param({"clusters": [{"name": "here-cluster", "cluster": "foo"}]}, "cluster is a str", id="no cluster"),
        pytest.param({"users": [{"name": "me", "user": "foo"}]}, "user is a str, not a map", id="no user"),
    ],
)
def test_a_file_of_another_shape(answering: str, tmp_path: Path, changes: dict[str, Any], want: str) -> None:
    path = written(tmp_path / "config", a_kubeconfig(answering) | changes)
    [line] = refusal(Kubeconfig(path))
    assert line.startswith(f"the kubeconfig {path} cannot be used: ")
    assert want in line
    assert line.endswith(f"; {CHOOSE}")


@pytest.mark.parametrize("server", ["https://here:abc", "https://here:99999", "https://[::1"])
def test_a_server_that_is_no_address(server: str) -> None:
    assert refusal(Kubeconfig(yaml.safe_dump(a_kubeconfig(server)))) == [
        f"the kubeconfig's context 'here' has server {server!r}; accepted: a URL"
    ]


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xd6\xff\xfe")
    [line] = refusal(Kubeconfig(str(path)))
    assert line.startswith(f"the kubeconfig {path} cannot be read: ")


def test_a_file_that_names_a_certificate_that_is_not_there(answering: str, tmp_path: Path) -> None:
    document = a_kubeconfig(answering) | {"users": [{"name": "me", "user": {"client-certificate": "/no/such"}}]}
    path = written(tmp_path / "config", document)
    with pytest.raises(ConfigError, match="/no/such") as refused:
        Kubeconfig(path).api_client()
    assert refused.value.lines[0].startswith(f"the kubeconfig {path} cannot be used: ")
