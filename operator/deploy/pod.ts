import type { Container, PodTemplateSpec } from 'cdk8s-plus-29/lib/imports/k8s.js'
import { metricsPort, probes, restricted } from './container.ts'
import { listDefaultEnv } from './env.ts'
import type { GatewayKey } from './keys.ts'
import type { MergedParameters } from './merge.ts'
import type { DeployMetadata } from './metadata.ts'
import type { DeploySettings } from './types.ts'
import { listVolumes } from './volumes.ts'

/** Name of the data plane's container, which overlays refer to. */
const CONTAINER_NAME = 'proxy'

/** Names and hashes that the pod refers to. */
export interface PodReferences {
  readonly image: string
  readonly keys: readonly GatewayKey[]
  /** Absent: the config stream has no TLS. */
  readonly xdsCa?: string
  /** Annotations that change with what the pod reads at its start only. */
  readonly checksums: Readonly<Record<string, string>>
}

/** The pod of the data plane, but for `resources` and `env` of the parameters (operator.md §2.4). */
export function describePod(metadata: DeployMetadata, parameters: MergedParameters, settings: DeploySettings, references: PodReferences): PodTemplateSpec {
  const { volumes, volumeMounts } = listVolumes(metadata.name, references.xdsCa, parameters.mesh !== undefined)
  const meshLabels = parameters.mesh ? { 'istio.io/dataplane-mode': 'none', 'sidecar.istio.io/inject': 'false' } : {}
  const { pullPolicy } = parameters.image
  const container: Container = {
    name: CONTAINER_NAME,
    image: references.image,
    ...(pullPolicy ? { imagePullPolicy: pullPolicy } : {}),
    args: ['-f', '/config/config.yaml'],
    securityContext: restricted,
    ports: [metricsPort],
    ...probes,
    env: listDefaultEnv(parameters, settings, metadata.name, references.keys),
    volumeMounts,
  }
  return {
    metadata: { labels: { ...metadata.podLabels, ...meshLabels }, annotations: { ...metadata.podAnnotations, ...references.checksums } },
    spec: {
      serviceAccountName: metadata.name,
      terminationGracePeriodSeconds: parameters.shutdown.max,
      // Listeners bind their own ports, low ones too, without a capability.
      securityContext: { seccompProfile: { type: 'RuntimeDefault' }, sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }] },
      containers: [container],
      volumes,
    },
  }
}
