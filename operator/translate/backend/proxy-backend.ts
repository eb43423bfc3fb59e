import { withCode } from '#api/messages/code.ts'
import { findToolClashes } from '#api/tool-clashes.ts'
import { GROUP } from '#api/names.ts'
import type { Backend } from '#gen/config/types.ts'
import type { ProxyBackend } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { condition, conditionOf } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { findMcpClashes, findOwnAuthentication } from '../reference/mcp-targets.ts'
import { resolveBody, type BodyError, type ResolvedBody } from '../reference/references.ts'
import type { Condition, ObjectStatus } from '../../model/translation.ts'
import { findRefusedHosts } from './hosts.ts'
import { findDeniedServers, findUnusedServers } from './servers.ts'

/** A ProxyBackend in the config's form. */
export interface BackendState {
  readonly backend: ProxyBackend
  readonly resolved: ResolvedBody
  /** Absent if the backend is ambiguous (mcp.md §1.3): requests get 500. */
  readonly message?: Backend
  /** Gateways that reach the backend. The set is filled in while Gateways are walked. */
  readonly gateways: Set<GatewayState>
}

export function readBackend(context: Context, backend: ProxyBackend): BackendState {
  const resolved = withClashes(resolveBody(context, 'ProxyBackend', backend.metadata, 'ProxyBackendSpec', backend.spec))
  // The config's Backend is ProxyBackendSpec with its references resolved (api/config/backend.ts), plus the key.
  const message = { key: keyOf(backend), ...resolved.body } as Backend
  return { backend, resolved, gateways: new Set(), ...(resolved.errors.some((error) => error.kind === 'selection') ? {} : { message }) }
}

/** Each MCP selector was looked at by itself. */
function withClashes(resolved: ResolvedBody): ResolvedBody {
  const { mcp } = resolved.body as { mcp?: Parameters<typeof findMcpClashes>[0] }
  const errors = (mcp === undefined ? [] : findMcpClashes(mcp)).map((message) => ({
    path: ['mcp', 'targets'],
    kind: 'selection' as const,
    message: withCode(message, 'PX1313'),
  }))
  return errors.length === 0 ? resolved : { ...resolved, errors: [...resolved.errors, ...errors] }
}

/** Names that `sectionName` of a policy may use: MCP targets, AI providers; the single provider answers to `backend`. */
export function sectionsOf({ spec }: ProxyBackend): string[] {
  return [
    ...(spec.mcp?.targets ?? []).map((target) => target.name),
    ...(spec.ai?.groups ?? []).flatMap((group) => group.providers.map((provider) => provider.name)),
    ...(spec.ai?.provider ? ['backend'] : []),
  ]
}

/**
 * The status of a ProxyBackend. `ofPaths` are warnings that are appended to the message of a backend that is in force, `ofIdentities` hosts that
 * do not receive the credentials of the data plane.
 */
export function backendStatus(state: BackendState, ofPaths: readonly string[] = [], ofIdentities: readonly string[] = []): ObjectStatus {
  const { backend, resolved } = state
  const warnings = [...ofPaths, ...findUnusedServers(state)]
  const { generation, namespace, name } = backend.metadata
  const textOf = ({ path, message }: BodyError): string => `${path.join('.')}: ${message}`
  // A broken expression or document fails where it stands; the rest of the backend is in force.
  const isPartial = ({ kind }: BodyError): boolean => kind !== 'reference' && kind !== 'selection'
  const problems = resolved.errors.filter((error) => !isPartial(error)).map(textOf)
  const partial = [
    ...resolved.errors.filter(isPartial).map(textOf),
    ...findDeniedServers(state),
    ...findRefusedHosts(state),
    ...ofIdentities,
    ...findOwnAuthentication(backend.spec.mcp?.targets ?? []).map((message) => withCode(message, 'PX1314')),
    ...(backend.spec.mcp === undefined ? [] : findToolClashes(backend.spec.mcp)).map(({ path, message }) =>
      withCode(`mcp.${path.join('.')}: ${message}`, 'PX1323'),
    ),
  ]
  const failure =
    problems.length > 0 ? { reason: 'TranslationError' as const, message: `failed to translate backend: ${[...problems, ...partial].join('; ')}` } : undefined
  const accepted =
    failure === undefined && partial.length > 0
      ? condition('Accepted', true, 'PartiallyValid', [...partial, ...warnings].join('; '), generation)
      : conditionOf('Accepted', failure, 'Accepted', ['Backend successfully accepted', ...warnings].join('; '), generation)
  return {
    group: GROUP,
    kind: 'ProxyBackend',
    namespace,
    name,
    status: { conditions: [accepted, ...sessionCondition(state)] },
  }
}

/** A session with a target of the older transport lives in one pod, because its connection does (mcp.md §5.1). */
function sessionCondition({ backend, message, gateways }: BackendState): Condition[] {
  const replicatedBy = [...gateways].filter(({ hasReplicas }) => hasReplicas).map(({ key }) => key)
  if (replicatedBy.length === 0 || message?.mcp === undefined || message.mcp.sessionRouting === 'Stateless') return []
  const targets = message.mcp.targets.flatMap((target) => {
    if (target.static?.protocol === 'SSE') return [target.name]
    return (target.selector?.targets ?? []).filter(({ protocol }) => protocol === 'SSE').map(({ name }) => name)
  })
  if (targets.length === 0) return []
  const text =
    `sessions with targets that speak SSE (${targets.join(', ')}) live in one pod, and Gateways ${replicatedBy.toSorted().join(', ')} can have several: ` +
    'requests that reach another pod get 404; use Streamable HTTP, sessionRouting Stateless, or one replica'
  return [condition('SessionsShared', false, 'OlderTransport', withCode(text, 'PX1317'), backend.metadata.generation)]
}
