"""Distributed TensorFlow on Kubeflow Trainer v2: scripts, queue, runtime and job, from the stack's settings."""

import signal

from components.errors import ConfigError, stop
from components.provider import start_provider

# When an update fails, the engine interrupts a program that still waits; Python would print tracebacks about it.
signal.signal(signal.SIGINT, signal.SIG_DFL)

start_provider()
try:
    from components import program  # meanwhile: importing it and asking the cluster takes about as long

    program.declare(*program.checked_settings())
except ConfigError as error:
    stop(error.lines)
