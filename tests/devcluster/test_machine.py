"""What the machine is asked and told: checks, packages, routes, mirrors, the command line."""

import os
from pathlib import Path

import pytest

from devcluster import __main__ as program
from devcluster import checks, packages, rootfs
from devcluster.errors import DevclusterError
from devcluster.lifecycle import Plan
from devcluster.network import find_clash
from devcluster.paths import Cache
from tests.devcluster.builders import a_binary


@pytest.mark.parametrize(
    ("environ", "want"),
    [
        pytest.param({"XDG_CACHE_HOME": "/caches"}, "/caches/tftrainer", id="the XDG variable is followed"),
        pytest.param({}, "~/.cache/tftrainer", id="without it, the home folder's cache"),
        pytest.param({"XDG_CACHE_HOME": "relative"}, "~/.cache/tftrainer", id="a relative one is no path, says XDG"),
    ],
)
def test_the_cache_root(environ: dict[str, str], want: str) -> None:
    assert Cache.from_environment(environ).root == Path(want).expanduser()


@pytest.mark.parametrize(
    ("destination", "clashes"),
    [
        pytest.param("default", False, id="the default route is no clash"),
        pytest.param("192.0.2.0/24", False, id="another network is no clash"),
        pytest.param("127.0.0.1", False, id="a host route elsewhere is no clash"),
        pytest.param("10.244.0.0/16", True, id="a network around the pods' one clashes"),
        pytest.param("10.96.0.1", True, id="a host route to a Service address clashes"),
        pytest.param("10.0.0.0/8", True, id="a network around all of ours clashes"),
    ],
)
def test_a_route_of_the_machine(destination: str, clashes: bool) -> None:
    found = find_clash([{"dst": destination, "dev": "eth9"}])
    assert bool(found) is clashes
    if found:
        assert destination in found
        assert "eth9" in found


@pytest.mark.parametrize(
    ("sources", "want"),
    [
        pytest.param("deb http://m.test/debian bookworm main\n", "http://m.test/debian", id="one line"),
        pytest.param("deb [arch=amd64] http://m.test/debian bookworm main", "http://m.test/debian", id="with options"),
        pytest.param(
            "Types: deb\n# a comment\nURIs: http://m.test/debian\nSuites: bookworm bookworm-updates\n",
            "http://m.test/debian",
            id="a stanza",
        ),
        pytest.param(
            "Types: deb\nURIs: http://sec.test\nSuites: bookworm-security\n\nURIs: http://m.test\nSuites: bookworm\n",
            "http://m.test",
            id="the stanza of the base suite, not of security updates",
        ),
        pytest.param("deb http://m.test/ubuntu noble main", "http://deb.debian.org/debian", id="another distribution"),
        pytest.param(
            "deb http://m.test/tool bookworm stable", "http://deb.debian.org/debian", id="a foreign repository"
        ),
        pytest.param("", "http://deb.debian.org/debian", id="nothing configured"),
    ],
)
def test_the_debian_mirror_is_the_machines_own(sources: str, want: str) -> None:
    assert rootfs.debian_mirror(sources) == want


def test_too_little_memory_is_one_line_with_a_way_out() -> None:
    with pytest.raises(DevclusterError, match=r"6 GiB of memory, 1\.0 are available; or use your own cluster"):
        checks.memory("MemTotal: 99999999 kB\nMemAvailable: 1048576 kB\n")


def test_enough_memory_is_no_error() -> None:
    checks.memory("MemAvailable: 16777216 kB\n")


def test_too_little_disk_is_one_line_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(DevclusterError, match=r"1000000000 GiB of disk are needed in .*; or use your own cluster"):
        checks.disk(tmp_path / "not" / "yet" / "there", 1e9)


def test_a_user_who_is_not_root_is_told_so() -> None:
    with pytest.raises(DevclusterError, match=r"needs root .* user id 1000; or use your own cluster"):
        checks.root(1000)


def test_without_go_nothing_can_be_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevclusterError, match=r"needs Go on PATH.*or use your own cluster"):
        checks.go()


def test_without_apt_the_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevclusterError, match="no apt-get: install runc, socat yourself"):
        packages.install(["runc", "socat"])


def test_disk_space_is_asked_for_by_what_is_to_be_built() -> None:
    nothing = Plan([], [], [])
    something = Plan([], [a_binary()] * 10, [])
    assert nothing.disk_gib < something.disk_gib


@pytest.mark.parametrize("command", ["up", "down", "status"])
def test_commands_need_root(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert program.main([command]) == 1
    error = capsys.readouterr().err
    assert error.startswith("devcluster: the embedded cluster needs root")
    assert error.count("\n") == 1


def test_an_archive_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert program.main(["load-image", "/no/such.tar"]) == 1
    assert "/no/such.tar is no file; a tar archive of an image" in capsys.readouterr().err
