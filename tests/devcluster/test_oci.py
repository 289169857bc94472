"""Image archives that containerd takes."""

import os
from pathlib import Path

import pytest

from devcluster import oci
from tests.devcluster.builders import Archive


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program"
    file.write_bytes(b"x" * 1000)  # not a multiple of tar's block
    return file


def write(
    tmp_path: Path, *layers: oci.Layer, config: oci.Config | None = None, names: tuple[str, ...] = ("a:1",)
) -> Archive:
    path = tmp_path / "image.tar"
    oci.write_archive(path, names, layers, config or oci.Config())
    return Archive.read(path)


def test_every_descriptor_has_digest_and_size_of_what_it_points_to(tmp_path: Path, program: Path) -> None:
    archive = write(tmp_path, [oci.File(program, "/one")], [oci.File(program, "/two")])
    assert len(archive.layers()) == 2  # reading them checks digests and sizes
    assert archive.config["rootfs"]["diff_ids"] == [layer["digest"] for layer in archive.manifest["layers"]]


def test_an_image_has_all_its_names(tmp_path: Path, program: Path) -> None:
    archive = write(tmp_path, [oci.File(program, "/one")], names=("a.test/x:1", "b.test/y:2"))
    assert archive.names == ["a.test/x:1", "b.test/y:2"]


def test_a_file_belongs_to_root_and_brings_its_parents(tmp_path: Path, program: Path) -> None:
    [layer] = write(tmp_path, [oci.File(program, "/usr/local/bin/program")]).layers()
    assert list(layer) == ["usr", "usr/local", "usr/local/bin", "usr/local/bin/program"]
    file = layer["usr/local/bin/program"]
    assert (file.uid, file.gid, file.mode, file.size) == (0, 0, 0o755, 1000)


def test_a_parent_is_listed_once(tmp_path: Path, program: Path) -> None:
    [layer] = write(tmp_path, [oci.File(program, "/opt/one"), oci.File(program, "/opt/two")]).layers()
    assert list(layer) == ["opt", "opt/one", "opt/two"]


def test_a_folder_has_the_mode_it_is_given(tmp_path: Path) -> None:
    [layer] = write(tmp_path, [oci.Folder("/scratch", 0o1777)]).layers()
    assert layer["scratch"].isdir()
    assert layer["scratch"].mode == 0o1777


def test_a_tree_keeps_links_and_modes_but_not_the_names_of_users(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "sh").write_text("shell")
    (root / "bin" / "sh").chmod(0o4755)
    os.link(root / "bin" / "sh", root / "bin" / "twin")
    (root / "sbin").symlink_to("bin")
    [layer] = write(tmp_path, oci.Tree(root)).layers()
    assert layer["bin/sh"].mode == 0o4755
    assert layer["bin/twin"].islnk()
    assert layer["sbin"].linkname == "bin"
    assert {member.uname for member in layer.values()} == {""}


def test_the_config_says_how_containers_start(tmp_path: Path, program: Path) -> None:
    config = oci.Config(entrypoint=["/one"], cmd=["--help"], env=["A=b"], user="65532:65532")
    found = write(tmp_path, [oci.File(program, "/one")], config=config).config["config"]
    assert (found["Entrypoint"], found["Cmd"], found["User"]) == (["/one"], ["--help"], "65532:65532")
    assert found["Env"][0].startswith("PATH=")
    assert found["Env"][1:] == ["A=b"]


def test_the_same_files_make_the_same_image(tmp_path: Path, program: Path) -> None:
    first = write(tmp_path, [oci.File(program, "/one")])
    os.utime(program, (1, 1))
    assert write(tmp_path, [oci.File(program, "/one")]) == first
