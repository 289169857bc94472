"""Where everything lives, all of it below one folder of the user's cache."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
TOOLS = PACKAGE / "tools"
DATA = Path("/var/lib/tftrainer")
"""Machine-wide data that pods mount by hostPath; the folder belongs to the devcluster."""


@dataclass(frozen=True)
class Cache:
    """The cache root, ``${XDG_CACHE_HOME:-~/.cache}/tftrainer``, and what is in it.

    Everything but `cluster` and `pulumi_state` is a cache: safe to delete while the cluster is down, rebuilt by `up`.
    """

    root: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Cache":
        # The XDG specification says that a relative path is to be ignored.
        base = environ.get("XDG_CACHE_HOME", "")
        return cls((Path(base) if base.startswith("/") else Path.home() / ".cache") / "tftrainer")

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def bin(self) -> Path:
        """Built binaries, first on PATH after `env`."""
        return self.root / "bin"

    @property
    def files(self) -> Path:
        """Charts and scripts taken out of Go modules."""
        return self.root / "files"

    @property
    def keys(self) -> Path:
        """What each cached binary and file was built from."""
        return self.root / "keys.json"

    @property
    def build(self) -> Path:
        """Scratch space of running builds."""
        return self.root / "build"

    @property
    def go_mod(self) -> Path:
        return self.root / "go-mod"

    @property
    def go_build(self) -> Path:
        return self.root / "go-build"

    @property
    def images(self) -> Path:
        """containerd's root: the image store, which outlives the cluster."""
        return self.root / "images"

    @property
    def pulumi_home(self) -> Path:
        return self.root / "pulumi-home"

    @property
    def pulumi_state(self) -> Path:
        """Pulumi's file backend. It describes objects of this cluster, so it goes when the cluster goes."""
        return self.root / "pulumi-state"

    @property
    def operators_config(self) -> Path:
        return self.root / "operators.yaml"

    @property
    def cluster(self) -> Path:
        """State of the cluster: etcd, kubelet, certificates, logs."""
        return self.root / "cluster"

    @property
    def logs(self) -> Path:
        return self.cluster / "logs"

    @property
    def pki(self) -> Path:
        return self.cluster / "pki"

    @property
    def config(self) -> Path:
        return self.cluster / "config"

    @property
    def kubeconfig(self) -> Path:
        return self.cluster / "kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        return self.cluster / "containerd.sock"
