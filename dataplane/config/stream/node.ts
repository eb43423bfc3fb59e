import { hash } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { safeName } from '#api/names.ts'
import type { NodeSchema } from '#gen/proto/envoy/config/core/v3/base_pb.js'

/** Identity of this data plane, from the downward API or the command line. */
export interface NodeIdentity {
  readonly namespace: string
  /** Name of the Gateway. */
  readonly gateway: string
  readonly podName?: string
  /** Comma-separated addresses of the pod. */
  readonly podIps?: string
  readonly nodeName?: string
}

/** The name under which the operator knows the Gateway of this data plane. */
export const roleOf = ({ namespace, gateway }: Pick<NodeIdentity, 'namespace' | 'gateway'>): string =>
  `${namespace}~${safeName(gateway, (text) => hash('sha256', text))}`

/** Node id and metadata of the config stream (operator.md §6.2). `role` selects the snapshot. */
export function toNode(identity: NodeIdentity): MessageInitShape<typeof NodeSchema> {
  const { namespace, gateway, podName = gateway, podIps = '127.0.0.1', nodeName = '' } = identity
  return {
    id: `proxy~${podIps.split(',')[0]}~${podName}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { NAME: podName, NAMESPACE: namespace, INSTANCE_IPS: podIps, NODE_NAME: nodeName, GATEWAY_NAME: gateway, role: roleOf(identity) },
  }
}
