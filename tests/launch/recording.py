"""A program run against mocks that give every resource back what it was given, a Helm release and a queue included."""

from collections.abc import Callable

import pulumi
from pulumi.runtime import mocks
from pulumi.runtime.settings import ROOT

from tests.unit.recording import PROJECT, STACK, RecordingMonitor, Run, _fresh_event_loop


class _Echo(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[object, object], None]:
        raise AssertionError(f"the program calls {args.token}, and needs no function of any provider")


def run(program: Callable[[], None], preview: bool = False) -> Run:
    monitor = RecordingMonitor({})
    monitor.mocks = _Echo()
    with _fresh_event_loop() as loop:
        ROOT.set(None)
        mocks.set_mocks(monitor.mocks, project=PROJECT, stack=STACK, preview=preview, monitor=monitor)
        ROOT.set(None)
        pulumi.runtime.set_all_config({})
        loop.run_until_complete(pulumi.runtime.run_in_stack(program))
    return Run(list(monitor.registered.values()))
