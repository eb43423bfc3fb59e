import { GROUP } from '#api/names.ts'
import type { Backend } from '#gen/config/types.ts'
import type { ProxyBackend } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { condition, conditionOf } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { resolveBody, type BodyError, type ResolvedBody } from '../reference/references.ts'
import type { ObjectStatus } from '../../model/translation.ts'
import { findRefusedHosts } from './hosts.ts'
import { kindOf } from './kinds.ts'
import { findDeniedServers, findUnusedServers } from './servers.ts'

/** A ProxyBackend in the config's form. */
export interface BackendState {
  readonly backend: ProxyBackend
  readonly resolved: ResolvedBody
  /** What is wrong with its parts because of other backends. */
  readonly problems: readonly string[]
  /** Absent if the backend is ambiguous (mcp.md §1.3): requests get 500. */
  readonly message?: Backend
  /** Gateways that reach the backend. The set is filled in while Gateways are walked. */
  readonly gateways: Set<GatewayState>
}

export function readBackend(context: Context, backend: ProxyBackend): BackendState {
  const body = resolveBody(context, 'ProxyBackend', backend.metadata, 'ProxyBackendSpec', backend.spec)
  // The config's Backend is ProxyBackendSpec with its references resolved (api/config/backend.ts), plus the key.
  const message = { key: keyOf(backend), ...body.body } as Backend
  const { kind, part, sent } = kindOf(backend.spec, message)
  const clashes = sent === undefined ? [] : (kind.clashes?.(sent) ?? []).map((clash) => ({ ...clash, kind: 'selection' as const }))
  const resolved = clashes.length === 0 ? body : { ...body, errors: [...body.errors, ...clashes] }
  const problems = kind.problems?.(part, backend.spec, message.key, context) ?? []
  return { backend, resolved, problems, gateways: new Set(), ...(resolved.errors.some((error) => error.kind === 'selection') ? {} : { message }) }
}

/** Names that `sectionName` of a policy may use. */
export function sectionsOf({ spec }: ProxyBackend): string[] {
  const { kind, part } = kindOf(spec)
  return kind.sections?.(part) ?? []
}

/**
 * The status of a ProxyBackend. `ofPaths` are warnings that are appended to the message of a backend that is in force, `ofIdentities` hosts that
 * do not receive the credentials of the data plane.
 */
export function backendStatus(state: BackendState, ofPaths: readonly string[] = [], ofIdentities: readonly string[] = []): ObjectStatus {
  const { backend, resolved, gateways } = state
  const { generation, namespace, name } = backend.metadata
  const { kind, part, sent } = kindOf(backend.spec, state.message)
  const replicatedBy = [...gateways].filter(({ hasReplicas }) => hasReplicas).map(({ key }) => key)
  const conditions = replicatedBy.length === 0 || sent === undefined ? [] : (kind.conditions?.(sent, replicatedBy, generation) ?? [])
  const warnings = [...ofPaths, ...findUnusedServers(state)]
  const textOf = ({ path, message }: BodyError): string => `${path.join('.')}: ${message}`
  // A broken expression or document fails where it stands; the rest of the backend is in force.
  const isPartial = (error: BodyError): boolean => error.kind !== 'reference' && error.kind !== 'selection'
  const problems = resolved.errors.filter((error) => !isPartial(error)).map(textOf)
  const partial = [
    ...resolved.errors.filter(isPartial).map(textOf),
    ...findDeniedServers(state),
    ...findRefusedHosts(state),
    ...ofIdentities,
    ...(kind.faults?.(part) ?? []),
    ...state.problems,
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
    status: { conditions: [accepted, ...conditions] },
  }
}
