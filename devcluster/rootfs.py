"""Root filesystems for images that need more than one static program."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from devcluster.commands import run
from devcluster.paths import PACKAGE

SUITE = "bookworm"
PYTHON = "3.11"
"""Debian bookworm's Python, for which TensorFlow's wheels are chosen, whatever Python runs this."""
REQUIREMENTS = PACKAGE / "tensorflow-image.txt"
EDITION = "2"
"""Part of the images' keys: raise it when what is built here changes."""

PACKAGES = Path("usr/local/lib") / f"python{PYTHON}" / "dist-packages"
"""Where Debian's Python looks for what does not come from Debian."""

_DEFAULT_MIRROR = "http://deb.debian.org/debian"
_GLIBC = range(17, 36 + 1)
"""Wheels say which glibc 2.x they need at least; bookworm has 2.36."""


def debian(folder: Path) -> None:
    """A minimal Debian with python3, bash, OpenSSL and CA certificates in `folder` (about 180 MiB).

    Raises:
        DevclusterError: the packages could not be had.
    """
    shutil.rmtree(folder, ignore_errors=True)
    packages = "--include=python3,ca-certificates"
    run(["debootstrap", "--variant=minbase", packages, SUITE, folder, debian_mirror(apt_sources())])
    for useless in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(folder / useless)


def tensorflow(folder: Path) -> None:
    """TensorFlow for CPUs in `folder`, laid out to lie over `debian` (about 1 GiB).

    Raises:
        DevclusterError: the packages could not be had.
    """
    shutil.rmtree(folder, ignore_errors=True)
    packages = folder / PACKAGES
    tags = ["manylinux2014_x86_64", *(f"manylinux_2_{minor}_x86_64" for minor in _GLIBC)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--only-binary=:all:"]
    platform = [f"--platform={tag}" for tag in tags]
    version = [f"--python-version={PYTHON}", "--implementation=cp"]
    run([*pip, *platform, *version, "--target", packages, "--requirement", REQUIREMENTS])
    for useless in _unused(packages):
        shutil.rmtree(useless) if useless.is_dir() else useless.unlink()


def compile_packages(base: Path, folder: Path) -> None:
    """Compile the Python packages in `folder`, which is to lie over `base`, by the Python of `base`.

    A pod could not keep what it compiles: each worker would compile TensorFlow anew, for twice as long as it takes to
    import it. An image does not change, so nothing compares the modules with their sources either.

    Raises:
        DevclusterError: this machine does not allow to mount.
    """
    mounted = base / PACKAGES
    mounted.mkdir(parents=True, exist_ok=True)
    compileall = f"python3 -m compileall -qq --invalidation-mode unchecked-hash /{PACKAGES} || true"  # templates, tests
    lines = 'mount --bind "$1" "$2"; chroot "$3" sh -c "$4"'
    run(["unshare", "--mount", "sh", "-ec", lines, "sh", folder / PACKAGES, mounted, base, compileall])


def _unused(packages: Path) -> Iterator[Path]:
    """What no program that trains needs: C++ headers, static libraries. They would be a third of the image's files."""
    yield packages / "tensorflow" / "include"
    yield from packages.rglob("*.a")


def apt_sources() -> str:
    """The machine's own apt configuration, in either format."""
    folder = Path("/etc/apt/sources.list.d")
    files = [Path("/etc/apt/sources.list"), *sorted(folder.glob("*.list")), *sorted(folder.glob("*.sources"))]
    return "\n\n".join(file.read_text() for file in files if file.exists())


def debian_mirror(sources: str) -> str:
    """The mirror that `sources`, in one-line or deb822 format, use for Debian bookworm; Debian's own if none is.

    >>> debian_mirror("deb [signed-by=/k.gpg] http://mirror.test/debian bookworm main")
    'http://mirror.test/debian'
    """
    for line in sources.splitlines():
        one_line = re.fullmatch(rf"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+{SUITE}\s+.*\bmain\b.*", line.strip())
        if one_line:
            return one_line[1]
    for stanza in re.split(r"\n\s*\n", sources):
        fields = dict(re.findall(r"(?m)^(\w[\w-]*):[ \t]*(.*)$", stanza))
        if SUITE in fields.get("Suites", "").split() and fields.get("URIs"):
            return str(fields["URIs"].split()[0])
    return _DEFAULT_MIRROR
