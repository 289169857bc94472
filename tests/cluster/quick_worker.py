"""A training script that trains nothing: it says whom it would train with, and ends as its environment asks.

SECONDS: how long it runs; default 0. FAILING: index of the worker that ends with exit code 3; default none.
"""

import json
import os
import signal
import socket
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
task = json.loads(os.environ["TF_CONFIG"])
hosts = [address.rpartition(":")[0] for address in task["cluster"]["worker"]]
print("peers", *(socket.gethostbyname(host) for host in hosts), flush=True)
time.sleep(float(os.environ.get("SECONDS", "0")))
if str(task["task"]["index"]) == os.environ.get("FAILING"):
    print("no luck today", flush=True)
    sys.exit(3)
