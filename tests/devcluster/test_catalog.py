"""How files from modules are changed."""

import json

import yaml

from devcluster import catalog

CHART = """\
# A licence.
apiVersion: v2
name: example

dependencies:
- name: one
  version: 1.0.0

# about the second
- name: two
  condition: two.install

keywords:
- example
"""


def test_a_chart_without_its_dependencies_is_otherwise_the_same() -> None:
    found = yaml.safe_load(catalog._drop_dependencies(CHART))
    assert found == {"apiVersion": "v2", "name": "example", "keywords": ["example"]}


def test_a_chart_without_dependencies_is_left_alone() -> None:
    assert catalog._drop_dependencies("name: example\n") == "name: example\n"


def test_the_providers_schema_gets_its_version() -> None:
    assert json.loads(catalog._add_provider_version('{"name": "kubernetes"}')) == {
        "name": "kubernetes",
        "version": catalog.KUBERNETES_PROVIDER_VERSION,
    }


def test_a_script_for_busybox_is_run_by_bash() -> None:
    assert catalog._use_bash("#!/bin/sh\nset -e\n") == "#!/bin/bash\nset -e\n"


def test_kubernetes_reports_a_version_that_clients_can_parse() -> None:
    assert "version.gitVersion=v1.36.3" in catalog._kubernetes_version_flags()
    assert "version.gitMinor=36" in catalog._kubernetes_version_flags()
