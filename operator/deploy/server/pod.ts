import { Quantity, type Container, type EnvVar, type PodTemplateSpec } from 'cdk8s-plus-29/lib/imports/k8s.js'
import { BRIDGE_CONFIG, BRIDGE_DIRECTORY, bridgeFiles, bridgeNode, BRIDGE_PORT } from '#api/bridge.ts'
import { metricsPort, probes, restricted, scrapeAnnotations, unprivileged } from '../container.ts'
import type { DeployServer } from './types.ts'

/** Names of the containers, which overlays refer to. */
const SERVER = 'server'
const BRIDGE = 'bridge'
const GRACE_SECONDS = 30

const requests = { cpu: Quantity.fromString('100m'), memory: Quantity.fromString('128Mi') }
/** A kubelet replaces `$(NAME)` in values of variables. */
const literal = (name: string, value: string): EnvVar => ({ name, value: value.replaceAll('$', () => '$$') })

/** Image of the data plane, which has the bridge. */
export interface BridgeImage {
  readonly image: string
  readonly pullPolicy: string | undefined
}

/** The pod of a server: an init container copies the bridge, which runs in the container of the server and starts its program for each session. */
export function describeServerPod(
  { name, image, command, env }: DeployServer,
  selector: Readonly<Record<string, string>>,
  bridge: BridgeImage,
): PodTemplateSpec {
  const mount = { name: BRIDGE, mountPath: BRIDGE_DIRECTORY }
  const init: Container = {
    name: BRIDGE,
    image: bridge.image,
    ...(bridge.pullPolicy ? { imagePullPolicy: bridge.pullPolicy } : {}),
    args: ['--install-bridge', BRIDGE_DIRECTORY],
    env: [literal(BRIDGE_CONFIG, bridgeConfig(command))],
    securityContext: restricted,
    resources: { requests },
    volumeMounts: [mount],
  }
  const pathOf = (file: string): string => `${BRIDGE_DIRECTORY}/${file}`
  const server: Container = {
    name: SERVER,
    image,
    command: [...bridgeNode(BRIDGE_DIRECTORY), '--max-semi-space-size=16', pathOf(bridgeFiles.program), '--bridge', '-f', pathOf(bridgeFiles.config)],
    env: Object.entries(env)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([variable, value]) => literal(variable, value)),
    // The user is that of the image.
    securityContext: unprivileged,
    ports: [{ name: 'mcp', containerPort: BRIDGE_PORT, protocol: 'TCP' }, metricsPort],
    ...probes,
    resources: { requests },
    volumeMounts: [{ ...mount, readOnly: true }],
  }
  return {
    metadata: { labels: { ...selector }, annotations: { ...scrapeAnnotations } },
    spec: {
      serviceAccountName: name,
      automountServiceAccountToken: false,
      // The environment of the server has no addresses of other Services.
      enableServiceLinks: false,
      // The first process of the pod reaps what processes of the server leave behind; Node does not.
      shareProcessNamespace: true,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      initContainers: [init],
      containers: [server],
      volumes: [{ name: BRIDGE, emptyDir: {} }],
    },
  }
}

/** The config file of the bridge, which data planes in other pods call. Placeholders in it would be replaced: text of the user has none. */
function bridgeConfig(command: readonly string[]): string {
  return JSON.stringify({
    config: { workers: 1, connectionMinTerminationDeadline: '10s', connectionTerminationDeadline: `${GRACE_SECONDS - 5}s` },
    mcp: { port: BRIDGE_PORT, addresses: [], server: { command: command.map((part) => part.replaceAll('${', () => '$${')), inheritEnv: true } },
  })
}
