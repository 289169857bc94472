"""Progress lines, commands and DNS messages."""

import io
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import dns, init
from devcluster.commands import run
from devcluster.errors import DevclusterError
from devcluster.progress import Progress


def test_a_step_says_which_of_how_many_it_is_and_how_long_it_took() -> None:
    out = io.StringIO()
    progress = Progress(12, out)
    with progress.step("build etcd"):
        pass
    assert out.getvalue() == "[ 1/12] build etcd … 0 s\n"


def test_a_step_that_fails_ends_its_line() -> None:
    out = io.StringIO()
    with pytest.raises(ValueError, match="no"), Progress(1, out).step("fail"):
        raise ValueError("no")
    assert out.getvalue().endswith("s\n")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(
            ["/bin/sh", "-c", "echo a; echo why >&2; exit 3"], r"failed \(3\): why", id="its last line is told"
        ),
        pytest.param(["/bin/sh", "-c", "exit 1"], r"failed \(1\): no output", id="silence is told, too"),
        pytest.param(["/no/such/program"], "/no/such/program is not installed", id="a missing one is named"),
    ],
)
def test_a_command_that_fails(argv: list[str], message: str) -> None:
    with pytest.raises(DevclusterError, match=message):
        run(argv)


def test_a_command_that_hangs_is_given_up() -> None:
    with pytest.raises(DevclusterError, match=r"did not finish within 0\.1 s"):
        run(["/bin/sleep", "60"], timeout=0.1)


def reply(number: int = 7, flags: int = 0x8180, records: int = 1) -> bytes:
    return struct.pack("!6H", number, flags, 1, records, 0, 0) + b"the rest"


@pytest.mark.parametrize(
    ("message", "success"),
    [
        pytest.param(reply(), True, id="a record is an answer"),
        pytest.param(reply(records=0), False, id="no record is none"),
        pytest.param(reply(flags=0x8183), False, id="NXDOMAIN is none"),
        pytest.param(reply(number=8), False, id="the answer to another question is none"),
        pytest.param(b"\0\7", False, id="a truncated message is none"),
    ],
)
def test_a_dns_message(message: bytes, success: bool) -> None:
    assert dns.is_success(7, message) is success


def test_a_dns_query_spells_its_name_in_labels() -> None:
    assert dns.query(7, "a.bc").endswith(b"\x01a\x02bc\0\0\x01\0\x01")


def test_a_started_daemon_writes_into_its_log_and_is_reaped(tmp_path: Path) -> None:
    script = f"import sys; sys.path.insert(0, {str(Path(init.__file__).parent)!r}); import init, os, time\n"
    script += f"init.start(['/bin/sh', '-c', 'echo out; echo err >&2'], {str(tmp_path / 'log')!r}); time.sleep(0.3)\n"
    script += "init.reap()\ntry: os.waitpid(-1, 0)\nexcept ChildProcessError: print('reaped')"
    done = subprocess.run([sys.executable, "-S", "-c", script], check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stdout == "reaped\n"
    assert (tmp_path / "log").read_text() == "out\nerr\n"
