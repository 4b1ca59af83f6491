"""Renders the Helm chart of the verifier service with Helm's own library, and checks it.

Arguments: folder of the chart, file of the plain manifests, `write` or `check`."""

import os
import sys
import tempfile

import helm_python as helm
from kubernetes_validate import utils as kubernetes
import yaml

CHART, MANIFESTS, DO = sys.argv[1:4]
OLDEST = (1, 30)  # preStop.sleep
# Other values than the defaults: every branch of the templates.
OTHERS = {
    "replicas": 1,
    "image": {"repository": "registry.example.org/shef/shef-verifierd", "tag": "9.9.9"},
    "imagePullSecrets": ["registry"],
    "service": {"type": "LoadBalancer", "port": 9443},
    "shutdownSeconds": 60,
    "networkPolicy": {"enabled": False},
    "resources": {},
}
# Values that the chart refuses, each with a word of the error.
BAD = [
    ({"replica": 2}, "replica"),
    ({"replicas": "two"}, "replicas"),
    ({"replicas": 0}, "replicas"),
    ({"image": {"tag": 1}}, "tag"),
    ({"secret": ""}, "secret"),
    ({"service": {"port": 443}}, "port"),
    ({"networkPolicy": {"fromNamespaces": []}}, "fromNamespaces"),
]


def fail(text):
    sys.exit(f"{CHART}: {text}")


def render(chart, values):
    """The manifests as text, and as objects by kind."""
    files = chart.render(values, name="shef-verifierd", namespace="shef")
    texts = [files[name].strip("\n") for name in sorted(files) if files[name].strip()]
    objects = {}
    for text in texts:
        for one in yaml.safe_load_all(text):
            for version in kubernetes.all_versions():
                if tuple(map(int, version.split(".")[:2])) >= OLDEST:
                    kubernetes.validate(one, version, strict=True)
            objects[one["kind"]] = one
    return "---\n" + "\n---\n".join(texts) + "\n", objects


def check_pods(objects, shutdown, port):
    """Properties that the schemas do not express."""
    deployment, service = objects["Deployment"]["spec"], objects["Service"]["spec"]
    labels, pod = deployment["template"]["metadata"]["labels"], deployment["template"]["spec"]
    selectors = [deployment["selector"]["matchLabels"], service["selector"]]
    for kind, key in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        if kind in objects:
            selectors.append(objects[kind]["spec"][key]["matchLabels"])
    selectors += [one["labelSelector"]["matchLabels"] for one in pod["topologySpreadConstraints"]]
    for selector in selectors:
        assert selector and selector.items() <= labels.items(), (selector, labels)
    user = pod["securityContext"]
    assert user["runAsNonRoot"] and user["runAsUser"] and user["fsGroup"], user
    assert user["seccompProfile"] == {"type": "RuntimeDefault"}, user
    for container in pod["initContainers"] + pod["containers"]:
        rights = container["securityContext"]
        assert rights["capabilities"] == {"drop": ["ALL"]}, container
        assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"], container
    (main,) = pod["containers"]
    for probe, path in (("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")):
        get = main[probe + "Probe"]["httpGet"]
        assert get == {"path": path, "port": "https", "scheme": "HTTPS"}, get
    assert [(p["name"], p["containerPort"]) for p in main["ports"]] == [("https", port)]
    assert service["ports"][0]["port"] == port and service["ports"][0]["targetPort"] == "https"
    ends = main["lifecycle"]["preStop"]["sleep"]["seconds"] + shutdown
    assert pod["terminationGracePeriodSeconds"] > ends, ends
    mounted = {mount["name"] for one in pod["initContainers"] for mount in one["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]} == {"secret", "config"}


def main():
    report = helm.lint(CHART, strict=True)
    bad = [m for m in report["messages"] if m["severity"] > 1]
    if bad or report["errors"] or report["total_charts_linted"] != 1:
        fail(f"helm lint: {bad} {report['errors']}")
    with helm.Chart.load(CHART) as chart:
        text, objects = render(chart, {})
        kinds = ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"]
        assert sorted(objects) == kinds, sorted(objects)
        check_pods(objects, 10, 8443)
        egress = objects["NetworkPolicy"]["spec"]["egress"]
        assert [[p["port"] for p in rule["ports"]] for rule in egress] == [[5432], [53, 53]]
        assert all(rule["to"] for rule in egress) and objects["NetworkPolicy"]["spec"]["ingress"][0]["from"]
        _, others = render(chart, OTHERS)
        assert sorted(others) == ["Deployment", "Service"], sorted(others)
        check_pods(others, 60, 9443)
        images = [c["image"] for c in others["Deployment"]["spec"]["template"]["spec"]["containers"]]
        assert images == ["registry.example.org/shef/shef-verifierd:9.9.9"], images
        for values, word in BAD:
            try:
                render(chart, values)
            except helm.HelmError as error:
                assert word in str(error), (values, str(error))
            else:
                fail(f"accepts {values}")
    header = "# Output of the chart shef-verifierd: `cargo xtask deployment --write`\n"
    text = header + text
    if DO == "write":
        with open(MANIFESTS, "w") as file:
            file.write(text)
    elif open(MANIFESTS).read() != text:
        sys.exit(f"{MANIFESTS} is not what the chart renders; run `cargo xtask deployment --write`")


main()
