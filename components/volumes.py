"""Folders of nodes, claims and memory, mounted into the training container."""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

from components import api

HOST_PATH_MUST_EXIST = "Directory"
HOST_PATH_MADE = "DirectoryOrCreate"
DEFAULT_DATA_HOST_PATH = "/home/ubuntu/cifar-10-batches-py"


class VolumeArgs(TypedDict):
    volume_name: str
    """Name of the volume in the pod."""
    mount_path: str
    """Where the container sees it."""
    host_path: NotRequired[str | None]
    """Folder on the node. Exactly one of this and pvc is given."""
    host_path_type: NotRequired[str]
    """Directory (it must exist) or DirectoryOrCreate. Default: Directory."""
    pvc: NotRequired[str | None]
    """PersistentVolumeClaim in the pod's namespace."""
    read_only: NotRequired[bool]
    """Default: false."""


def data_volume(host_path: str | None = None, pvc: str | None = None) -> VolumeArgs:
    """The training data: read from a claim or a folder of the nodes, which must exist."""
    return {
        "volume_name": "cifar-data",
        "mount_path": api.DATA_DIR,
        "host_path": None if pvc else host_path or DEFAULT_DATA_HOST_PATH,
        "pvc": pvc,
        "read_only": True,
    }


def checkpoint_volume(host_path: str | None, pvc: str | None) -> VolumeArgs:
    """Where checkpoints go; a folder of the nodes is made when missing."""
    return _written("checkpoints", api.CHECKPOINT_DIR, host_path, pvc)


def log_volume(host_path: str | None, pvc: str | None) -> VolumeArgs:
    """Where TensorBoard's event files go; a folder of the nodes is made when missing."""
    return _written("logs", api.LOG_DIR, host_path, pvc)


def _written(volume_name: str, mount_path: str, host_path: str | None, pvc: str | None) -> VolumeArgs:
    return {
        "volume_name": volume_name,
        "mount_path": mount_path,
        "host_path": host_path,
        "host_path_type": HOST_PATH_MADE,
        "pvc": pvc,
    }


def pod_volume(volume: VolumeArgs) -> dict[str, Any]:
    """The volume's entry in the pod."""
    if pvc := volume.get("pvc"):
        return {"name": volume["volume_name"], "persistentVolumeClaim": {"claimName": pvc}}
    host_path = {"path": volume.get("host_path"), "type": volume.get("host_path_type", HOST_PATH_MUST_EXIST)}
    return {"name": volume["volume_name"], "hostPath": host_path}


def mount(volume: VolumeArgs) -> dict[str, Any]:
    """The volume's entry in the container."""
    read_only = volume.get("read_only") or None
    return api.drop_absent({"name": volume["volume_name"], "mountPath": volume["mount_path"], "readOnly": read_only})


def pod_volumes(
    scripts: Any, volumes: Sequence[VolumeArgs], shm_size: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The pod's volumes and the container's mounts: the scripts, `volumes`, and memory for /dev/shm if wanted."""
    in_pod = [{"name": "trainer-scripts", "configMap": {"name": scripts}}, *map(pod_volume, volumes)]
    in_container = [
        {"name": "trainer-scripts", "mountPath": api.SCRIPTS_DIR, "readOnly": True},
        *map(mount, volumes),
    ]
    if shm_size:
        in_pod.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm_size}})
        in_container.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108  the kernel's path, not a temporary file
    return in_pod, in_container
