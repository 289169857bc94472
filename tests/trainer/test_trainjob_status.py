"""Progress reaches the TrainJob's status as Trainer takes it, and never disturbs the training."""

import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import trainjob_status
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kubeflow_trainer_api.models import (  # type: ignore[import-untyped]
    TrainerV1alpha1UpdateTrainJobStatusRequest,
)
from trainjob_status import CA_FILE, TOKEN_FILE, URL, TrainJobStatus

from tests.trainer.batches import write_batches
from tests.trainer.processes import finish_gang, start_gang


def a_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "trainer")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(exist_ok=True)
    (folder / "server.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return folder / "server.pem"


class Trainer:
    """Trainer's status server, over TLS."""

    def __init__(self, certificate: Path) -> None:
        self.received: list[tuple[str | None, dict[str, Any]]] = []
        self.code = 200
        self.before_answer: Callable[[dict[str, Any]], None] = lambda _: None
        trainer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                trainer.received.append((self.headers["Authorization"], body))
                trainer.before_answer(body)
                self.send_response(trainer.code)
                self.end_headers()
                self.wfile.write(b"{}" if trainer.code == 200 else b'{"message": "Forbidden"}')

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        self.url = f"https://127.0.0.1:{self._server.server_port}/status"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, reports: int) -> list[tuple[str | None, dict[str, Any]]]:
        deadline = time.monotonic() + 5
        while len(self.received) < reports and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.received


@pytest.fixture
def trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trainer]:
    server = Trainer(a_certificate(tmp_path))
    (tmp_path / "token").write_text("first\n")
    monkeypatch.setenv(URL, server.url)
    monkeypatch.setenv(CA_FILE, str(tmp_path / "server.pem"))
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "token"))
    monkeypatch.setattr(trainjob_status, "INTERVAL", 0.05)
    yield server
    server.close()


def test_a_report_is_what_trainers_api_takes(trainer: Trainer) -> None:
    log: list[str] = []
    TrainJobStatus(log.append).report(45.9, 119.6, {"loss": 0.123456789, "accuracy": 1.0})
    ((authorization, body),) = trainer.wait_for(1)
    request = TrainerV1alpha1UpdateTrainJobStatusRequest.from_dict(body)
    assert request
    status = request.trainer_status
    assert status
    assert authorization == "Bearer first"
    assert (status.progress_percentage, status.estimated_remaining_seconds) == (45, 120)
    assert [(metric.name, metric.value) for metric in status.metrics or []] == [("loss", "0.123457"), ("accuracy", "1")]
    assert log == []


def test_a_renewed_token_is_used(trainer: Trainer, tmp_path: Path) -> None:
    status = TrainJobStatus(print)
    status.report(1, 9, {})
    trainer.wait_for(1)
    (tmp_path / "token").write_text("second")
    status.report(2, 8, {})
    assert [authorization for authorization, _ in trainer.wait_for(2)] == ["Bearer first", "Bearer second"]


def test_of_many_reports_the_newest_is_sent(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainjob_status, "INTERVAL", 0.5)
    status = TrainJobStatus(print)
    for percent in range(50):
        status.report(percent, 0, {})
        time.sleep(0.002)
    status.close()
    percents = [body["trainerStatus"]["progressPercentage"] for _, body in trainer.received]
    assert len(percents) <= 3
    assert percents[-1] == 49


def test_the_end_waits_until_the_last_report_is_sent(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainjob_status, "INTERVAL", 60)
    status = TrainJobStatus(print)
    status.report(50, 1, {})
    trainer.wait_for(1)
    status.report(100, 0, {})
    status.close()
    assert trainer.received[-1][1]["trainerStatus"]["progressPercentage"] == 100


@pytest.mark.parametrize("missing", [URL, CA_FILE, TOKEN_FILE])
def test_without_the_gate_nothing_is_sent(trainer: Trainer, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(missing)
    status = TrainJobStatus(print)
    status.report(50, 1, {})
    status.close()
    assert trainer.received == []


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        pytest.param(URL, "https://127.0.0.1:1/status", "Connection refused", id="no server"),
        pytest.param(URL, "nonsense", "unknown url type", id="no URL"),
        pytest.param(TOKEN_FILE, "/nowhere", "No such file", id="no token"),
        pytest.param(CA_FILE, "/nowhere", "No such file", id="no CA"),
    ],
)
def test_a_failure_is_logged_once_and_harms_nothing(
    trainer: Trainer, variable: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert_logged_once(reason)
    assert trainer.received == []


def test_a_server_with_another_ca_is_not_trusted(
    trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA_FILE, str(a_certificate(tmp_path / "other")))
    assert_logged_once("CERTIFICATE_VERIFY_FAILED")
    assert trainer.received == []


def test_a_refusal_is_logged_with_its_reason(trainer: Trainer) -> None:
    trainer.code = 403
    assert_logged_once('403 Forbidden: {"message": "Forbidden"}')


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_no_worker_leaves_while_worker_0_still_sends_its_last_report(trainer: Trainer, tmp_path: Path) -> None:
    """It would stop sending heartbeats, and worker 0 would end a good run with the news of a crash."""
    there: list[bool] = []

    def dawdle(body: dict[str, Any]) -> None:
        if body["trainerStatus"]["progressPercentage"] == 100:
            time.sleep(3)
            there.extend(worker.poll() is None for worker in gang)

    trainer.before_answer = dawdle
    data = write_batches(tmp_path / "cifar", train=48, test=10)
    gate = {key: os.environ[key] for key in (URL, CA_FILE, TOKEN_FILE)}
    gang = start_gang(2, DATA_DIR=str(data), EPOCHS="1", BATCH_SIZE="24", **gate)
    assert [result.code for result in finish_gang(gang)] == [0, 0]
    assert there[-2:] == [True, True]


def assert_logged_once(reason: str) -> None:
    log: list[str] = []
    status = TrainJobStatus(log.append)
    for percent in range(3):
        status.report(percent, 0, {})
        time.sleep(0.1)
    status.close()
    assert len(log) == 1
    assert log[0].startswith("progress not reported: ")
    assert reason in log[0]
