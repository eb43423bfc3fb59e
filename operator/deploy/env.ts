import type { EnvVar } from 'cdk8s-plus-29/lib/imports/k8s.js'
import { Quantity } from 'cdk8s-plus-29/lib/imports/k8s.js'
import type { GatewayKey } from './keys.ts'
import type { MergedParameters } from './merge.ts'
import type { DeploySettings } from './types.ts'

export const XDS_CA_DIRECTORY = '/etc/xds-tls'
const DEFAULT_CA_ADDRESS = 'https://istiod.istio-system.svc:15012'
const DEFAULT_TRUST_DOMAIN = 'cluster.local'

const literal = (name: string, value: string): EnvVar => ({ name, value })
const ofPod = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } })

/** Variables that the operator sets, in order (operator.md §2.4), without those that the parameters set. */
export function listDefaultEnv(parameters: MergedParameters, settings: DeploySettings, gatewayName: string, keys: readonly GatewayKey[]): EnvVar[] {
  const { shutdown, logging, mesh } = parameters
  const { host, port, isTls } = settings.xds
  const defaults: EnvVar[] = [
    literal('TERMINATION_GRACE_PERIOD_SECONDS', `${shutdown.max}`),
    literal('CONNECTION_MIN_TERMINATION_DEADLINE', `${shutdown.min}s`),
    ofPod('NODE_NAME', 'spec.nodeName'),
    ofPod('POD_NAMESPACE', 'metadata.namespace'),
    ofPod('POD_NAME', 'metadata.name'),
    literal('PROXY_LOG', logging.level ?? 'info'),
    ...keys.map(({ variable, secret, entry }) => ({ name: variable, valueFrom: { secretKeyRef: { name: secret, key: entry } } })),
    literal('XDS_ADDRESS', `${isTls ? 'https' : 'http'}://${host}:${port}`),
    ...(isTls ? [literal('XDS_ROOT_CA', `${XDS_CA_DIRECTORY}/ca.crt`)] : []),
    ofPod('NAMESPACE', 'metadata.namespace'),
    literal('GATEWAY', gatewayName),
    { name: 'CPU_LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: Quantity.fromString('1') } } },
    ofPod('INSTANCE_IP', 'status.podIP'),
    ofPod('SERVICE_ACCOUNT', 'spec.serviceAccountName'),
    ...(mesh
      ? [
          literal('CA_ADDRESS', mesh.caAddress ?? DEFAULT_CA_ADDRESS),
          literal('TRUST_DOMAIN', mesh.trustDomain ?? settings.meshTrustDomain ?? DEFAULT_TRUST_DOMAIN),
        ]
      : []),
  ]
  const overridden = new Set(parameters.env.map(({ name }) => name))
  return defaults.filter(({ name }) => !overridden.has(name))
}
