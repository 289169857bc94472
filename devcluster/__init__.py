"""An embedded single-node Kubernetes for development and tests: real kubelet, containerd and runc, no Docker.

``python -m devcluster up`` builds every binary from Go modules pinned in ``tools/``, builds the images, and starts the
cluster inside its own mount, network and PID namespaces. So the machine's own containerd, kubelet, ports, iptables
rules and sysctls are out of reach, and whatever the cluster leaves behind goes away with its processes.
"""
