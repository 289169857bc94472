"""PID 1 of the cluster's namespaces: starts the daemons it is told to, reaps orphans, and takes all with it on death.

Run by `namespace.py` as a plain script with the state folder as its argument, which also says whose cluster it is.
Standard library only: it outlives the checkout that started it.

It reads one JSON object a line from standard input, {"argv": [...], "log": "<file>"}, and starts it; at the end of
the input it just keeps on reaping.
"""

import json
import os
import signal
import subprocess
import sys

PRIVATE = ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers")
"""Paths that containerd, the CNI library and kubelet have built in: here they get empty ones of their own."""

SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""kubelet sets these for the whole machine unless it finds them so. It finds files of ours and leaves the kernel be.
https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/container_manager_linux.go (setupKernelTunables)
"""


def mount(*args: str) -> None:
    subprocess.run(["/bin/mount", *args], check=True)  # noqa: S603 (no shell)


def prepare_mounts() -> None:
    mount("--make-rshared", "/")  # kubelet and containerd pass mounts on to pods; nothing gets back to the machine
    mount("-t", "proc", "proc", "/proc")
    for path in PRIVATE:
        mount("-t", "tmpfs", "-o", "mode=0755", "tftrainer", path)
    for name, value in SYSCTLS.items():
        stand_in = os.path.join("/run", name.replace("/", "."))
        with open(stand_in, "w") as file:
            file.write(value + "\n")
        mount("--bind", stand_in, os.path.join("/proc/sys", name))


def start(argv: list[str], log: str) -> None:
    with open(log, "wb") as output, open(os.devnull, "rb") as nothing:
        os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, output.fileno(), 2),
            ],
            setsid=True,
        )


def reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> None:
    prepare_mounts()
    signal.signal(signal.SIGCHLD, reap)
    print("ready", flush=True)
    for line in sys.stdin:
        start(**json.loads(line))
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
