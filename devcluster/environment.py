"""What a shell needs to use the cluster, and the operators' stack configuration for it."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from devcluster.catalog import JOBSET_CHART, TRAINER_CHART, VOLCANO_CHART
from devcluster.paths import Cache


def variables(cache: Cache, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables that make kubectl and Pulumi use this cluster.

    PATH begins with this Python, which is the one that Pulumi's language host is to find, and the built programs.
    """
    first = [str(Path(sys.executable).parent), str(cache.bin)]
    rest = [entry for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry not in first]
    return {
        "PATH": os.pathsep.join([*first, *rest]),
        "KUBECONFIG": str(cache.kubeconfig),
        "PULUMI_HOME": str(cache.pulumi_home),
        "PULUMI_BACKEND_URL": f"file://{cache.pulumi_state}",
        "PULUMI_CONFIG_PASSPHRASE": "devcluster",  # nothing secret: it guards the state of a throw-away cluster
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "TFTRAINER_OPERATORS_CONFIG": str(cache.operators_config),
    }


def exports(cache: Cache) -> str:
    """The variables as shell commands, for `eval`."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables(cache).items())


def write_operators_config(cache: Cache) -> None:
    """Write the stack configuration with which `operators/` installs from the cached charts and images.

    What Pulumi has added to the file (the salt of its encryption) is kept.
    """
    file = cache.operators_config
    content = yaml.safe_load(file.read_text()) if file.exists() else {}
    content.setdefault("config", {}).update(
        {
            "tftrainer-operators:jobsetChart": str(JOBSET_CHART.path(cache)),
            "tftrainer-operators:trainerChart": str(TRAINER_CHART.path(cache)),
            "tftrainer-operators:volcanoChart": str(VOLCANO_CHART.path(cache)),
            "tftrainer-operators:imagePullPolicy": "IfNotPresent",
            "tftrainer-operators:trainerFeatureGates": {"TrainJobStatus": True},
        }
    )
    file.write_text(yaml.safe_dump(content))
