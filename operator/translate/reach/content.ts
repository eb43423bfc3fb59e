import { backendTlsMessage, type BackendTlsIndex, type BackendTlsState } from '../policy/backend-tls-policy.ts'
import type { BackendTarget } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Lookup } from '../common/dependencies.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { poolMessage, type PoolState } from '../inference/inference-pool.ts'
import { messageOf } from '../common/messages.ts'
import type { PolicyIndex } from '../policy/overrides.ts'
import type { ResolvedTarget } from '../policy/policy-targets.ts'
import type { BackendState } from '../backend/proxy-backend.ts'
import { policyMessages, type PolicyState } from '../policy/proxy-policy.ts'
import { serviceMessage, type SliceIndex } from '../backend/service.ts'
import type { ConfigMessage } from '../../model/translation.ts'

/** Indexes for walking from a Gateway to its messages. */
export interface World {
  readonly context: Context
  readonly policies: PolicyIndex
  readonly backendTls: BackendTlsIndex
  readonly backends: Lookup<BackendState>
  readonly pools: Lookup<PoolState>
  readonly slices: SliceIndex
}

/** A way to an object: `<kind>/<namespace>/<name>`, and the port of a Service. */
export interface Edge {
  readonly node: string
  readonly port?: number
}

export const idOf = ({ node, port }: Edge): string => `${node} ${port ?? ''}`

/** What a Gateway gets from what it serves: messages, and ways to what these need in turn. */
export interface Root {
  readonly messages: readonly ConfigMessage[]
  readonly edges: readonly Edge[]
}

/** What a Gateway gets by reaching an object. */
export interface Content extends Root {
  readonly policies: readonly { readonly policy: PolicyState; readonly target: ResolvedTarget }[]
  readonly backendTls: readonly BackendTlsState[]
  readonly backend: BackendState | undefined
  readonly pool: PoolState | undefined
}

/** The ways to backends, each once. */
export function edgesOf(targets: readonly BackendTarget[]): Edge[] {
  const edges = targets.map(({ kind, key, port }) => ({ node: `${kind}/${key}`, ...(kind === 'Service' && port !== undefined ? { port } : {}) }))
  return [...new Map(edges.map((edge) => [idOf(edge), edge])).values()]
}

/** Reads an object that a Gateway reaches: what it is, and the policies on it. `ports` are those that references to a Service name. */
export function readContent(world: World, gateway: GatewayState, node: string, ports: ReadonlySet<number>): Content {
  const messages: ConfigMessage[] = []
  const targets: BackendTarget[] = []
  const policies = world.policies.get(node) ?? []
  for (const { policy, target } of policies) {
    messages.push(...policyMessages(policy, target, gateway).map((message) => messageOf('policy', message)))
    for (const { resolved } of policy.sections) {
      messages.push(...resolved.secrets.map((secret) => messageOf('secret', secret)))
      targets.push(...resolved.targets)
    }
  }
  const backendTls = world.backendTls.get(node) ?? []
  for (const { state, target } of backendTls) {
    if (target.isUnused) continue
    messages.push(messageOf('policy', backendTlsMessage(state, target, gateway)))
    const { clientCertificate } = gateway
    const client = clientCertificate && 'message' in clientCertificate ? [clientCertificate.message] : []
    messages.push(...[...state.secrets, ...client].map((secret) => messageOf('secret', secret)))
  }
  const backend = findBackend(world, node)
  if (backend?.message) {
    messages.push(messageOf('backend', backend.message), ...backend.resolved.secrets.map((secret) => messageOf('secret', secret)))
    targets.push(...backend.resolved.targets)
  }
  const pool = node.startsWith('InferencePool/') ? world.pools.get(node.slice('InferencePool/'.length)) : undefined
  if (pool) {
    messages.push(messageOf('service', poolMessage(world.context, pool)))
    targets.push(...pool.targets)
  }
  if (ports.size > 0) {
    const [, namespace = '', name = ''] = node.split('/')
    const service = world.context.snapshot.get('Service', namespace, name)
    if (service) messages.push(messageOf('service', serviceMessage(world.context, world.slices, service, ports)))
  }
  return { messages, edges: edgesOf(targets), policies, backendTls: [...new Set(backendTls.map(({ state }) => state))], backend, pool }
}

/** A ProxyBackend that is in force. */
function findBackend({ backends }: World, node: string): BackendState | undefined {
  const backend = node.startsWith('ProxyBackend/') ? backends.get(node.slice('ProxyBackend/'.length)) : undefined
  return backend?.message && backend
}
