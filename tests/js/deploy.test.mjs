// The files for deployment: compose.yaml, and what is below deploy/. Docker, Kubernetes and systemd are not needed: the
// files are read, and checked by the tools that are installed. tests/server/replicas starts nginx and Caddy.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { parse, parseAllDocuments } from "yaml";

import { binary } from "./server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");
const readYaml = (path) => parse(read(path), { merge: true });
const run = promisify(execFile);

/** The seconds that a server may need to stop after [server] drain_secs: last events, and connections. */
const AFTER_DRAIN_SECS = 20;
const drainSecs = (path) => Number(/^drain_secs = (\d+)$/m.exec(read(path))[1]);

/** Skips a test whose tool is not installed; with CI=true that is a failure. */
async function needs(t, command) {
  try {
    await run("sh", ["-c", `command -v ${command}`]);
    return true;
  } catch {
    assert.notEqual(process.env.CI, "true", `${command} is not installed: see tests/run.sh`);
    t.skip(`${command} is not installed`);
    return false;
  }
}

// --- compose.yaml ---------------------------------------------------------------------------------

const compose = readYaml("compose.yaml");
const servicesOf = (profile) => Object.keys(compose.services).filter((it) => compose.services[it].profiles.includes(profile));

test("each profile has its services, and no service is in two", () => {
  assert.deepEqual(servicesOf("alone"), ["agui-server"]);
  assert.deepEqual(servicesOf("replicas"), ["replica-1", "replica-2", "nginx", "postgres"]);
  assert.deepEqual(servicesOf("metrics"), ["measured-server", "prometheus"]);
  for (const service of Object.values(compose.services)) assert.equal(service.profiles.length, 1);
});

test("what a service of compose.yaml waits for and mounts exists in its profile", () => {
  for (const [name, service] of Object.entries(compose.services)) {
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      assert.deepEqual(compose.services[other].profiles, service.profiles, `${name} needs ${other}`);
      if (condition === "service_healthy") assert.ok(compose.services[other].healthcheck, `${other} has no health check`);
    }
    for (const volume of service.volumes ?? []) {
      const [source] = volume.split(":");
      if (source.startsWith("./")) read(source);
      else assert.ok(source in compose.volumes, `${name}: ${source} is not declared`);
    }
  }
});

test("the servers of compose.yaml have no privileges, and stop before they are killed", () => {
  for (const name of ["agui-server", "measured-server", "replica-1", "replica-2"]) {
    const service = compose.services[name];
    assert.equal(service.read_only, true);
    assert.deepEqual(service.cap_drop, ["ALL"]);
    assert.ok(parseInt(service.stop_grace_period) > drainSecs("config/docker.toml") + AFTER_DRAIN_SECS);
  }
});

test("the replicas of compose.yaml share the database of its Postgres", () => {
  const { POSTGRES_USER: user, POSTGRES_PASSWORD: password } = compose.services.postgres.environment;
  for (const name of ["replica-1", "replica-2"]) {
    const { AGUI_STORE__URL: url, ...environment } = compose.services[name].environment;
    assert.equal(url, `postgres://${user}:${password}@postgres/${user}?sslmode=disable`);
    assert.deepEqual(environment, compose.services["agui-server"].environment);
  }
});

test("the servers in compose.yaml get the keys of providers from the shell", () => {
  for (const { build, environment } of Object.values(compose.services)) {
    if (!build) continue;
    for (const key of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"]) assert.equal(environment[key], null);
  }
});

test("nginx in compose.yaml forwards to the replicas by their names and port", () => {
  const upstreams = [...read("deploy/nginx.conf").matchAll(/^ {4}server (\S+) max_fails=0;$/gm)].map(([, address]) => address);
  const replicas = servicesOf("replicas").filter((name) => name.startsWith("replica-"));
  const expected = replicas.map((name) => `${name}:8080`);
  assert.deepEqual(upstreams, expected);
  assert.match(read("config/docker.toml"), /^listen = "0\.0\.0\.0:8080"$/m);
  assert.deepEqual(Object.keys(compose.services.nginx.depends_on), replicas);
});

/** The port of an address such as `127.0.0.1:9090`. */
const portOf = (address) => address.split(":").at(-1);

test("Prometheus in compose.yaml reads the metrics on loopback, and its pages are for this machine only", () => {
  const { "measured-server": server, prometheus, "agui-server": alone } = compose.services;
  const { AGUI_METRICS__LISTEN: listen, ...environment } = server.environment;
  assert.deepEqual([environment, server.volumes], [alone.environment, alone.volumes]);
  assert.equal(prometheus.network_mode, "service:measured-server");
  const [job] = readYaml("deploy/prometheus.yml").scrape_configs;
  assert.deepEqual(job.static_configs[0].targets, [listen]);
  assert.match(listen, /^127\.0\.0\.1:/);
  const address = prometheus.command.find((it) => it.startsWith("--web.listen-address="));
  assert.notEqual(portOf(address), portOf(listen));
  assert.deepEqual(server.ports, [...alone.ports, `127.0.0.1:${portOf(address)}:${portOf(address)}`]);
});

test("promtool accepts what Prometheus in compose.yaml reads, and finds the rules", async (t) => {
  if (!(await needs(t, "promtool"))) return;
  const { command, volumes } = compose.services.prometheus;
  const folder = mkdtempSync(join(tmpdir(), "agui-prometheus-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [source, target] of volumes.map((it) => it.split(":")).filter(([source]) => source.startsWith("./"))) {
    cpSync(join(root, source), join(folder, target));
  }
  const config = command.find((it) => it.startsWith("--config.file=")).split("=")[1];
  const { stdout } = await run("promtool", ["check", "config", join(folder, config)]);
  const rules = readYaml("deploy/alerts.yml").groups.flatMap((group) => group.rules);
  assert.match(stdout, new RegExp(`SUCCESS: ${rules.length} rules found`));
});

// --- Proxies --------------------------------------------------------------------------------------

test("the proxies have the limits and times of the server", () => {
  const option = (name) => Number(new RegExp(`^${name} = (\\d+)$`, "m").exec(read("config/default.toml"))[1]);
  // A file can be in a form.
  const mebibytes = option("max_file_bytes") / 2 ** 20 + 1;
  assert.ok(mebibytes > option("max_body_bytes") / 2 ** 20);
  const ingress = readYaml("deploy/kubernetes/ingress/ingress.yaml").metadata.annotations;
  const ofIngress = (name) => ingress[`nginx.ingress.kubernetes.io/${name}`];
  const nginx = (name) => new RegExp(`^ *${name} (.*);$`, "m").exec(read("deploy/nginx.conf"))[1];
  assert.equal(nginx("client_max_body_size"), `${mebibytes}m`);
  assert.match(nginx("return 413"), new RegExp(`larger than ${mebibytes} MiB`));
  assert.equal(ofIngress("proxy-body-size"), `${mebibytes}m`);
  assert.equal(nginx("client_body_timeout"), `${option("body_timeout_secs")}s`);
  const silence = Math.max(option("keep_alive_secs"), option("queue_timeout_secs"));
  assert.ok(parseInt(nginx("proxy_read_timeout")) >= 2 * silence);
  assert.ok(Number(ofIngress("proxy-read-timeout")) >= 2 * silence);
  assert.equal(ofIngress("proxy-buffering"), "off");
  // Otherwise the server may close a connection while the proxy sends a request on it.
  const [, ofCaddy] = /^\s*keepalive (\d+)s$/m.exec(read("deploy/Caddyfile"));
  for (const idle of [nginx("keepalive_timeout"), ofCaddy]) assert.ok(parseInt(idle) < option("head_timeout_secs"));
});

test("Caddy accepts the Caddyfile", async (t) => {
  if (!(await needs(t, "caddy"))) return;
  await run("caddy", ["validate", "--adapter", "caddyfile", "--config", join(root, "deploy/Caddyfile")]);
});

// --- Kubernetes -----------------------------------------------------------------------------------

const kubernetes = "deploy/kubernetes";
/** The folder of one kustomization: its own file, and those that it names. */
function kustomizationIn(folder) {
  const path = `${kubernetes}/${folder}`;
  const own = readYaml(`${path}/kustomization.yaml`);
  const resources = own.resources.filter((it) => !it.startsWith("../"));
  const patches = (own.patches ?? []).flatMap((it) => it.path ?? []);
  const manifests = Object.fromEntries([...resources, ...patches].map((file) => [file, readYaml(`${path}/${file}`)]));
  return { path, own, manifests };
}
const [base, postgres, ingress] = ["base", "postgres", "ingress"].map(kustomizationIn);
const deployment = base.manifests["deployment.yaml"];
const pod = deployment.spec.template.spec;
const [container] = pod.containers;
const replicas = postgres.manifests["deployment.yaml"];

test("each kustomization has every file of its folder, and stands on the one before", () => {
  for (const { path, manifests } of [base, postgres, ingress]) {
    const files = readdirSync(join(root, path)).filter((file) => file.endsWith(".yaml"));
    assert.deepEqual(new Set(files), new Set(["kustomization.yaml", ...Object.keys(manifests)]));
  }
  assert.deepEqual(base.own.configMapGenerator[0].files, ["config.toml"]);
  assert.ok(postgres.own.resources.includes("../base"));
  assert.ok(ingress.own.resources.includes("../postgres"));
});

test("the manifests refer to each other by the right names", () => {
  const service = base.manifests["service.yaml"];
  const ports = container.ports.map((port) => port.name);
  assert.ok(ports.includes(service.spec.ports[0].targetPort));
  for (const probe of ["livenessProbe", "readinessProbe", "startupProbe"]) assert.ok(ports.includes(container[probe].httpGet.port));
  const { rules: [rule], tls } = ingress.manifests["ingress.yaml"].spec;
  const backend = rule.http.paths[0].backend.service;
  assert.deepEqual([backend.name, backend.port.name], [service.metadata.name, service.spec.ports[0].name]);
  assert.deepEqual(tls[0].hosts, [rule.host]);
  assert.equal(base.own.images[0].name, container.image);
  const [config, data] = pod.volumes;
  assert.equal(config.configMap.name, base.own.configMapGenerator[0].name);
  assert.equal(data.persistentVolumeClaim.claimName, base.manifests["volume.yaml"].metadata.name);
  assert.deepEqual(container.volumeMounts.map((mount) => mount.name), pod.volumes.map((volume) => volume.name));
  const [labels] = base.own.labels;
  assert.equal(labels.includeSelectors, true);
  const spread = replicas.spec.template.spec.topologySpreadConstraints[0];
  assert.deepEqual(spread.labelSelector.matchLabels, labels.pairs);
});

test("one server has its file alone; replicas have none, and one of them stays", () => {
  assert.deepEqual([deployment.spec.replicas, deployment.spec.strategy.type], [1, "Recreate"]);
  assert.ok(postgres.manifests["disruption-budget.yaml"].spec.minAvailable < replicas.spec.replicas);
  assert.equal(replicas.spec.strategy.rollingUpdate.maxUnavailable, 0);
  const [data] = replicas.spec.template.spec.volumes;
  assert.deepEqual([data.name, data.persistentVolumeClaim], ["data", null]);
});

test("the probes of a pod ask the routes of the server", () => {
  assert.equal(container.livenessProbe.httpGet.path, "/healthz");
  assert.equal(container.readinessProbe.httpGet.path, "/readyz");
  // The server answers within a second, also when its store does not.
  assert.ok(container.readinessProbe.timeoutSeconds > 1);
});

test("a pod gets the time that the server needs to stop", () => {
  const { command } = container.lifecycle.preStop.exec;
  assert.equal(command[0], "sleep");
  const needed = Number(command[1]) + drainSecs(`${base.path}/config.toml`) + AFTER_DRAIN_SECS;
  assert.ok(pod.terminationGracePeriodSeconds > needed, `${needed} s are needed`);
});

test("a pod runs as the user of the image, without privileges, and writes to its volume alone", () => {
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(read("Dockerfile"));
  const { runAsNonRoot, runAsUser, runAsGroup, fsGroup, seccompProfile } = pod.securityContext;
  assert.deepEqual([runAsNonRoot, runAsUser, runAsGroup, fsGroup], [true, Number(user), Number(group), Number(group)]);
  assert.equal(seccompProfile.type, "RuntimeDefault");
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  const [, volume] = /^VOLUME (.*)$/m.exec(read("Dockerfile"));
  assert.ok(container.volumeMounts.some((mount) => mount.mountPath === volume && !mount.readOnly));
  assert.match(read(`${base.path}/config.toml`), new RegExp(`^data_dir = "${volume}"$`, "m"));
});

test("no manifest contains a secret", () => {
  const more = replicas.spec.template.spec.containers[0].env;
  for (const [{ path }, env] of [[base, container.env], [postgres, [...container.env, ...more]]]) {
    const named = env.map((variable) => variable.valueFrom.secretKeyRef.key);
    const created = [...read(`${path}/kustomization.yaml`).matchAll(/--from-literal=([a-z-]+)=/g)].map(([, key]) => key);
    assert.deepEqual(named, created);
  }
});

test("the server accepts the configuration of the pods", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agui-deploy-"));
  try {
    // As in the image, with the ConfigMap in place of its configuration.
    cpSync(join(root, "config/scripts"), join(folder, "scripts"), { recursive: true });
    writeFileSync(join(folder, "config.toml"), read(`${base.path}/config.toml`));
    const env = { ...process.env, AGUI_API_KEY: "key", AGUI_STORE__URL: "postgres://u:p@host/database" };
    await run(binary(), ["check", "--config", join(folder, "config.toml")], { env });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("kubectl renders each kustomization, and it fits the schemas of the oldest and the newest Kubernetes", async (t) => {
  // Not in Debian, so its absence is no failure.
  const found = await run("sh", ["-c", "command -v kubectl"]).then(() => true, () => false);
  if (!found) return t.skip("kubectl is not installed");
  const validator = join(root, "tests/.venv-packages/bin/kubernetes-validate");
  const isValidated = existsSync(validator);
  // tests/run.sh --all makes it.
  assert.ok(isValidated || process.env.CI !== "true", "tests/.venv-packages is missing: see tests/run.sh");
  const folder = mkdtempSync(join(tmpdir(), "agui-kubernetes-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [{ path }, expected, count] of [
    [base, ["ConfigMap", "Service", "PersistentVolumeClaim", "Deployment"], 1],
    [postgres, ["ConfigMap", "Service", "Deployment", "PodDisruptionBudget"], 2],
    [ingress, ["ConfigMap", "Service", "Deployment", "PodDisruptionBudget", "Ingress"], 2],
  ]) {
    const { stdout } = await run("kubectl", ["kustomize", join(root, path)]);
    const documents = parseAllDocuments(stdout).map((it) => it.toJS());
    const find = (kind) => documents.find((it) => it.kind === kind);
    assert.deepEqual(documents.map(({ kind }) => kind), expected, path);
    const { replicas: rendered, selector, template } = find("Deployment").spec;
    assert.equal(rendered, count);
    const { volumes, containers } = template.spec;
    assert.match(containers[0].image, /^registry\.example\.com\/agui-server:/);
    // The ConfigMap's name changes with its content.
    assert.ok(volumes.some(({ configMap }) => configMap?.name === find("ConfigMap").metadata.name));
    const budget = find("PodDisruptionBudget")?.spec;
    if (budget) assert.deepEqual(budget.selector, selector);
    const file = join(folder, "rendered.yaml");
    writeFileSync(file, stdout);
    for (const version of isValidated ? ["1.25", "1.37"] : []) await run(validator, ["--strict", "-k", version, file]);
  }
  if (!isValidated) t.diagnostic("not checked against the schemas: tests/.venv-packages is missing");
});

// --- systemd --------------------------------------------------------------------------------------

const unit = read("deploy/agui-server.service");

test("the unit gives the server the time that it needs to stop, and the files that it needs", () => {
  const value = (key) => Number(new RegExp(`^${key}=(\\d+)$`, "m").exec(unit)[1]);
  assert.ok(value("TimeoutStopSec") > drainSecs("config/default.toml") + AFTER_DRAIN_SECS);
  const [, connections] = /^max_connections = (\d+)$/m.exec(read("config/default.toml"));
  assert.ok((value("LimitNOFILE") * 7) / 8 >= Number(connections));
});

test("systemd accepts the unit, and rates its exposure as low", async (t) => {
  if (!(await needs(t, "systemd-analyze"))) return;
  const folder = mkdtempSync(join(tmpdir(), "agui-unit-"));
  try {
    const file = join(folder, "agui-server.service");
    // The program has to exist.
    writeFileSync(file, unit.replaceAll("/usr/local/bin/agui-server", binary()));
    const { stderr } = await run("systemd-analyze", ["verify", file]);
    assert.equal(stderr, "");
    // The threshold is in tenths; systemd calls less than 2.0 "OK".
    await run("systemd-analyze", ["security", "--offline=true", "--threshold=20", file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
