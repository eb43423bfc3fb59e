import { withCode } from '#api/messages/code.ts'
import { findToolClashes } from '#api/tool-clashes.ts'
import type { Backend } from '#gen/config/types.ts'
import { condition } from '../../model/conditions.ts'
import type { Condition } from '../../model/translation.ts'
import type { ProxyBackend } from '../../source/objects.ts'
import type { Context } from '../common/context.ts'
import { findMcpClashes, findOwnAuthentication } from '../reference/mcp-targets.ts'
import { describeModelProblems } from '../reference/model-targets.ts'

type Spec = ProxyBackend['spec']
type Message<Name> = Name extends keyof Backend ? NonNullable<Backend[Name]> : never

/** What a kind of backend adds to the translation and the status of a ProxyBackend; empty for most. `Part` is its part of `spec`, `Sent` that of the config. */
interface BackendKind<Part, Sent> {
  /** Names of its parts that `sectionName` of a policy may use. */
  sections?(part: Part): string[]
  /** What leaves the backend ambiguous, so that it is not in force. `sent`: with its references resolved. */
  clashes?(sent: Sent): { readonly path: readonly string[]; readonly message: string }[]
  /** What is wrong with parts of a backend that is in force, for the condition Accepted. */
  faults?(part: Part): string[]
  /** As faults; what is wrong with parts because of other backends. */
  problems?(part: Part, spec: Spec, key: string, context: Context): string[]
  /** More conditions of a backend that Gateways with several replicas reach, whose keys are `replicatedBy`. */
  conditions?(sent: Sent, replicatedBy: readonly string[], generation: number): Condition[]
}

type Kinds = { readonly [Name in Exclude<keyof Spec, 'policies'>]-?: BackendKind<NonNullable<Spec[Name]>, Message<Name>> }

/** The kinds of ProxyBackends by the name of their field, as `dataplane/backend/kinds.ts` lists them for the data plane. A field without an entry does not compile. */
export const kinds = {
  static: {},
  dynamicForwardProxy: {},
  ai: {
    // The single provider answers to `backend`.
    sections: ({ groups = [], models = [], provider }) => [
      ...[...groups.flatMap(({ providers }) => providers), ...models].map(({ name }) => name),
      ...(provider ? ['backend'] : []),
    ],
    problems: ({ models = [] }, { policies }, key, context) => describeModelProblems(context, key, models, policies),
  },
  mcp: {
    sections: ({ targets }) => targets.map(({ name }) => name),
    // Each selector was looked at by itself.
    clashes: (sent) => findMcpClashes(sent).map((message) => ({ path: ['mcp', 'targets'], message: withCode(message, 'PX1313') })),
    faults: (part) => [
      ...findOwnAuthentication(part.targets).map((message) => withCode(message, 'PX1314')),
      ...findToolClashes(part).map(({ path, message }) => withCode(`mcp.${path.join('.')}: ${message}`, 'PX1323')),
    ],
    conditions: describeSessions,
  },
  cloudBackend: {},
  a2a: {},
} as const satisfies Kinds

type AnyKind = BackendKind<unknown, unknown>

/** The kind of a ProxyBackend with its part of the spec, and of the config if the backend is in force. */
export function kindOf(spec: Spec, message?: Backend): { readonly kind: AnyKind; readonly part: unknown; readonly sent: unknown } {
  const [name, kind] = Object.entries<AnyKind>(kinds).find(([field]) => spec[field as keyof Spec] !== undefined) ?? []
  return { kind: kind ?? {}, part: spec[name as keyof Spec], sent: message?.[name as keyof Backend] }
}

/** A session with a target of the older transport lives in one pod, because its connection does (mcp.md §5.1). */
function describeSessions(mcp: NonNullable<Backend['mcp']>, replicatedBy: readonly string[], generation: number): Condition[] {
  if (mcp.sessionRouting === 'Stateless') return []
  const targets = mcp.targets.flatMap((target) => {
    if (target.static?.protocol === 'SSE') return [target.name]
    return (target.selector?.targets ?? []).filter(({ protocol }) => protocol === 'SSE').map(({ name }) => name)
  })
  if (targets.length === 0) return []
  const text =
    `sessions with targets that speak SSE (${targets.join(', ')}) live in one pod, and Gateways ${replicatedBy.toSorted().join(', ')} can have several: ` +
    'requests that reach another pod get 404; use Streamable HTTP, sessionRouting Stateless, or one replica'
  return [condition('SessionsShared', false, 'OlderTransport', withCode(text, 'PX1317'), generation)]
}
