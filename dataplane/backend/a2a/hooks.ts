import type { A2ABackend } from '#gen/config/types.ts'
import type { DestinationHooks } from '../../net/upstream/hooks.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import { agentOf } from './agent.ts'
import { A2aCall } from './call.ts'

/** Requests to A2A agents. `backend` describes the agent, for its cards; `secret` reads a value of a Secret. */
export function agentHooks(registry: Registry, backend?: A2ABackend, secret?: (key: string, name: string) => string | undefined): DestinationHooks {
  const { key, secretRef } = backend?.cardSigning ?? {}
  const signingKey = key ?? (secretRef?.secret === undefined ? undefined : secret?.(secretRef.secret, 'key'))
  const agent = backend && { backend, signingKey }
  return { prepare: (exchange) => new A2aCall(exchange, registry, agentOf(agent)) }
}
