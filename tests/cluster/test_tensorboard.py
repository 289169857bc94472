"""The loss curve of a run, as a person sees it: TensorBoard in a browser."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tests.cluster.conftest import IMAGE, Deploy
from tests.cluster.objects import named, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

EPOCHS = 4
# Without 3D, TensorBoard draws its curves as SVG, whose points can be read. The rest keeps Chromium from calling home.
FLAGS = """--headless --no-sandbox --disable-gpu --disable-3d-apis --disable-quic --no-first-run --disable-sync
--disable-background-networking --disable-component-update --window-size=1400,900"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    """Debian's Chromium with an empty profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}"]:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def drawn_heights(browser: webdriver.Chrome) -> list[float]:
    """The heights of the curve's points, in pixels from the top; none while nothing is drawn."""
    paths = browser.find_elements(By.CSS_SELECTOR, "line-chart .series-view path")
    return [float(y) for y in re.findall(r",(-?[\d.]+)", paths[0].get_attribute("d") or "")] if paths else []


def test_the_browser_shows_the_falling_loss_of_a_run(
    deploy: Deploy, namespace: str, tmp_path: Path, browser: webdriver.Chrome
) -> None:
    logs = tmp_path / "logs"
    deploy(epochs=EPOCHS, logs={"hostPath": str(logs)}, tensorboard={"enabled": True, "image": IMAGE}).up()
    assert os.listdir(logs / namespace) == ["digits"]

    service = named("v1", "Service", "digits-tensorboard", namespace)
    browser.get(f"http://{service['spec']['clusterIP']}/?smoothing=0&tagFilter=%5Eloss%24#timeseries")
    wait_until("TensorBoard draws the loss of every epoch", lambda: len(drawn_heights(browser)) == EPOCHS)
    heights = drawn_heights(browser)
    assert heights == sorted(heights)  # downwards on the screen
