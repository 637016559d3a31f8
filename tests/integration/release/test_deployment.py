"""The files for containers, Kubernetes and systemd are valid, and safe without further settings."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from octavo import __version__
from octavo.ai.ledger import Budgets
from octavo.core.settings import Settings, variable_name
from octavo.database import connect
from octavo.ops.metrics import metric_names, read_metrics
from tests.support.postgres import Server
from tests.support.tree import ROOT
from tools.try_image import read_instructions

DEPLOY = ROOT / "deploy"
HELM = Path(sys.executable).with_name("helm")
KUBERNETES = "1.31"
METRIC = re.compile(r"octavo_\w+")
SETTINGS = {variable_name(name) for name in Settings.model_fields}
OPTIONS = {
    "publicUrl": "https://docs.example.org",
    "existingSecret": "octavo",
    "keda.enabled": "true",
    "ingress.enabled": "true",
    "ingress.host": "docs.example.org",
}
needs_helm = pytest.mark.skipif(not HELM.exists(), reason="helm exists as a wheel for Linux on x86-64 only")


def instructions() -> list[tuple[str, str]]:
    return read_instructions((DEPLOY / "Dockerfile").read_text())


def read_yaml(name: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / name).read_text())


def render(**options: str) -> list[dict[str, Any]]:
    chosen = [f"--set={name}={value}" for name, value in options.items()]
    command = [HELM, "template", "test", DEPLOY / "helm/octavo", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def test_the_image_runs_without_privileges_and_without_installers() -> None:
    last = instructions()[max(place for place, (name, _) in enumerate(instructions()) if name == "FROM") :]
    named = dict(last)
    assert named["USER"] == "10001:10001"
    assert named["VOLUME"] == "/data"
    assert "/healthz" in named["HEALTHCHECK"]
    assert "uninstall" in named["RUN"]
    assert "apt-get" not in named["RUN"]
    assert not set(re.findall(r"OCTAVO_\w+", named["ENV"])) - SETTINGS


def test_the_image_is_built_from_files_that_are_sent_to_the_builder() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from="):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert any(source == one or source.startswith(f"{one}/") for one in sent)


@pytest.mark.parametrize("name", ["compose.yaml", "compose.cluster.yaml"])
def test_containers_are_confined_and_published_on_this_machine_only(name: str) -> None:
    services = read_yaml(name)["services"]
    ours = {key: one for key, one in services.items() if one["image"].startswith("octavo:")}
    assert ours
    for service in ours.values():
        assert service["image"] == f"octavo:{__version__}"
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not set(service["environment"]) - SETTINGS
        assert "OCTAVO_ANONYMOUS" not in service["environment"]
    for service in services.values():
        assert all(port.startswith("${OCTAVO_PUBLISH:-127.0.0.1}:") for port in service.get("ports", ()))


def test_the_cluster_refuses_to_start_without_its_secrets() -> None:
    text = (DEPLOY / "compose.cluster.yaml").read_text()
    example = (DEPLOY / "cluster.env.example").read_text()
    secrets = {"POSTGRES_PASSWORD", "S3_ACCESS_KEY", "S3_SECRET_KEY", "OCTAVO_SECRET_KEY", "OCTAVO_PUBLIC_URL"}
    for name in secrets:
        assert re.findall(rf"\$\{{{name}(.)", text)
        assert set(re.findall(rf"\$\{{{name}(..)", text)) == {":?"}
        assert re.search(rf"^{name}=", example, re.MULTILINE)


@needs_helm
@pytest.mark.parametrize("more", [{}, {"keda.enabled": "false", "ingress.enabled": "false"}])
def test_the_chart_renders_to_valid_objects(more: dict[str, str]) -> None:
    objects = render(**OPTIONS | more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the schemas of Kubernetes are loaded with deprecated calls
        for one in objects:
            if one["kind"] != "ScaledObject":  # its schema belongs to KEDA
                kubernetes_validate.validate(one, KUBERNETES, strict=True)
    kinds = {one["kind"] for one in objects}
    assert {"Deployment", "Service", "Job"} <= kinds
    assert ({"ScaledObject", "Ingress"} <= kinds) is not bool(more)


@needs_helm
def test_pods_run_without_privileges_on_a_root_that_is_read_only() -> None:
    pods = [one["spec"]["template"]["spec"] for one in render(**OPTIONS) if one["kind"] in {"Deployment", "Job"}]
    assert len(pods) == 3
    for pod in pods:
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["image"] == f"octavo:{__version__}"
        assert {one["name"] for one in container["env"]} <= SETTINGS


@needs_helm
def test_the_chart_names_what_is_missing() -> None:
    command = [HELM, "template", "test", DEPLOY / "helm/octavo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Set publicUrl" in done.stderr


@needs_helm
async def test_workers_are_scaled_by_a_query_that_the_database_answers(newest_server: Server) -> None:
    (scaling,) = (one for one in render(**OPTIONS) if one["kind"] == "ScaledObject")
    (trigger,) = scaling["spec"]["triggers"]
    assert trigger["metadata"]["connectionFromEnv"] in SETTINGS
    assert int(trigger["metadata"]["targetQueryValue"]) == Settings().worker_slots
    with newest_server.database() as info:
        async with await connect(info) as connection:
            row = await (await connection.execute(trigger["metadata"]["query"].encode())).fetchone()
    assert row == (0,)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_service_is_accepted_by_systemd(tmp_path: Path) -> None:
    unit, port = tmp_path / "octavo.service", tmp_path / "octavo.socket"
    text = (DEPLOY / "octavo.service").read_text()
    unit.write_text(text.replace("/opt/octavo/bin/octavo", "/bin/true").replace("User=octavo", "User=daemon"))
    port.write_text((DEPLOY / "octavo.socket").read_text())
    done = subprocess.run(["systemd-analyze", "verify", unit, port], capture_output=True, text=True, check=False)
    assert "octavo." not in done.stderr, done.stderr
    assert not set(re.findall(r"^Environment=(\w+)", text, re.MULTILINE)) - SETTINGS


async def test_the_dashboard_shows_only_metrics_that_exist(newest_server: Server) -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    shown = {name for panel in dashboard["panels"] for one in panel["targets"] for name in METRIC.findall(one["expr"])}
    with newest_server.database() as info:
        async with await connect(info) as connection:
            known = metric_names(await read_metrics(connection, Budgets.of(Settings())))
    assert shown <= known
    # Every metric is on the dashboard, except values that other metrics include.
    assert {name for name in known - shown if not name.endswith(("_bucket", "_count", "_sum"))} == {
        "octavo_analysis_item_seconds",
        "octavo_build_info",
    }
