"""The loss curve of a run, as a person sees it: TensorBoard in a browser."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cluster.conftest import IMAGE, Deploy
from tests.cluster.objects import named, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

EPOCHS = 4
# Without 3D, TensorBoard draws its curves as SVG, which is text. The rest keeps the browser from calling home.
CHROMIUM = shlex.split(
    "chromium --headless --no-sandbox --disable-gpu --disable-3d-apis --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --virtual-time-budget=30000 --window-size=1400,900"
)
CURVE = re.compile(r'<path d="M([-\d.,L]+)" style="fill: none; stroke: rgb')


def page(url: str, profile: Path) -> str:
    """The page as the browser has it once its scripts are done."""
    command = [*CHROMIUM, f"--user-data-dir={profile}", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)  # noqa: S603  all ours
    return done.stdout


def curve(dom: str, tag: str) -> list[float]:
    """The heights of the points of a tag's curve, in pixels from the top."""
    card = dom.partition(f'title="{tag}"')[2]
    found = CURVE.search(card)
    return [float(point.split(",")[1]) for point in found[1].split("L")] if found else []


def test_the_browser_shows_the_falling_loss_of_a_run(deploy: Deploy, namespace: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    program = deploy(epochs=EPOCHS, logs={"hostPath": str(logs)}, tensorboard={"enabled": True, "image": IMAGE})
    program.up()
    assert os.listdir(logs / namespace) == ["digits"]

    service = named("v1", "Service", "digits-tensorboard", namespace)
    url = f"http://{service['spec']['clusterIP']}/?smoothing=0#timeseries"
    heights: list[float] = []

    def drawn() -> bool:
        heights[:] = curve(page(url, tmp_path / "profile"), "loss")
        return len(heights) == EPOCHS

    wait_until("TensorBoard draws the loss of every epoch", drawn, seconds=90)
    assert heights == sorted(heights)  # downwards on the screen
