"""Which cluster the stack's Kubernetes provider talks to, and whether it answers.

A kubeconfig holds credentials: what is said of one that is wrong quotes nothing out of it.
"""

import errno
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pulumi
import yaml

from components.errors import ConfigError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

CONNECT_SECONDS = 5.0
DEFAULT_PATH = "~/.kube/config"
HOW_TO_CHOOSE = "choose another with KUBECONFIG or `pulumi config set kubernetes:context`"
NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
CREDENTIALS = (
    *("token", "tokenFile", "client-certificate", "client-certificate-data"),
    *("username", "exec", "auth-provider"),
)


@dataclass(frozen=True)
class Context:
    """A context of a kubeconfig, with what it names."""

    name: str
    cluster: Mapping[str, Any]
    user_name: str
    user: Mapping[str, Any]


@dataclass(frozen=True)
class Kubeconfig:
    """The provider's own choice of cluster: its config, else KUBECONFIG, else ~/.kube/config, else the pod's."""

    contents_or_path: str | None = None
    """The setting kubernetes:kubeconfig, as YAML or as the path of a file."""
    context: str | None = None
    """The setting kubernetes:context. Default: the file's current context."""

    @classmethod
    def of_stack(cls) -> "Kubeconfig":
        """What the current stack's config says."""
        config = pulumi.Config("kubernetes")
        return cls(config.get("kubeconfig") or None, config.get("context") or None)

    def paths(self) -> list[Path]:
        """The files to look at, whether they exist or not, unless the setting holds the contents."""
        listed = self.contents_or_path or os.environ.get("KUBECONFIG") or DEFAULT_PATH
        return [Path(path).expanduser() for path in listed.split(os.pathsep) if path]

    def inline(self) -> dict[str, Any] | None:
        """The contents, when the setting holds them rather than a path."""
        try:
            loaded = yaml.safe_load(self.contents_or_path) if self.contents_or_path else None
        except yaml.YAMLError as error:
            raise ConfigError([f"kubernetes:kubeconfig cannot be read: {_reason(error)}"]) from error
        return loaded if isinstance(loaded, dict) else None

    def documents(self) -> list[dict[str, Any]]:
        """What the files, or the setting, hold; nothing when there is none. Raises ConfigError for what is no YAML."""
        if (inline := self.inline()) is not None:
            return [inline]
        return [document for path in self.paths() if (document := _read(path)) is not None]

    def api_client(self) -> "ApiClient":
        """A client of the official library for this cluster; it is imported here because that takes half a second.

        Raises ConfigError, one line, for a kubeconfig that the library cannot use.
        """
        try:
            return self._api_client()
        except ConfigError:
            raise
        except Exception as error:  # the library has an exception of its own for some faults, and none for others
            raise self._unusable(error) from error

    def chosen(self, documents: list[dict[str, Any]]) -> Context:
        """The chosen context in its `documents`. Raises ConfigError when there is none."""
        try:
            return _chosen(documents, self.context)
        except (AttributeError, TypeError) as error:  # a text or a list where a map belongs
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> ConfigError:
        where = "kubernetes:kubeconfig" if self.inline() is not None else ", ".join(map(str, self.paths()))
        reason = " ".join(str(error).split()) or type(error).__name__
        return ConfigError([f"the kubeconfig {where} cannot be used: {reason}; {HOW_TO_CHOOSE}"])

    def _api_client(self) -> "ApiClient":
        from kubernetes import client, config

        documents = self.documents()
        if not documents:
            config.load_incluster_config()
            return client.ApiClient()
        # Of several files the library would take the last one's current context, kubectl and the provider the first's.
        context = self.chosen(documents).name
        loaded: ApiClient
        if (inline := self.inline()) is not None:
            loaded = config.new_client_from_config_dict(inline, context, persist_config=False)
        else:
            files = os.pathsep.join(map(str, self.paths()))
            loaded = config.new_client_from_config(files, context, persist_config=False)
        return loaded


def require_reachable(kubeconfig: Kubeconfig) -> None:
    """Raise ConfigError, one line saying which cluster and why, unless its API server accepts connections.

    A preview would otherwise succeed against no cluster at all, and an update fail once per object. A context without
    credentials is refused too: the provider would ask its standard input for a name, where nobody answers
    (https://github.com/pulumi/pulumi-kubernetes/blob/v4.25.0/provider/pkg/provider/provider.go).
    """
    documents = kubeconfig.documents()
    if not documents:
        if "KUBERNETES_SERVICE_HOST" not in os.environ:
            # What is taken for a path may be contents in another form, base64 for one.
            given = "kubernetes:kubeconfig is no kubeconfig, and a path that"
            missing = given if kubeconfig.contents_or_path else ", ".join(map(str, kubeconfig.paths()))
            raise ConfigError([f"no Kubernetes cluster is configured: {missing} does not exist; {HOW_TO_CHOOSE}"])
        return
    context = kubeconfig.chosen(documents)
    _require_answer(context)
    # Like client-go, which does not send credentials in clear (https://github.com/kubernetes/client-go, clientcmd).
    if str(context.cluster.get("server")).startswith("https:") and not any(map(context.user.get, CREDENTIALS)):
        accepted = ", ".join(CREDENTIALS)
        raise ConfigError(
            [
                f"the kubeconfig's context {context.name!r} has no credentials: its user {context.user_name!r} has"
                f" none of {accepted}; {HOW_TO_CHOOSE}"
            ]
        )


def _require_answer(context: Context) -> None:
    cluster = context.cluster
    if cluster.get("proxy-url") or os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return  # only the proxy can tell
    try:
        server = urlsplit(str(cluster.get("server", "")))
        port = server.port or {"https": 443}.get(server.scheme, 80)
    except ValueError as error:
        address = cluster["server"]
        raise ConfigError(
            [f"the kubeconfig's context {context.name!r} has server {address!r}; accepted: a URL"]
        ) from error
    try:
        socket.create_connection((server.hostname or "", port), CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:  # the latter for a name that DNS cannot hold
        where, reason = f"the Kubernetes cluster of context {context.name!r}", _reason(error)
        raise ConfigError([f"{where} is unreachable: {server.geturl()}: {reason}; {HOW_TO_CHOOSE}"]) from error


def _read(path: Path) -> dict[str, Any] | None:
    """What the file holds, or None when there is no such file."""
    try:
        loaded = yaml.safe_load(path.read_text())
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        if isinstance(error, OSError) and error.errno in NO_SUCH_FILE:
            return None
        raise ConfigError([f"the kubeconfig {path} cannot be read: {_reason(error)}"]) from error
    return loaded if isinstance(loaded, dict) else {}


def _reason(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"it is no YAML in line {mark.line + 1}, column {mark.column + 1}"
    return " ".join((getattr(error, "strerror", None) or str(error)).split())


def _chosen(documents: list[dict[str, Any]], context: str | None) -> Context:
    """The chosen context. Of files that are merged, the first to name something wins."""
    chosen = context or next((name for document in documents if (name := document.get("current-context"))), None)
    contexts = _named(documents, "contexts", "context")
    if chosen is None or chosen not in contexts:
        known = ", ".join(contexts) or "none at all"
        raise ConfigError([f"the kubeconfig has no context {chosen or ''!r}; accepted for kubernetes:context: {known}"])
    user_name = contexts[chosen].get("user") or ""
    cluster = _named(documents, "clusters", "cluster").get(contexts[chosen].get("cluster"), {})
    user = _named(documents, "users", "user").get(user_name, {})
    for kind, value in (("cluster", cluster), ("user", user)):
        if not isinstance(value, Mapping):
            raise TypeError(f"{kind} is a {type(value).__name__}, not a map")
    return Context(chosen, cluster, user_name, user)


def _named(documents: list[dict[str, Any]], plural: str, singular: str) -> dict[Any, Mapping[str, Any]]:
    merged: dict[Any, Mapping[str, Any]] = {}
    for document in documents:
        for entry in document.get(plural) or []:
            merged.setdefault(entry.get("name"), entry.get(singular) or {})
    return merged
