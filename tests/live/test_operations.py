"""What operators are given: metrics, alerts, a dashboard, a systemd unit, manifests. All of it is checked."""

from __future__ import annotations

import asyncio
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import rumormill as rm
from live.making import GAME, nodes_of
from rumormill.live.core.exchange import SharedGame
from rumormill.live.io.runtime import Runtime, Settings
from rumormill.live.io.status import alarms, lag, metrics
from rumormill.mesh import edit
from rumormill.mesh.file import GamePart

EXAMPLES = Path(__file__).parents[2] / "examples"
ODD = 'a "quoted" \\ arm\nof two lines'


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The metrics of a node that has decided, been told and refused something."""
    folder = tmp_path_factory.mktemp("mesh")
    policy = {"type": "decentralized", "gamma": 1, "clique_filter": False}
    moments = {"eps": 0.5, "u": 1.0, "rho": 1.0}
    path = edit.init(folder, "test", GamePart(name="g", arms=["a", ODD], policy=policy, moments=moments))
    edit.add(path, "n0", "127.0.0.1:7400", [])
    edit.add(path, "n1", "127.0.0.1:7401", ["n0"])

    async def live() -> str:
        runtime = Runtime(Settings(mesh=path, name="n0", data=folder / "n0.data", http="127.0.0.1:0"))
        node = runtime.node
        node.start()
        node.committed(node.records)
        for reward in (1.0, 123456789.125, -0.5):
            token = node.choose("g", runtime.clock(), 60.0)
            node.observe("g", token.t, token.arm, reward)
        node.games["g"].observed = 123_456_789_012
        node.violations["handshake"] += 1
        node.choose("g", runtime.clock(), 60.0)
        try:
            return metrics(runtime)
        finally:
            runtime.journal.close()

    return asyncio.run(live())


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)")
SUFFIXES = {
    "counter": [""],
    "gauge": [""],
    "summary": ["_sum", "_count"],
    "histogram": ["_bucket", "_sum", "_count"],
}


def families(text: str) -> Iterator[tuple[str, str, list[tuple[str, str, float]]]]:
    """(name, type, samples) by the text format of Prometheus, version 0.0.4, read strictly.

    Every family has one HELP and one TYPE line, in this order, and its samples after them, in one piece.
    """
    assert text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    while lines:
        said = re.fullmatch(rf"# HELP ({NAME}) (\S.*)", lines.pop(0))
        assert said is not None
        assert not re.search(r"\\[^\\n]", said[2])
        kind = re.fullmatch(rf"# TYPE {said[1]} (counter|gauge|summary|histogram)", lines.pop(0))
        assert kind is not None
        samples = []
        while lines and not lines[0].startswith("#"):
            sample = SAMPLE.fullmatch(lines.pop(0))
            assert sample is not None
            assert sample[1].removeprefix(said[1]) in SUFFIXES[kind[1]]
            assert sample[3] in ("NaN", "+Inf", "-Inf") or math.isfinite(float(sample[3]))
            samples.append((sample[1], sample[2] or "", float(sample[3])))
        yield said[1], kind[1], samples


def test_metrics_keep_the_text_format(text: str) -> None:
    found = list(families(text))
    names = [name for name, _, _ in found]
    assert len(names) == len(set(names))
    for name, kind, samples in found:
        assert name.endswith("_total") == (kind == "counter"), "as promtool demands of counters"
        series = [sample[:2] for sample in samples]
        assert len(series) == len(set(series))
        assert kind != "counter" or all(value >= 0 for _, _, value in samples)
        buckets = [value for each, _, value in samples if each == f"{name}_bucket"]
        assert kind != "histogram" or buckets == sorted(buckets), "cumulative"
    (count,) = [samples[0] for name, _, samples in found if name == "rumormill_observations_total"]
    assert count[2] == 123_456_789_012, "all digits"
    odd = ODD.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert f'arm="{odd}"' in text


def test_metrics_of_certificates_links_and_the_journal(text: str) -> None:
    found = {name: samples for name, _, samples in families(text)}
    labels = [sample[1] for sample in found["rumormill_certificate_expiry_timestamp_seconds"]]
    assert labels == ['certificate="node"', 'certificate="authority"']
    assert found["rumormill_link_up"] == [("rumormill_link_up", 'node="n1"', 0.0)]
    assert found["rumormill_journal_lag"][0][2] > 0
    assert found["rumormill_mesh_revision"][0][2] == 3


def test_a_stream_that_no_neighbour_retains_does_not_lag() -> None:
    """Else the alert on lag would never end after a node has lost its disk."""
    node, _ = nodes_of(rm.KMPUCB(gamma=1), rm.Network.complete(2))
    game = node.games[GAME]
    assert game.stream((1, 7)) is not None
    node.link_up(1, 1)
    shared = node.links[1].games[GAME] = SharedGame()
    shared.claims[1, 7] = 8
    runtime: Any = SimpleNamespace(node=node)
    assert lag(runtime, game, (1, 7)) == 8
    shared.floors[1, 7] = 5
    assert lag(runtime, game, (1, 7)) == 8
    shared.floors[1, 7] = 8
    assert lag(runtime, game, (1, 7)) == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing(text: str) -> None:
    for words, given in (
        (["metrics"], text),
        (["rules", str(EXAMPLES / "prometheus-alerts.yml")], ""),
    ):
        done = subprocess.run(["promtool", "check", *words], input=given, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_alarms_in_sentences(tmp_path: Path) -> None:
    """Each kind alone: not ready, no link, a certificate, the disk, samples against the moments."""
    policy = {"type": "decentralized", "gamma": 1, "clique_filter": False}
    moments = {"eps": 1.0, "u": 1.0, "rho": 1e-4}
    path = edit.init(tmp_path, "test", GamePart(name="g", arms=["a", "b"], policy=policy, moments=moments))
    edit.add(path, "n0", "127.0.0.1:7400", [])

    async def live() -> None:
        runtime = Runtime(Settings(mesh=path, name="n0", data=tmp_path / "n0.data", http="127.0.0.1:0"))
        node = runtime.node
        try:
            assert alarms(runtime) == ["not ready: decision numbers wait for the disk"]
            node.start()
            node.committed(node.records)
            assert alarms(runtime) == []
            expires: Any = runtime.transport.keys.expires
            expires["node"] = runtime.clock() + 29.04 * 86_400
            text = "the certificate of the node expires in 29.0 days: rumormill mesh rotate"
            assert alarms(runtime) == [text]
            expires["node"] += 2 * 86_400
            runtime.journal._queued += 5_001
            assert alarms(runtime) == ["5,001 records wait for the disk"]
            runtime.journal._queued -= 1
            assert alarms(runtime) == []
            for value in [0.0] * 600 + [1.0] * 6_000:
                node.games["g"].verdicts.add(0, value)
            text = "contradict the moments of the mesh file, or their mean has changed"
            assert alarms(runtime) == [f"g: samples of a {text}"]
        finally:
            runtime.journal.close()

    asyncio.run(live())


# --- alerts and the dashboard -------------------------------------------------------------------------------


def alerts() -> list[dict[str, Any]]:
    read = yaml.safe_load((EXAMPLES / "prometheus-alerts.yml").read_text("utf-8"))
    (group,) = read["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((EXAMPLES / "grafana-dashboard.json").read_text("utf-8"))
    return read


def expressions() -> dict[str, str]:
    found = {f"alert {rule['alert']}": rule["expr"] for rule in alerts()}
    for panel in dashboard()["panels"]:
        found |= {f"panel {panel['title']} {each['refId']}": each["expr"] for each in panel["targets"]}
    for each in dashboard()["templating"]["list"]:
        found[f"variable {each['name']}"] = each["query"]
    return found


@pytest.mark.parametrize("where", expressions())
def test_alerts_and_dashboard_use_what_a_node_exposes(where: str, text: str) -> None:
    """Every metric, and every label that is asked for."""
    exposed: dict[str, set[str]] = {}
    for _, _, samples in families(text):
        for name, labels, _ in samples:
            exposed.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    expression = expressions()[where]
    used = re.findall(r"(rumormill_\w+)(?:\{([^}]*)\})?", expression)
    assert used or "up{job" in expression or where == "variable source"
    for name, wanted in used:
        assert name in exposed
        assert set(re.findall(r"(\w+)[=!]", wanted)) <= exposed[name] | {"instance", "job"}
    assert expression.count("(") == expression.count(")")


def test_every_metric_is_watched_by_an_alert_or_shown(text: str) -> None:
    used = "\n".join(expressions().values())
    assert [name for name, _, _ in families(text) if name not in used] == []


def test_alerts_lead_to_a_runbook() -> None:
    page = (EXAMPLES.parent / "docs" / "operations.md").read_text("utf-8")
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert len({rule["alert"] for rule in alerts()}) == len(alerts()) > 10
    for rule in alerts():
        assert rule["labels"]["severity"] in ("page", "ticket")
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert file == "docs/operations.md"
        assert anchor in anchors
        assert rule["annotations"]["summary"]


def test_the_dashboard_has_its_form() -> None:
    read = dashboard()
    panels = read["panels"]
    assert read["uid"] == "rumormill"
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


# --- systemd ----------------------------------------------------------------------------------------------


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (EXAMPLES / "rumormill-node.service").read_text("utf-8").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_the_unit_restarts_reloads_and_is_shut_in() -> None:
    read = unit()
    assert read["Restart"] == ["always"]
    assert "-HUP" in read["ExecReload"][0]
    assert read["CapabilityBoundingSet"] == [""]
    assert read["SystemCallFilter"][0] == "@system-service"
    assert read["RestrictAddressFamilies"] == ["AF_INET AF_INET6 AF_UNIX"]
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictNamespaces"):
        assert read[key] == ["true"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_exposure_of_the_unit_is_low(tmp_path: Path) -> None:
    """At most 3 of 10 by `systemd-analyze security` (8.5 in 0.2)."""
    path = tmp_path / "rumormill-node@n7.service"
    shutil.copy(EXAMPLES / "rumormill-node.service", path)
    command = ["systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=30", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    (level,) = re.findall(r"Overall exposure level for \S+: (\d+\.\d)", done.stdout)
    assert float(level) <= 3.0


# --- Kubernetes -------------------------------------------------------------------------------------------


def manifests() -> dict[str, dict[str, Any]]:
    read = yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text("utf-8"))
    return {each["kind"]: each for each in read}


def test_the_manifests_fit_together() -> None:
    read = manifests()
    assert {kind: each["apiVersion"] for kind, each in read.items()} == {
        "Service": "v1",
        "PodDisruptionBudget": "policy/v1",
        "StatefulSet": "apps/v1",
    }
    spec = read["StatefulSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == read["Service"]["spec"]["selector"]
    assert read["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert spec["serviceName"] == read["Service"]["metadata"]["name"]
    assert read["Service"]["spec"]["clusterIP"] == "None", "each pod has a name of its own"
    assert read["Service"]["spec"]["publishNotReadyAddresses"] is True
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {each["name"] for each in pod["volumes"]} | {
        each["metadata"]["name"] for each in spec["volumeClaimTemplates"]
    }
    assert {each["name"] for each in container["volumeMounts"]} == volumes
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {each["name"]: each["port"] for each in read["Service"]["spec"]["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_a_pod_sees_its_own_key_alone() -> None:
    spec = manifests()["StatefulSet"]["spec"]
    pod, names = spec["template"]["spec"], [f"rumormill-{n}" for n in range(spec["replicas"])]
    (secret,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "keys"]
    assert mount["subPathExpr"] == "$(POD_NAME)"
    assert secret["defaultMode"] == 0o440
    seen = {
        name: {each["key"] for each in secret["items"] if each["path"] == f"{name}/{each['key']}"}
        for name in names
    }
    assert seen == {name: {"ca.crt", f"{name}.crt", f"{name}.key"} for name in names}
    assert len(secret["items"]) == 3 * len(names)
    words = dict(word.removeprefix("--").split("=") for word in pod["containers"][0]["command"][2:])
    assert words["keys"] == mount["mountPath"]
    assert words["name"] == "$(POD_NAME)"
    assert Settings(
        mesh=Path(words.pop("mesh")), data=Path(words.pop("data")), keys=Path(words.pop("keys")), **words
    )
