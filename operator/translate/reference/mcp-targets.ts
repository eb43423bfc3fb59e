import { APP_PROTOCOL_MCP, APP_PROTOCOL_MCP_SSE, GROUP } from '#api/names.ts'
import type { LabelSelector } from '../../source/gateway-api.ts'
import { keyOf, type Service } from '../../source/objects.ts'
import { permitsBackend } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Referrer } from '../common/reference-grant.ts'
import { matchesSelector, namespaceLabels, selectorProblems } from '../../model/selectors.ts'

/** One MCP server that a selector found (`ResolvedMcpTargets` of the config). */
interface McpTarget {
  readonly name: string
  readonly service: string
  readonly port: number
  readonly path?: string
  readonly protocol: 'StreamableHTTP' | 'SSE'
}

const NAME_ANNOTATION = `${GROUP}/mcp-target-name`
const PATH_ANNOTATION = `${GROUP}/mcp-path`
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const protocols: ReadonlyMap<string | undefined, McpTarget['protocol']> = new Map([
  [APP_PROTOCOL_MCP, 'StreamableHTTP'],
  [APP_PROTOCOL_MCP_SSE, 'SSE'],
])

interface Selection {
  readonly targets: McpTarget[]
  readonly problems: string[]
  /** Whether the selector matches servers of namespaces without a ReferenceGrant. */
  readonly isRestricted: boolean
}

/** Ports of Services that speak MCP, by selector (mcp.md §2). `selector` is an McpSelector of the API. */
export function selectMcpTargets(context: Context, from: Referrer, selector: unknown): Selection {
  const { namespaces, services } = selector as { namespaces?: LabelSelector; services?: LabelSelector }
  const problems = Object.entries({ namespaces, services }).flatMap(([name, given]) =>
    given === undefined ? [] : selectorProblems(given).map((problem) => `${name}: ${problem}`),
  )
  if (problems.length > 0) return { targets: [], problems, isRestricted: false }
  const all: readonly Service[] = namespaces
    ? context.snapshot.list('Service').filter((service) => matchesSelector(namespaces, namespaceLabels(context.snapshot, service.metadata.namespace)))
    : context.snapshot.inNamespace('Service', from.namespace)
  const targets: McpTarget[] = []
  const owners = new Map<string, string>()
  let isRestricted = false
  for (const service of all.toSorted(byKey)) {
    if (services && !matchesSelector(services, service.metadata.labels ?? {})) continue
    if (!permitsBackend(context, from, { group: '', kind: 'Service', name: service.metadata.name }, service.metadata.namespace)) {
      isRestricted ||= service.spec.ports?.some(({ appProtocol }) => protocols.has(appProtocol)) ?? false
      continue
    }
    for (const port of (service.spec.ports ?? []).toSorted((a, b) => a.port - b.port)) {
      const protocol = protocols.get(port.appProtocol)
      if (!protocol) continue
      const named = service.metadata.annotations?.[NAME_ANNOTATION]
      const name = named ?? `${service.metadata.name}-${port.name ?? port.port}`
      const owner = `${keyOf(service)}:${port.port}`
      const rival = owners.get(name)
      if (named !== undefined && (named.length > 253 || !DNS_SUBDOMAIN.test(named)))
        problems.push(`annotation ${NAME_ANNOTATION} of Service ${keyOf(service)} is not a DNS name: ${named}`)
      else if (rival !== undefined) problems.push(`Services ${rival} and ${owner} are both MCP target ${name}; set annotation ${NAME_ANNOTATION}`)
      else {
        owners.set(name, owner)
        const path = service.metadata.annotations?.[PATH_ANNOTATION]
        targets.push({ name, service: keyOf(service), port: port.port, ...(path === undefined ? {} : { path }), protocol })
      }
    }
  }
  return { targets, problems, isRestricted }
}

export const describeRestriction = ({ kind, namespace }: Referrer): string =>
  `servers of other namespaces that the selector matches are skipped, because no ReferenceGrant there permits kind ${kind} of namespace ${namespace} to refer to their Services`

/** By namespace and name, in code units: the order of targets is that of merged lists, which prompt caches want to stay. */
function byKey(a: Service, b: Service): number {
  const [keyA, keyB] = [`${a.metadata.namespace}\0${a.metadata.name}`, `${b.metadata.namespace}\0${b.metadata.name}`]
  return keyA < keyB ? -1 : keyA > keyB ? 1 : 0
}

interface ResolvedTargets {
  readonly targets: readonly { readonly name: string; readonly selector?: { readonly targets: readonly McpTarget[] } }[]
}

/** Names that two entries of a backend share. Each entry is valid by itself, but clients could not distinguish them. */
export function findMcpClashes({ targets }: ResolvedTargets): string[] {
  const owners = new Map<string, string>()
  const problems: string[] = []
  for (const entry of targets) {
    const found = entry.selector?.targets.map(({ name, service, port }) => ({ name, owner: `Service ${service}:${port} of target ${entry.name}` }))
    for (const { name, owner } of found ?? [{ name: entry.name, owner: `static target ${entry.name}` }]) {
      const rival = owners.get(name)
      if (rival === undefined) owners.set(name, owner)
      else problems.push(`${rival} and ${owner} are both MCP target ${name}; rename one, or set annotation ${NAME_ANNOTATION}`)
    }
  }
  return problems
}

interface TargetWithPolicies {
  readonly name: string
  readonly static?: { readonly policies?: { readonly mcp?: { readonly authentication?: unknown } } }
}

/** Targets with their own authentication. A request is not for one target, so the data plane rejects all requests (mcp.md D1). */
export function findOwnAuthentication(targets: readonly TargetWithPolicies[]): string[] {
  return targets.flatMap(({ name, static: given }, index) =>
    given?.policies?.mcp?.authentication === undefined
      ? []
      : `mcp.targets.${index}.static.policies.mcp.authentication: target ${name} cannot ask for tokens of its own, so requests to this backend are refused; move it to spec.policies`,
  )
}
