"""A W&B server for each test, and a home of its own for what W&B's client writes."""

import os
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from kubernetes import config

from tests.cluster.objects import kind_of, listed
from tests.launch import images as launch_images
from tests.launch.fake_wandb import FakeWandb

IMAGES = pytest.StashKey[Future[None]]()


def pytest_runtestloop(session: pytest.Session) -> None:
    """Begin with the images that tests to come need: the first time they take minutes, of downloads mostly."""
    if any("images" in getattr(item, "fixturenames", ()) for item in session.items):
        session.stash[IMAGES] = ThreadPoolExecutor(1).submit(launch_images.ensure)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_ENTITY"):
        monkeypatch.delenv(variable, raising=False)
    with FakeWandb() as fake:
        yield fake


@pytest.fixture(scope="session")
def images(request: pytest.FixtureRequest) -> None:
    """The images of the jobs and of the agent, in the embedded cluster."""
    request.session.stash[IMAGES].result()


@pytest.fixture
def namespace(images: None) -> Iterator[str]:
    """A fresh namespace of the embedded cluster, deleted afterwards with all that is in it."""
    config.load_kube_config(os.environ.get("KUBECONFIG"))
    nodes = [node["metadata"]["name"] for node in listed("v1", "Node")]
    assert "devcluster" in nodes, f"the current kube context is not the embedded cluster: its nodes are {nodes}"
    name = f"launch-{uuid.uuid4().hex[:6]}"
    kind_of("v1", "Namespace").create(body={"metadata": {"name": name}})
    yield name
    kind_of("v1", "Namespace").delete(name=name)
