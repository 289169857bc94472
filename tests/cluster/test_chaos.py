"""Training goes on while parts of the cluster do not."""

import time

import pytest
from kubernetes import client
from urllib3.exceptions import HTTPError

from tests.cluster.conftest import EPOCHS, MakeJob
from tests.cluster.figures import EVERY, Gang, assert_finished_as_if_undisturbed, figure, repeated_steps
from tests.cluster.node import interface_down, restart_daemon
from tests.cluster.objects import listed, wait_until
from tests.cluster.recording import Worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def api_answers() -> bool:
    try:
        return bool(listed("v1", "Node"))
    except (client.ApiException, HTTPError):
        return False


def restart_dns() -> None:
    """Delete CoreDNS' pod without a grace period; its Deployment makes another."""
    client.CoreV1Api().delete_collection_namespaced_pod(
        "kube-system", label_selector="k8s-app=kube-dns", grace_period_seconds=0
    )


def test_kubelet_api_server_and_dns_are_restarted_and_training_does_not_notice(
    make_job: MakeJob, undisturbed: Worker
) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training()
    restart_daemon("kubelet")
    restart_dns()
    time.sleep(3)
    restart_daemon("kube-apiserver")
    wait_until("the API server is back", api_answers, 60)
    assert_finished_as_if_undisturbed(job, undisturbed)
    assert {worker.attempt for worker in job.workers} == {0}


def test_a_worker_that_is_cut_off_for_twenty_seconds_does_not_stop_the_job(
    make_job: MakeJob, undisturbed: Worker
) -> None:
    job = make_job(EPOCHS=EPOCHS)
    job.apply()
    job.wait_for_training(epoch=5)
    cut = time.time()
    with interface_down(job.gang[1]):
        time.sleep(20)
    assert_finished_as_if_undisturbed(job, undisturbed)
    gangs = [job.attempt(number) for number in range(job.restarts[0] + 1)]
    repeated = repeated_steps([Gang(gang) for gang in gangs])
    figure(
        "network down",
        left_after=[round((worker.ended or 0.0) - cut) for worker in gangs[0]],
        exit_codes=[worker.exit_code for worker in gangs[0]],
        next_gangs_ran_after=[round(max(worker.began or 0.0 for worker in gang) - cut) for gang in gangs[1:]],
        repeated_steps=repeated,
    )
    assert max(repeated, default=0) <= EVERY
