"""Keys: what is built again, and what is not."""

import re
import shutil
from pathlib import Path

import pytest

from devcluster import builds
from devcluster.builds import Artifact, Copy, Extract, Keys, PulumiPlugin, Tool
from devcluster.catalog import (
    BINARIES,
    CONTAINERD_VERSION,
    EXTRACTS,
    KUBERNETES_PROVIDER_VERSION,
    KUBERNETES_VERSION,
    PULUMI_VERSION,
)
from devcluster.images import IMAGES, Image
from devcluster.paths import TOOLS
from tests.devcluster.builders import a_binary, a_cache


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the tools' folders that a test may change."""
    copy = tmp_path / "tools"
    shutil.copytree(TOOLS, copy)
    monkeypatch.setattr(builds, "TOOLS", copy)
    return copy


def upper(text: str) -> str:
    return text.upper()


def lower(text: str) -> str:
    return text.lower()


def an_extract(**changes: object) -> Extract:
    return Extract(Tool("jobset"), Copy(**{"module": "m.test", "source": "a", "target": "b", **changes}))  # type: ignore[arg-type]


def test_a_binary_keeps_its_key_when_nothing_changes() -> None:
    assert a_binary().key() == a_binary().key()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(a_binary(tool="etcd"), id="another module"),
        pytest.param(a_binary(package="example.test/other"), id="another package"),
        pytest.param(a_binary(linker_flags="-X a.b=c"), id="other linker flags"),
    ],
)
def test_a_binary_is_built_again_for(other: Artifact) -> None:
    assert other.key() != a_binary().key()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(an_extract(), an_extract(source="c"), id="another source"),
        pytest.param(an_extract(edit=upper), an_extract(), id="an edit that is dropped"),
        pytest.param(an_extract(edit=upper), an_extract(edit=lower), id="an edit that is another"),
    ],
)
def test_a_copy_is_made_again_for(one: Extract, other: Extract) -> None:
    assert one.key() != other.key()


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "tools.go"])
def test_a_binary_is_built_again_when_a_file_of_its_tool_changes(tools: Path, file: str) -> None:
    before = a_binary().key()
    with (tools / "containerd" / file).open("a") as text:
        text.write("\n")
    assert a_binary().key() != before
    assert a_binary(tool="etcd").key() == a_binary(tool="etcd").key()


def test_what_is_built_and_unchanged_is_current(tmp_path: Path) -> None:
    cache, binary = a_cache(tmp_path), a_binary()
    binary.path(cache).touch()
    Keys(cache).record(binary)
    assert Keys(cache).is_current(binary)


def test_what_was_never_recorded_is_not_current(tmp_path: Path) -> None:
    cache, binary = a_cache(tmp_path), a_binary()
    binary.path(cache).touch()
    assert not Keys(cache).is_current(binary)


def test_what_was_deleted_is_not_current(tmp_path: Path) -> None:
    cache = a_cache(tmp_path)
    Keys(cache).record(a_binary())
    assert not Keys(cache).is_current(a_binary())


def test_what_was_built_from_something_else_is_not_current(tmp_path: Path) -> None:
    cache, old = a_cache(tmp_path), a_binary(linker_flags="-X a.b=old")
    old.path(cache).touch()
    Keys(cache).record(old)
    assert not Keys(cache).is_current(a_binary())


def test_a_plugin_is_where_pulumi_looks_for_it(tmp_path: Path) -> None:
    plugin = PulumiPlugin("pulumi-resource-example", Tool("pulumi"), ".", version="1.2.3")
    folder = "pulumi-home/plugins/resource-example-v1.2.3"
    assert plugin.path(a_cache(tmp_path)) == tmp_path / "tftrainer" / folder / "pulumi-resource-example"


@pytest.mark.parametrize("artifact", [*BINARIES, *EXTRACTS], ids=lambda artifact: artifact.name)
def test_every_artifact_has_a_pinned_module(artifact: Artifact) -> None:
    assert (TOOLS / artifact.tool.name / "go.mod").is_file()


def test_no_two_artifacts_share_a_name() -> None:
    names = [artifact.name for artifact in (*BINARIES, *EXTRACTS)]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize(
    ("tool", "module", "version"),
    [
        pytest.param("kubernetes", "k8s.io/kubernetes", KUBERNETES_VERSION, id="Kubernetes"),
        pytest.param("containerd", "github.com/containerd/containerd/v2", CONTAINERD_VERSION, id="containerd"),
        pytest.param("pulumi", "github.com/pulumi/pulumi/pkg/v3", PULUMI_VERSION, id="Pulumi"),
        pytest.param("jobset", "sigs.k8s.io/jobset", "v0.12.0", id="JobSet"),
    ],
)
def test_a_version_that_is_named_is_the_pinned_one(tool: str, module: str, version: str) -> None:
    pinned = re.search(rf"{re.escape(module)} (\S+)", (TOOLS / tool / "go.mod").read_text())
    assert pinned is not None
    assert pinned[1] == version


def test_the_provider_calls_itself_by_the_version_it_is_installed_as() -> None:
    assert f'"{KUBERNETES_PROVIDER_VERSION}"' in (TOOLS / "pulumi-kubernetes" / "main.go").read_text()


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_an_image_has_a_tag_in_each_of_its_names(image: Image) -> None:
    assert all(re.fullmatch(r"[a-z0-9./-]+:[\w.]+", ref) for ref in image.refs)


def test_an_image_is_built_again_when_a_program_in_it_is(tools: Path) -> None:
    by_name = {image.name: image for image in IMAGES}
    before = {name: image.key() for name, image in by_name.items()}
    (tools / "coredns" / "go.sum").write_text("changed")
    assert [name for name, image in by_name.items() if image.key() != before[name]] == ["coredns"]
