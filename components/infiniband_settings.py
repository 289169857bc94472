"""The settings of InfiniBand, alike for TrainJobs and for W&B Launch's runs."""

from components import field_types as t
from components.network import InfiniBandArgs
from components.section import Section


class InfiniBand(Section):
    """RDMA between the workers, through a secondary network (Multus) and a device plugin."""

    enabled: t.Flag = False
    """On: pods join the networks and get adapters, and NCCL is told to use them."""
    networks: t.NetworkNames = ("hostdevice-net",)
    """NetworkAttachmentDefinitions that every pod joins."""
    resource: t.DeviceResource = "nvidia.com/hostdev"
    """Resource name under which the device plugin offers the adapters."""
    count: t.Positive = 2
    """Adapters for each worker."""
    nccl_env: t.Environment = {"NCCL_IB_DISABLE": "0", "NCCL_SOCKET_IFNAME": "net", "NCCL_DEBUG": "INFO"}
    """Environment for NCCL, GPU communication's library."""

    def args(self) -> InfiniBandArgs | None:
        """What the spec builders take; None when it is off."""
        if not self.enabled:
            return None
        return {
            "networks": self.networks,
            "resource": self.resource,
            "count": self.count,
            "nccl_env": self.nccl_env,
        }
