import { backendTlsMessage, type BackendTlsIndex, type BackendTlsState } from '../policy/backend-tls-policy.ts'
import type { BackendTarget } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Lookup } from '../common/dependencies.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { poolMessage, type PoolState } from '../inference/inference-pool.ts'
import type { Messages } from '../common/messages.ts'
import type { PolicyIndex } from '../policy/overrides.ts'
import type { BackendState } from '../backend/proxy-backend.ts'
import { policyMessages, type PolicyState } from '../policy/proxy-policy.ts'
import { serviceMessage, type SliceIndex } from '../backend/service.ts'

/** Indexes for walking from a Gateway to its messages. */
export interface World {
  readonly context: Context
  readonly policies: PolicyIndex
  readonly backendTls: BackendTlsIndex
  readonly backends: Lookup<BackendState>
  readonly pools: Lookup<PoolState>
  readonly slices: SliceIndex
}

/** Policies, backends and pools that record a Gateway as reaching them. */
export interface Reached {
  readonly policies: ReadonlySet<PolicyState>
  readonly backendTls: ReadonlySet<BackendTlsState>
  readonly backends: ReadonlySet<BackendState>
  readonly pools: ReadonlySet<PoolState>
}

/**
 * Finds everything that one Gateway reaches, and adds its messages: from the Gateway, its ListenerSets, its routes and their
 * backends, through the policies of each and the backends that those name in turn (operator.md §4.8). Each object is
 * visited once, so cycles end. A Gateway gets no Secret, Service or policy that it does not reach. `leave` reverts what it records.
 */
export function walk(world: World, gateway: GatewayState, nodes: readonly string[], targets: readonly BackendTarget[], messages: Messages): Reached {
  const { context } = world
  const reachedBy = { policies: new Set<PolicyState>(), backendTls: new Set<BackendTlsState>(), backends: new Set<BackendState>(), pools: new Set<PoolState>() }
  const seen = new Set<string>()
  const queue: string[] = []
  const ports = new Map<string, Set<number>>()
  const enter = (node: string): void => {
    if (seen.has(node)) return
    seen.add(node)
    queue.push(node)
  }
  const enterTarget = ({ kind, key, port }: BackendTarget): void => {
    if (kind === 'Service' && port !== undefined) {
      const known = ports.get(key)
      if (known) known.add(port)
      else ports.set(key, new Set([port]))
    }
    enter(`${kind}/${key}`)
  }
  for (const node of nodes) enter(node)
  for (const target of targets) enterTarget(target)

  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    for (const { policy, target } of world.policies.get(node) ?? []) {
      reachedBy.policies.add(policy)
      const reached = policy.gateways.get(gateway)
      if (reached) reached.add(target)
      else policy.gateways.set(gateway, new Set([target]))
      for (const message of policyMessages(policy, target, gateway)) messages.add('policy', message)
      for (const { resolved } of policy.sections) {
        for (const secret of resolved.secrets) messages.add('secret', secret)
        for (const each of resolved.targets) enterTarget(each)
      }
    }
    for (const { state, target } of world.backendTls.get(node) ?? []) {
      reachedBy.backendTls.add(state)
      state.gateways.add(gateway)
      if (target.isUnused) continue
      messages.add('policy', backendTlsMessage(state, target, gateway))
      for (const secret of state.secrets) messages.add('secret', secret)
      if (gateway.clientCertificate && 'message' in gateway.clientCertificate) messages.add('secret', gateway.clientCertificate.message)
    }
    const backend = node.startsWith('ProxyBackend/') ? world.backends.get(node.slice('ProxyBackend/'.length)) : undefined
    if (backend?.message) {
      messages.add('backend', backend.message)
      reachedBy.backends.add(backend)
      backend.gateways.add(gateway)
      for (const secret of backend.resolved.secrets) messages.add('secret', secret)
      for (const each of backend.resolved.targets) enterTarget(each)
    }
    const pool = node.startsWith('InferencePool/') ? world.pools.get(node.slice('InferencePool/'.length)) : undefined
    if (pool) {
      reachedBy.pools.add(pool)
      pool.gateways.add(gateway)
      messages.add('service', poolMessage(context, pool))
      for (const each of pool.targets) enterTarget(each)
    }
  }
  for (const [key, named] of ports) {
    const [namespace = '', name = ''] = key.split('/')
    const service = context.snapshot.get('Service', namespace, name)
    if (service) messages.add('service', serviceMessage(context, world.slices, service, named))
  }
  return reachedBy
}

/** Reverts what a walk recorded on policies, backends and pools. */
export function leave(gateway: GatewayState, { policies, backendTls, backends, pools }: Reached): void {
  for (const { gateways } of policies) gateways.delete(gateway)
  for (const { gateways } of backendTls) gateways.delete(gateway)
  for (const { gateways } of backends) gateways.delete(gateway)
  for (const { gateways } of pools) gateways.delete(gateway)
}
