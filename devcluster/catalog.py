"""Everything that is made from Go modules. Versions are in `tools/*/go.mod`; a few are repeated here as names."""

import json
from pathlib import Path

from devcluster.builds import Artifact, Binary, Copy, Extract, Module, PulumiPlugin, Tool

KUBERNETES_VERSION = "v1.36.3"
CONTAINERD_VERSION = "v2.2.9"
PULUMI_VERSION = "v3.274.1"
KUBERNETES_PROVIDER_VERSION = "4.25.0"


def _add_provider_version(schema: str) -> str:
    return json.dumps({**json.loads(schema), "version": KUBERNETES_PROVIDER_VERSION})


def _drop_dependencies(chart: str) -> str:
    """Helm wants every dependency in `charts/`, even a disabled one. JobSet is installed from its own chart."""
    lines, inside = [], False
    for line in chart.splitlines(keepends=True):
        inside = line.startswith("dependencies:") or (inside and line[:1] in " -#\n")
        if not inside:
            lines.append(line)
    return "".join(lines)


def _use_bash(script: str) -> str:
    """The script relies on busybox' sh, which knows `[[`; Debian's does not."""
    return "#!/bin/bash\n" + script.partition("\n")[2]


def _kubernetes_version_flags() -> str:
    """Without them the API server's version is v0.0.0-master+$Format:%H$, which clients cannot parse."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    values = {
        "gitVersion": KUBERNETES_VERSION,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(f"-X {package}.{name}={value}" for package in packages for name, value in values.items())


def _kubernetes(name: str) -> Binary:
    return Binary(name, Tool("kubernetes"), f"k8s.io/kubernetes/cmd/{name}", _kubernetes_version_flags())


def _containerd(name: str) -> Binary:
    module = "github.com/containerd/containerd/v2"
    return Binary(name, Tool("containerd"), f"{module}/cmd/{name}", f"-X {module}/version.Version={CONTAINERD_VERSION}")


_TRAINER = "github.com/kubeflow/trainer/v2"
_PULUMI = "github.com/pulumi/pulumi"
_SDK = f"{_PULUMI}/sdk/v3"
_PROVIDER = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_PROVIDER_FILES = "cmd/pulumi-resource-kubernetes"

_VOLCANO_APIS = Module("volcano.sh/apis", "v1.14.0", "h1:Rf8wzGFmgzbyg85GO0CxapDDEk/VM3D7QbjbI/sH+OQ=")
_VOLCANO_TOOL = Tool("volcano", (Copy(_VOLCANO_APIS, ".", "apis"),))
_PULUMI_TOOL = Tool("pulumi")
_PROVIDER_TOOL = Tool(
    "pulumi-kubernetes",
    (
        Copy(_PROVIDER, f"{_PROVIDER_FILES}/schema.json", "schema.json", _add_provider_version),
        Copy(_PROVIDER, f"{_PROVIDER_FILES}/terraform-mapping.json", "terraform-mapping.json"),
    ),
)

BINARIES = (
    Binary("pause", Tool("pause"), "."),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    _kubernetes("kubectl"),
    Binary("etcd", Tool("etcd"), "go.etcd.io/etcd/server/v3"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
    Binary("coredns", Tool("coredns"), "."),
    Binary("kube-router", Tool("kube-router"), "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"),
    Binary("jobset-controller", Tool("jobset"), "sigs.k8s.io/jobset"),
    Binary("trainer-controller-manager", Tool("trainer"), f"{_TRAINER}/cmd/trainer-controller-manager"),
    Binary("vc-controller-manager", _VOLCANO_TOOL, "volcano.sh/volcano/cmd/controller-manager"),
    Binary("vc-scheduler", _VOLCANO_TOOL, "volcano.sh/volcano/cmd/scheduler"),
    Binary("vc-webhook-manager", _VOLCANO_TOOL, "volcano.sh/volcano/cmd/webhook-manager"),
    Binary(
        "pulumi",
        _PULUMI_TOOL,
        f"{_PULUMI}/pkg/v3/cmd/pulumi",
        f"-X {_SDK}/go/common/version.Version={PULUMI_VERSION}",
    ),
    Binary("pulumi-language-python", Tool("pulumi-language-python"), f"{_SDK}/python/cmd/pulumi-language-python"),
    # After pulumi, which installs it.
    PulumiPlugin("pulumi-resource-kubernetes", _PROVIDER_TOOL, ".", version=KUBERNETES_PROVIDER_VERSION),
)

JOBSET_CHART = Extract(Tool("jobset"), Copy("sigs.k8s.io/jobset", "charts/jobset", "charts/jobset"))
TRAINER_CHART = Extract(
    Tool("trainer"),
    Copy(_TRAINER, "charts/kubeflow-trainer", "charts/kubeflow-trainer", _drop_dependencies, edit_file="Chart.yaml"),
)
VOLCANO_CHART = Extract(_VOLCANO_TOOL, Copy("volcano.sh/volcano", "installer/helm/chart/volcano", "charts/volcano"))
VOLCANO_ADMISSION_SCRIPT = Extract(
    _VOLCANO_TOOL,
    Copy(
        "volcano.sh/volcano",
        "installer/dockerfile/webhook-manager/gen-admission-secret.sh",
        "gen-admission-secret.sh",
        _use_bash,
    ),
)
EXTRACTS = (
    JOBSET_CHART,
    TRAINER_CHART,
    VOLCANO_CHART,
    VOLCANO_ADMISSION_SCRIPT,
    # Pulumi's Python language host starts programs with the first, and dynamic providers with the second.
    Extract(
        _PULUMI_TOOL,
        Copy(_SDK, "python/cmd/pulumi-language-python-exec", "pulumi-language-python-exec"),
        executable=True,
    ),
    Extract(
        _PULUMI_TOOL,
        Copy(_SDK, "python/dist/pulumi-resource-pulumi-python", "pulumi-resource-pulumi-python"),
        executable=True,
    ),
)

# Only for simulated nodes, see simulation.py.
KWOK = Binary("kwok", Tool("kwok"), "sigs.k8s.io/kwok/cmd/kwok")
# Not its pod-complete.yaml: a simulated pod runs until it is deleted, so that what competes for nodes keeps competing.
# For pod-delete.yaml we have stages/pod-end.yaml.
KWOK_STAGES = tuple(
    Extract(KWOK.tool, Copy("sigs.k8s.io/kwok", f"kustomize/stage/{file}", f"kwok/{Path(file).name}"))
    for file in ("node/fast/node-initialize.yaml", "pod/fast/pod-ready.yaml")
)
SIMULATION: tuple[Artifact, ...] = (KWOK, *KWOK_STAGES)
