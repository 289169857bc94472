"""A program run against mocks that give every resource back what it was given, a Helm release and a queue included."""

from collections.abc import Callable

from pulumi.runtime import mocks

from tests.unit import recording
from tests.unit.recording import RecordingMonitor, Run


class _Echo(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[object, object], None]:
        raise AssertionError(f"the program calls {args.token}, and needs no function of any provider")


def run(program: Callable[[], None], preview: bool = False) -> Run:
    monitor = RecordingMonitor()
    monitor.mocks = _Echo()
    return recording.run(program, preview=preview, monitor=monitor)
