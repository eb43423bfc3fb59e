import { GROUP } from '#api/names.ts'
import type { Backend } from '#gen/config/types.ts'
import type { ProxyBackend } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { condition, conditionOf, fault } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import { findMcpClashes, findOwnAuthentication } from '../reference/mcp-targets.ts'
import { resolveBody, type ResolvedBody } from '../reference/references.ts'
import type { ObjectStatus } from '../../model/translation.ts'

/** A ProxyBackend in the config's form. */
export interface BackendState {
  readonly backend: ProxyBackend
  readonly resolved: ResolvedBody
  /** Absent if the backend is ambiguous (mcp.md §1.3): requests get 500. */
  readonly message?: Backend
}

export function readBackends(context: Context): ReadonlyMap<string, BackendState> {
  return new Map(context.snapshot.list('ProxyBackend').map((backend) => [keyOf(backend), readBackend(context, backend)]))
}

function readBackend(context: Context, backend: ProxyBackend): BackendState {
  const resolved = withClashes(resolveBody(context, 'ProxyBackend', backend.metadata.namespace, 'ProxyBackendSpec', backend.spec))
  // The config's Backend is ProxyBackendSpec with its references resolved (api/config/backend.ts), plus the key.
  const message = { key: keyOf(backend), ...resolved.body } as Backend
  return { backend, resolved, ...(resolved.errors.some((error) => error.kind === 'selection') ? {} : { message }) }
}

/** Each MCP selector was looked at by itself. */
function withClashes(resolved: ResolvedBody): ResolvedBody {
  const { mcp } = resolved.body as { mcp?: Parameters<typeof findMcpClashes>[0] }
  const errors = (mcp === undefined ? [] : findMcpClashes(mcp)).map((message) => ({ path: ['mcp', 'targets'], kind: 'selection' as const, message }))
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

export function backendStatus({ backend, resolved }: BackendState): ObjectStatus {
  const { generation, namespace, name } = backend.metadata
  const problems = resolved.errors.map(({ path, message }) => `${path.join('.')}: ${message}`)
  const unenforced = findOwnAuthentication(backend.spec.mcp?.targets ?? [])
  const failure = problems.length > 0 ? fault('TranslationError', `failed to translate backend: ${[...problems, ...unenforced].join('; ')}`) : undefined
  const accepted =
    failure === undefined && unenforced.length > 0
      ? condition('Accepted', true, 'PartiallyValid', unenforced.join('; '), generation)
      : conditionOf('Accepted', failure, 'Accepted', 'Backend successfully accepted', generation)
  return {
    group: GROUP,
    kind: 'ProxyBackend',
    namespace,
    name,
    status: { conditions: [accepted] },
  }
}
