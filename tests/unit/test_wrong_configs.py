# ruff: noqa: E501  a row of the table is easier to read on one line
"""Wrong configs, each with the one line that its user reads: the key, its value, what is accepted."""

import json
from typing import Any

import pulumi
import pytest

from components.errors import ConfigError
from components.settings import Settings, load, parse
from tests.unit.recording import as_config

WHOLE = "accepted: a whole number of at least 1, without quotes"
WHOLE_0 = "accepted: a whole number of at least 0, without quotes"
BOOLEAN = "accepted: true or false, without quotes"
RFC1035 = (
    "accepted: at most 48 lower-case letters, digits and -, starting with a letter and not ending with - (RFC 1035)"
)
NAMESPACE = "accepted: a namespace's name: at most 63 lower-case letters, digits and -"
NAME = "accepted: an object's name: at most 253 lower-case letters, digits, - and ."
OR_NONE = f'{NAME}, or "" for none'
PORT = "accepted: a port from 1024 to 65535, without quotes"
CPU = 'accepted: CPUs, a quantity such as 2 or 500m, or "" for no request'
MEMORY = 'accepted: bytes, a quantity such as 512Mi or 16Gi, or "" for no request'
SHM = 'accepted: bytes, a quantity such as 2Gi, or "" for the container runtime\'s own (64Mi)'
IMAGE = 'accepted: an image such as registry/name:tag, or "" for the default'
PATH = 'accepted: an absolute path without "..", or "" for none'
SCRIPT = 'accepted: the path of a Python file (.py), relative to the project, or "" for the built-in training'
AMOUNTS = "accepted: resources (cpu, memory, nvidia.com/gpu, ...), each with a quantity such as 4, 500m or 16Gi"
ENV = (
    "accepted: variable names (letters, digits, _), each with a text; write numbers and booleans in quotes: "
    '"0.1", "true"'
)
NETWORKS = "accepted: a list of at least one NetworkAttachmentDefinition, each as name or namespace/name"
DEVICE = "accepted: a device plugin's resource such as nvidia.com/hostdev"
LABELS = 'accepted: node labels, each with its value in quotes: {"disktype": "ssd"}'
POLICY = 'accepted: "IfNotPresent", "Always" or "Never"'
MODE = 'accepted: "hard" (or not at all) or "soft" (if possible)'
ONLY_JOB = "accepted with runtime.create false: only what a TrainJob can change"
AFFINITY = "accepted: an object with nodeAffinity, podAffinity or podAntiAffinity, each as in a pod's spec"
FOREIGN: dict[str, Any] = {"runtime": {"create": False, "name": "theirs"}}

ROWS: list[tuple[str, dict[str, Any], str]] = [
    # Keys
    ("a key in the singular", {"numNode": 2}, "numNode is not a setting; did you mean numNodes?"),
    ("a key in snake case", {"num_nodes": 2}, "num_nodes is not a setting; did you mean numNodes?"),
    ("a key in the wrong case", {"numnodes": 2}, "numnodes is not a setting; did you mean numNodes?"),
    ("a nested key at the top", {"queue": {}}, "queue is not a setting; did you mean volcano.queue?"),
    ("a dotted key", {"volcano.queue": {}}, "volcano.queue is not a setting; did you mean the nested key? Set it with `pulumi config set --path volcano.queue`"),
    ("a misspelt section", {"infinyband": {}}, "infinyband is not a setting; did you mean infiniband?"),
    ("the section with a capital", {"infiniBand": {}}, "infiniBand is not a setting; did you mean infiniband?"),
    (
        "a misspelt key in a section",
        {"volcano": {"queue": {"wieght": 1}}},
        "volcano.queue.wieght is not a setting; did you mean volcano.queue.weight?",
    ),
    (
        "a key of another section",
        {"resources": {"weight": 1}},
        "resources.weight is not a setting; did you mean volcano.queue.weight?",
    ),
    (
        "a key like no other",
        {"resources": {"xyz": 1}},
        "resources.xyz is not a setting; accepted: cpu, memory, gpu",
    ),
    (
        "requests and limits as in a pod",
        {"resources": {"requests": {"cpu": 1}}},
        "resources.requests is not a setting; accepted: cpu, memory, gpu",
    ),
    (
        "a misspelt key in a list",
        {"tolerations": [{"kye": "gpu"}]},
        "tolerations[0].kye is not a setting; did you mean tolerations[0].key?",
    ),
    (
        "half a topology",
        {"volcano": {"networkTopology": {"mode": "hard"}}},
        f"volcano.networkTopology.highestTierAllowed is missing; {WHOLE}",
    ),
    (
        "the other half of a topology",
        {"volcano": {"networkTopology": {"highestTierAllowed": 1}}},
        f"volcano.networkTopology.mode is missing; {MODE}",
    ),
    # Whole numbers
    ("no nodes", {"numNodes": 0}, f"numNodes is 0; {WHOLE}"),
    ("fewer than no nodes", {"numNodes": -1}, f"numNodes is -1; {WHOLE}"),
    ("half a node", {"numNodes": 2.5}, f"numNodes is 2.5; {WHOLE}"),
    ("a number with a point", {"numNodes": "2.0"}, f"numNodes is 2.0; {WHOLE}"),
    ("a number in words", {"numNodes": "two"}, f'numNodes is "two"; {WHOLE}'),
    ("no number at all", {"numNodes": ""}, f'numNodes is ""; {WHOLE}'),
    ("YAML's nothing", {"numNodes": None}, f"numNodes is null; {WHOLE}"),
    ("a list for a number", {"numNodes": [2]}, f"numNodes is [2]; {WHOLE}"),
    ("a boolean for a number", {"numNodes": True}, f"numNodes is true; {WHOLE}"),
    ("more nodes than the API can count", {"numNodes": 2**31}, f"numNodes is 2147483648; {WHOLE}"),
    ("no epochs", {"epochs": 0}, f"epochs is 0; {WHOLE}"),
    ("no batch", {"batchSize": 0}, f"batchSize is 0; {WHOLE}"),
    ("a privileged port", {"port": 80}, f"port is 80; {PORT}"),
    ("a port out of range", {"port": 65536}, f"port is 65536; {PORT}"),
    ("an agent without jobs", {"launch": {"agent": {"maxJobs": 0}}}, "launch.agent.maxJobs is 0; accepted: a whole number of at least 1, or -1 for no bound"),
    ("a text for a list", {"launch": {"agent": {"targetNamespaces": "ml"}}}, 'launch.agent.targetNamespaces is "ml"; accepted: a list; each item a namespace\'s name: at most 63 lower-case letters, digits and -'),
    ("a bound that is no number", {"launch": {"queue": {"variables": {"lr": {"type": "number", "minimum": "low"}}}}}, 'launch.queue.variables.lr.minimum is "low"; accepted: a number'),
    ("a choice that is no value", {"launch": {"queue": {"variables": {"lr": {"type": "number", "enum": [1, []]}}}}}, "launch.queue.variables.lr.enum[1] is []; accepted: a list of numbers or texts"),
    ("negative restarts", {"maxRestarts": -1}, f"maxRestarts is -1; {WHOLE_0}"),
    ("a negative deadline", {"deadline": -5}, f"deadline is -5; {WHOLE_0}"),
    ("a deadline with a unit", {"deadline": "1h"}, f'deadline is "1h"; {WHOLE_0}'),
    ("a negative time-out", {"awaitTimeout": -1}, f"awaitTimeout is -1; {WHOLE_0}"),
    ("negative GPUs", {"resources": {"gpu": -1}}, f"resources.gpu is -1; {WHOLE_0}"),
    ("half a GPU", {"resources": {"gpu": 0.5}}, f"resources.gpu is 0.5; {WHOLE_0}"),
    ("GPUs in quotes", {"resources": {"gpu": "1"}}, f'resources.gpu is "1"; {WHOLE_0}'),
    ("no weight", {"volcano": {"queue": {"weight": 0}}}, f"volcano.queue.weight is 0; {WHOLE}"),
    ("no adapters", {"infiniband": {"count": 0}}, f"infiniband.count is 0; {WHOLE}"),
    ("adapters in quotes", {"infiniband": {"count": "2"}}, f'infiniband.count is "2"; {WHOLE}'),
    ("no steps", {"checkpoints": {"everySteps": 0}}, f"checkpoints.everySteps is 0; {WHOLE}"),
    (
        "a tier below the lowest",
        {"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 0}}},
        f"volcano.networkTopology.highestTierAllowed is 0; {WHOLE}",
    ),
    # Booleans
    ("yes", {"suspend": "yes"}, f'suspend is "yes"; {BOOLEAN}'),
    ("True", {"suspend": "True"}, f'suspend is "True"; {BOOLEAN}'),
    ("one for true", {"awaitCompletion": 1}, f"awaitCompletion is 1; {BOOLEAN}"),
    ("true in quotes", {"volcano": {"enabled": "true"}}, f'volcano.enabled is "true"; {BOOLEAN}'),
    ("false in quotes", {"infiniband": {"enabled": "false"}}, f'infiniband.enabled is "false"; {BOOLEAN}'),
    ("off", {"volcano": {"queue": {"create": "off"}}}, f'volcano.queue.create is "off"; {BOOLEAN}'),
    ("a switch for a section", {"volcano": True}, "volcano is true; accepted: an object with the keys enabled, queue, "
     "priorityClass, networkTopology"),
    ("a text for a section", {"data": "/data"}, 'data is "/data"; accepted: an object with the keys enabled, hostPath, pvc'),
    ("a list for a section", {"job": [1]}, "job is [1]; accepted: an object with the keys enabled, name"),
    # Names
    ("a name with a capital", {"job": {"name": "Digits"}}, f'job.name is "Digits"; {RFC1035}'),
    ("a name that starts with a digit", {"job": {"name": "1st"}}, f'job.name is "1st"; {RFC1035}'),
    ("a name that ends with a dash", {"job": {"name": "a-"}}, f'job.name is "a-"; {RFC1035}'),
    ("a name with a point", {"job": {"name": "a.b"}}, f'job.name is "a.b"; {RFC1035}'),
    ("a name with a line's end", {"job": {"name": "a\n"}}, f'job.name is "a\\n"; {RFC1035}'),
    ("no name", {"job": {"name": ""}}, f'job.name is ""; {RFC1035}'),
    ("a number for a name", {"job": {"name": 1}}, f"job.name is 1; {RFC1035}"),
    (
        "a name too long for its pods",
        {"numNodes": 101, "job": {"name": "x" * 50}},
        f'job.name is "{"x" * 50}", 50 characters; accepted with numNodes 101: at most 46, so that the pods\' names '
        "(<job>-node-0-<index> and a suffix) stay within 63",
    ),
    ("a namespace with a point", {"namespace": "a.b"}, f'namespace is "a.b"; {NAMESPACE}'),
    ("no namespace", {"namespace": ""}, f'namespace is ""; {NAMESPACE}'),
    ("a namespace too long", {"namespace": "x" * 64}, f'namespace is "{"x" * 64}"; {NAMESPACE}'),
    ("a queue with a capital", {"volcano": {"queue": {"name": "Q"}}}, f'volcano.queue.name is "Q"; {NAME}'),
    ("a queue without a name", {"volcano": {"queue": {"name": ""}}}, f'volcano.queue.name is ""; {NAME}'),
    (
        "Volcano's own queue",
        {"volcano": {"queue": {"name": "default"}}},
        'volcano.queue.name is "default"; accepted with create true: any name but Volcano\'s own, "default" and "root"',
    ),
    (
        "a queue above itself",
        {"volcano": {"queue": {"name": "a", "parent": "a"}}},
        'volcano.queue.parent is "a"; accepted: any other queue than this one itself',
    ),
    ("a runtime with a space", {"runtime": {"name": "a b"}}, f'runtime.name is "a b"; {OR_NONE}'),
    ("a priority class with _", {"volcano": {"priorityClass": "a_b"}}, f'volcano.priorityClass is "a_b"; {OR_NONE}'),
    ("a claim with a slash", {"data": {"pvc": "a/b"}}, f'data.pvc is "a/b"; {OR_NONE}'),
    (
        "a secret's name in a text",
        {"imagePullSecrets": "regcred"},
        f'imagePullSecrets is "regcred"; {NAME.replace("accepted: ", "accepted: a list; each item ")}',
    ),
    (
        "a secret as in a pod",
        {"imagePullSecrets": [{"name": "regcred"}]},
        f'imagePullSecrets[0] is {{"name": "regcred"}}; {NAME.replace("accepted: ", "accepted: a list; each item ")}',
    ),
    # Texts with a form
    ("an image with a space", {"image": "tf: 1"}, f'image is "tf: 1"; {IMAGE}'),
    ("an image with a capital", {"image": "TensorFlow:1"}, f'image is "TensorFlow:1"; {IMAGE}'),
    ("an image with a protocol", {"image": "https://a/b"}, f'image is "https://a/b"; {IMAGE}'),
    ("a policy in lower case", {"imagePullPolicy": "always"}, f'imagePullPolicy is "always"; {POLICY}'),
    ("a relative folder", {"data": {"hostPath": "data"}}, f'data.hostPath is "data"; {PATH}'),
    ("a folder above", {"data": {"hostPath": "/a/../b"}}, f'data.hostPath is "/a/../b"; {PATH}'),
    ("a script that is no Python", {"script": "train.sh"}, f'script is "train.sh"; {SCRIPT}'),
    (
        "an unknown mode",
        {"volcano": {"networkTopology": {"mode": "Hard", "highestTierAllowed": 1}}},
        f'volcano.networkTopology.mode is "Hard"; {MODE}',
    ),
    ("no network", {"infiniband": {"networks": []}}, f"infiniband.networks is []; {NETWORKS}"),
    ("a network in a text", {"infiniband": {"networks": "net"}}, f'infiniband.networks is "net"; {NETWORKS}'),
    ("a network with a space", {"infiniband": {"networks": ["a b"]}}, f'infiniband.networks[0] is "a b"; {NETWORKS}'),
    ("adapters without a resource", {"infiniband": {"resource": "", "count": 2}}, f'infiniband.resource is ""; {DEVICE}'),
    ("a resource without a domain", {"infiniband": {"resource": "hostdev"}}, f'infiniband.resource is "hostdev"; {DEVICE}'),
    # Quantities
    ("memory in GB", {"resources": {"memory": "1GB"}}, f'resources.memory is "1GB"; {MEMORY}'),
    ("memory in thousandths of a byte", {"resources": {"memory": "512m"}}, f'resources.memory is "512m"; {MEMORY}'),
    ("memory without a unit", {"resources": {"memory": 16}}, f"resources.memory is 16; {MEMORY}"),
    ("memory with a space", {"resources": {"memory": "1 Gi"}}, f'resources.memory is "1 Gi"; {MEMORY}'),
    ("negative CPUs", {"resources": {"cpu": "-1"}}, f'resources.cpu is "-1"; {CPU}'),
    ("no CPU", {"resources": {"cpu": 0}}, f"resources.cpu is 0; {CPU}"),
    ("a boolean for CPUs", {"resources": {"cpu": True}}, f"resources.cpu is true; {CPU}"),
    ("shared memory in words", {"shmSize": "big"}, f'shmSize is "big"; {SHM}'),
    (
        "a capability that is no quantity",
        {"volcano": {"queue": {"capability": {"cpu": "lots"}}}},
        f'volcano.queue.capability.cpu is "lots"; {AMOUNTS}',
    ),
    (
        "a capability of nothing known",
        {"volcano": {"queue": {"capability": {"gpu": 1}}}},
        f'volcano.queue.capability.gpu is "gpu"; {AMOUNTS}',
    ),
    (
        "a capability as a list",
        {"volcano": {"queue": {"capability": ["cpu=1"]}}},
        f'volcano.queue.capability is ["cpu=1"]; {AMOUNTS}',
    ),
    (
        "a guarantee beyond the capability",
        {"volcano": {"queue": {"capability": {"cpu": "1"}, "guarantee": {"cpu": "1500m"}}}},
        "volcano.queue.guarantee: cpu is 1500m; accepted: at most the capability, 1",
    ),
    # Maps and lists
    ("a variable with a dash", {"env": {"A-B": "1"}}, f'env.A-B is "A-B"; {ENV}'),
    ("a fraction in env", {"env": {"LR": 0.1}}, f"env.LR is 0.1; {ENV}"),
    ("a boolean in env", {"env": {"FAST": True}}, f"env.FAST is true; {ENV}"),
    ("nothing in env", {"env": {"A": None}}, f"env.A is null; {ENV}"),
    (
        "env as in a pod",
        {"env": [{"name": "A", "value": "1"}]},
        f'env is [{{"name": "A", "value": "1"}}]; {ENV}',
    ),
    ("arguments in a text", {"args": "--lr 1"}, 'args is "--lr 1"; accepted: a list of at most 128 texts'),
    ("a fraction among the arguments", {"args": ["--lr", 0.1]}, "args[1] is 0.1; accepted: a list of at most 128 texts"),
    ("a label's value as a boolean", {"nodeSelector": {"gpu": True}}, f"nodeSelector.gpu is true; {LABELS}"),
    ("a label with a space", {"nodeSelector": {"a b": "c"}}, f'nodeSelector.a b is "a b"; {LABELS}'),
    ("a toleration's key", {"tolerations": [{"key": "a b"}]}, 'tolerations[0].key is "a b"; accepted: a taint\'s key such as nvidia.com/gpu, or "" for all'),
    ("a toleration's value", {"tolerations": [{"key": "a", "value": "b c"}]}, 'tolerations[0].value is "b c"; accepted: at most 63 letters, digits, -, _ and .'),
    ("NCCL's environment takes a variable of the program's", {"infiniband": {"enabled": True, "ncclEnv": {"TF_CONFIG": "9"}}}, "infiniband.ncclEnv.TF_CONFIG is set; accepted: any other variable, because the program sets this one itself"),
    (
        "a toleration's effect",
        {"tolerations": [{"key": "a", "effect": "noSchedule"}]},
        'tolerations[0].effect is "noSchedule"; accepted: "NoSchedule", "PreferNoSchedule", "NoExecute", or "" for all',
    ),
    # Contradictions
    (
        "a folder and a claim",
        {"data": {"hostPath": "/data", "pvc": "cifar"}},
        'data.hostPath is "/data" and data.pvc "cifar"; accepted: one of the two',
    ),
    (
        "two places for checkpoints",
        {"checkpoints": {"hostPath": "/c", "pvc": "c"}},
        'checkpoints.hostPath is "/c" and checkpoints.pvc "c"; accepted: one of the two',
    ),
    (
        "two places for logs",
        {"logs": {"hostPath": "/l", "pvc": "l"}},
        'logs.hostPath is "/l" and logs.pvc "l"; accepted: one of the two',
    ),
    ("a relative folder for logs", {"logs": {"hostPath": "logs"}}, f'logs.hostPath is "logs"; {PATH}'),
    (
        "a TensorBoard of nothing",
        {"tensorboard": {"enabled": True}},
        "tensorboard.enabled is true; accepted with logs.hostPath or logs.pvc, where its event files are",
    ),
    ("TensorBoard as a switch", {"tensorboard": True}, "tensorboard is true; accepted: an object with the keys enabled, image"),
    ("an affinity of the wrong kind", {"affinity": {"podAntiAfinity": {}}}, f'affinity.podAntiAfinity is "podAntiAfinity"; {AFFINITY}'),
    ("an affinity as a list", {"affinity": {"nodeAffinity": []}}, f"affinity.nodeAffinity is []; {AFFINITY}"),
    (
        "W&B Launch without an owner",
        {"launch": {"enabled": True}},
        "launch.entity is missing; accepted with launch.enabled true: the W&B team or user that owns the queue",
    ),
    (
        "a key of Launch in snake case",
        {"launch": {"base_url": "https://wandb.example"}},
        "launch.base_url is not a setting; did you mean launch.baseUrl?",
    ),
    (
        "two numbers of epochs",
        {"epochs": 5, "env": {"EPOCHS": "6"}},
        "env.EPOCHS is set and epochs is 5; accepted: one of the two",
    ),
    (
        "a variable of the program's own",
        {"env": {"TF_CONFIG": "{}"}},
        "env.TF_CONFIG is set; accepted: any other variable, because the program sets this one itself",
    ),
    (
        "a toleration of a value that may be any",
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        'tolerations[0].value is "b"; accepted with operator "Exists": no value',
    ),
    (
        "a toleration of no key",
        {"tolerations": [{"value": "b"}]},
        "tolerations[0].key is missing; accepted with operator \"Equal\": the taint's key",
    ),
    (
        "seconds for a taint that evicts nobody",
        {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]},
        'tolerations[0].effect is "NoSchedule"; accepted with tolerationSeconds: "NoExecute"',
    ),
    ("tolerations of a foreign runtime", {**FOREIGN, "tolerations": [{"key": "a"}]}, f"tolerations is set; {ONLY_JOB}"),
    ("a script for a foreign runtime", {**FOREIGN, "script": "mine.py"}, f"script is set; {ONLY_JOB}"),
    ("InfiniBand for a foreign runtime", {**FOREIGN, "infiniband": {"enabled": True}}, f"infiniband is set; {ONLY_JOB}"),
    (
        "a queue for a foreign runtime",
        {**FOREIGN, "volcano": {"queue": {"name": "mine"}}},
        "volcano is set; accepted with runtime.create false: volcano.enabled only, the rest is the runtime's",
    ),
    (
        "a stack of nothing",
        {**FOREIGN, "job": {"enabled": False}},
        "job.enabled is false; accepted without runtime.create and launch.enabled: true, or the stack is empty",
    ),
    (
        "a gang beyond its queue's CPUs",
        {"numNodes": 3, "resources": {"cpu": "1"}, "volcano": {"queue": {"capability": {"cpu": "2"}}}},
        "volcano.queue.capability: cpu is 2; accepted: at least 3 x 1, which the workers ask for together, or they would "
        "wait for ever",
    ),
    (
        "a gang beyond its queue's adapters",
        {"infiniband": {"enabled": True}, "volcano": {"queue": {"capability": {"nvidia.com/hostdev": "3"}}}},
        "volcano.queue.capability: nvidia.com/hostdev is 3; accepted: at least 2 x 2, which the workers ask for together, "
        "or they would wait for ever",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("config", "want"), [pytest.param(config, want, id=name) for name, config, want in ROWS])
def test_one_line_says_it_all(config: dict[str, Any], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({key: as_config(value) for key, value in config.items()}, "tftrainer:")
    assert caught.value.lines == [f"tftrainer:{want}"]


def test_all_faults_are_told_at_once() -> None:
    config = {"numNodes": "0", "epoch": "1", "resources": json.dumps({"cpu": "x"})}
    with pytest.raises(ConfigError) as caught:
        parse(config, "tftrainer:")
    assert [line.split()[0] for line in caught.value.lines] == [
        "tftrainer:numNodes",
        "tftrainer:resources.cpu",
        "tftrainer:epoch",
    ]


def test_a_misspelt_config_namespace_is_no_silent_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulumi, "get_project", lambda: "tftrainer")
    pulumi.runtime.set_all_config({"tftrainr:numNodes": "3", "wandb:apiKey": "k", "kubernetes:context": "dev"})
    with pytest.raises(ConfigError) as caught:
        load()
    assert caught.value.lines == [
        "tftrainr:numNodes is in a config namespace that nothing reads; did you mean tftrainer:numNodes?"
    ]


def test_secret_values_are_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"env": json.dumps({"TOKEN": 0.5})}, "tftrainer:", ["env"])
    assert caught.value.lines == [f"tftrainer:env.TOKEN is [secret]; {ENV}"]


def test_long_values_are_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"image": "X" * 1000})
    assert caught.value.lines == [f'image is "{"X" * 79}...; {IMAGE}']


def test_every_setting_has_a_wrong_value_in_the_table() -> None:
    tried = {key for _, config, _ in ROWS for key in config}
    assert {field.alias for field in Settings.model_fields.values()} - tried <= {"runId"}
