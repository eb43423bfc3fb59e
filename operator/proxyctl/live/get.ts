import { suggest } from '#api/suggest.ts'
import type { Condition } from '../../model/translation.ts'
import type { Kind } from '../../source/objects.ts'
import { askJson, openAdmin } from './admin.ts'
import { describeReference, readClusterObjects, readManifestObjects, type ListedObject, type ObjectSource } from './objects.ts'
import { CommandError, alignColumns, UsageError, type Output } from '../output.ts'
import { alignRows, describeObject } from './status.ts'
import type { Command, Invocation, Row } from '../types.ts'

const routeKinds: readonly Kind[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute']

interface Attachment {
  /** `Gateway <namespace>/<name> <section>`. */
  readonly to: string
  readonly conditions: readonly Pick<Condition, 'type' | 'status' | 'reason' | 'message'>[]
}

/** A policy field in force for a rule of a route. */
interface FieldInForce {
  readonly rule: string
  readonly listener: string
  readonly field: string
  readonly from: readonly string[]
}

/** One object as printed. */
interface Item {
  readonly status: Row['severity']
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** Gateways and listeners of a route or a policy, with the conditions there. */
  readonly attachedTo: readonly Attachment[]
  readonly problems: readonly string[]
  /** Columns of the kind: a value of several parts is a list. */
  readonly facts: Readonly<Record<string, readonly string[]>>
  /** Facts of `-o wide`. */
  readonly more: Readonly<Record<string, readonly string[]>>
  /** Policies in force; for one route only. */
  readonly policies?: readonly FieldInForce[]
}

interface Listing {
  /** Kinds of the objects that are listed. */
  readonly kinds: readonly Kind[]
  /** Kinds that refer to them. */
  readonly users?: readonly Kind[]
  facts(object: ListedObject, all: readonly ListedObject[]): Pick<Item, 'facts' | 'more'>
}

const attachedTo = ({ metadata, status }: ListedObject): Attachment[] =>
  [...(status.parents ?? []), ...(status.ancestors ?? [])].map(({ parentRef, ancestorRef, conditions = [] }) => {
    const reference = parentRef ?? ancestorRef
    return {
      to: reference === undefined ? '' : describeReference(reference, metadata.namespace),
      conditions: conditions.map(({ type, status: is, reason, message }) => ({ type, status: is, reason, message })),
    }
  })

const listings: Readonly<Record<string, Listing>> = {
  routes: {
    kinds: routeKinds,
    facts: ({ metadata, spec: { hostnames = [], rules = [] } }) => ({
      facts: { hostnames, rules: [String(rules.length)] },
      more: { backends: unique(rules.flatMap(({ backendRefs = [] }) => backendRefs.map((ref) => describeBackend(ref, metadata.namespace)))) },
    }),
  },
  policies: {
    kinds: ['ProxyPolicy', 'BackendTLSPolicy'],
    facts: ({ kind, metadata, spec }) => ({
      facts: {
        targets: [
          ...(spec.targetRefs ?? []).map((ref) => describeReference(ref, metadata.namespace)),
          ...(spec.targetSelectors ?? []).map(
            ({ kind: of = '', matchLabels = {} }) =>
              `${of} with ${Object.entries(matchLabels)
                .map((pair) => pair.join('='))
                .join(',')}`,
          ),
        ],
      },
      more: {
        sets:
          kind === 'BackendTLSPolicy'
            ? ['backend.tls']
            : ['frontend', 'traffic', 'backend'].flatMap((section) =>
                Object.keys(spec[section] ?? {}).flatMap((field) => (field === 'phase' ? [] : [`${section}.${field}`])),
              ),
      },
    }),
  },
  backends: {
    kinds: ['ProxyBackend', 'InferencePool'],
    users: routeKinds,
    facts: ({ kind, metadata, spec }, all) => {
      const own = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
      const users = all.filter((user) =>
        user.spec.rules?.some(({ backendRefs = [] }) => backendRefs.some((ref) => describeBackend(ref, user.metadata.namespace) === own)),
      )
      return {
        facts: {
          type: kind === 'InferencePool' ? ['inference'] : Object.keys(spec).filter((field) => field !== 'policies'),
          'used by': users.map((user) => `${user.kind} ${user.metadata.namespace ?? ''}/${user.metadata.name}`),
        },
        more: { policies: Object.keys((spec['policies'] as object | undefined) ?? {}) },
      }
    },
  },
  gateways: {
    kinds: ['Gateway'],
    facts: ({ spec: { gatewayClassName = '', listeners = [] }, status }) => ({
      facts: {
        class: [gatewayClassName],
        addresses: (status.addresses ?? []).map(({ value }) => value),
        listeners: listeners.map(({ name, port, protocol }) => `${name}:${port}/${protocol}`),
      },
      more: { routes: (status.listeners ?? []).map(({ name, attachedRoutes = 0 }) => `${name}=${attachedRoutes}`) },
    }),
  },
}

/** Short names that kubectl users type. */
const aliases: Readonly<Record<string, string>> = {
  route: 'routes',
  httproutes: 'routes',
  policy: 'policies',
  backend: 'backends',
  gateway: 'gateways',
  gw: 'gateways',
}

/** Lists objects of a kind, or shows one of them. Returns 1 if one of them has an error, and rejects if the named one does not exist. */
export const runGet: Command = async (invocation) => {
  const { args, options, output } = invocation
  const [word = '', name, ...rest] = args
  const kind = aliases[word.toLowerCase()] ?? word.toLowerCase()
  const listing = Object.hasOwn(listings, kind) ? listings[kind] : undefined
  if (listing === undefined || rest.length > 0) {
    const near = suggest(word, Object.keys(listings))
    throw new UsageError(
      `get takes a kind (${Object.keys(listings).join(', ')}) and at most one name${near === undefined || listing ? '' : `; did you mean ${near}?`}`,
    )
  }
  const kinds = [...listing.kinds, ...(listing.users ?? [])]
  const source = await (options.dir === undefined
    ? output.wait(`reading ${kind} from the cluster`, readClusterObjects(invocation, kinds))
    : readManifestObjects(options.dir, options.namespace, kinds))
  const items = select(source.objects, listing, name, options.namespace)
  if (name !== undefined && items.length === 0)
    throw new CommandError('PX6008', `there is no ${describeKinds(listing)} ${name}${listNames(source.objects, listing)}`)
  const shown = name !== undefined && kind === 'routes' ? await Promise.all(items.map((item) => addPolicies(item, source, invocation))) : items
  output.print({ [kind]: shown }, () => describe(shown, output, kind))
  return shown.some(({ status }) => status === 'error') ? 1 : 0
}

function select(objects: readonly ListedObject[], listing: Listing, name: string | undefined, namespace: string | undefined): Item[] {
  const [of, only] = name?.includes('/') === true ? (name.split('/', 2) as [string, string]) : [namespace, name]
  return objects
    .filter(
      ({ kind, metadata }) =>
        listing.kinds.includes(kind as Kind) && (of === undefined || metadata.namespace === of) && (only === undefined || metadata.name === only),
    )
    .map((object): Item => {
      const { kind, metadata, status } = object
      const { severity, conditions } = describeObject({ group: '', kind, ...metadata, status })
      return {
        status: severity,
        kind,
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        attachedTo: attachedTo(object),
        problems: conditions,
        ...listing.facts(object, objects),
      }
    })
}

const describeKinds = ({ kinds }: Listing): string => kinds.join(' or ')

function listNames(objects: readonly ListedObject[], { kinds }: Listing): string {
  const names = objects.filter(({ kind }) => kinds.includes(kind as Kind)).map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)
  return names.length === 0 ? '' : `; there are ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' and others' : ''}`
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)]

function describeBackend({ group = '', kind, ...rest }: Parameters<typeof describeReference>[0], own: string | undefined): string {
  return describeReference({ group, kind: kind ?? 'Service', ...rest }, own)
}

interface ExplainedRule {
  readonly rule?: string
  readonly ruleIndex: number
  readonly listener: string
  readonly preRouting: Readonly<Record<string, { readonly sources: readonly { readonly from: string; readonly target: string }[] }>>
  readonly postRouting: ExplainedRule['preRouting']
}

/** Adds the policy fields in force for a route; without its data plane, the reason why they are unknown. */
async function addPolicies(item: Item, source: ObjectSource, invocation: Invocation): Promise<Item> {
  const route = `${item.namespace}/${item.name}`
  try {
    const rules =
      source.explain?.(item.namespace, item.name) ??
      (await askJson<{ rules: object[] }>(await openAdmin(invocation, route), `/debug/effective?route=${encodeURIComponent(route)}`)).rules
    const policies = (rules as readonly ExplainedRule[]).flatMap(({ rule, ruleIndex, listener, preRouting, postRouting }) =>
      [...Object.entries(preRouting), ...Object.entries(postRouting)].map(([field, { sources }]) => ({
        rule: rule === undefined || rule === '' ? String(ruleIndex) : rule,
        listener,
        field,
        from: sources.map(({ from, target }) => `${from} on ${target}`),
      })),
    )
    return { ...item, policies }
  } catch (error) {
    return { ...item, problems: [...item.problems, `the policies in force are unknown: ${error instanceof Error ? error.message : String(error)}`] }
  }
}

function describe(items: readonly Item[], output: Output, kind: string): string[] {
  const [first] = items
  if (first === undefined) return [`no ${kind}`]
  const factsOf = (item: Item): [string, readonly string[]][] => Object.entries({ ...item.facts, ...(output.isWide ? item.more : {}) })
  const isAttached = kind === 'routes' || kind === 'policies'
  const header = ['STATUS', 'KIND', 'NAME', ...(isAttached ? ['ATTACHED TO'] : []), ...factsOf(first).map(([name]) => name.toUpperCase()), 'PROBLEM']
  const cell = (values: readonly string[]): string => (values.length === 0 ? '-' : values.join(', '))
  const rows = items.map((item) => [
    item.status,
    item.kind,
    `${item.namespace}/${item.name}`,
    ...(isAttached ? [cell(unique(item.attachedTo.filter(isAccepted).map(({ to }) => to)))] : []),
    ...factsOf(item).map(([, values]) => cell(values)),
    output.isWide || items.length === 1 ? item.problems.join('; ') : (item.problems[0] ?? '').replace(/:.*/, ''),
  ])
  return [...alignRows(output, [header, ...rows]), ...items.flatMap(({ policies }) => (policies ? describePolicies(policies) : []))]
}

const isAccepted = ({ conditions }: Attachment): boolean => conditions.some(({ type, status }) => type === 'Accepted' && status === 'True')

function describePolicies(policies: readonly FieldInForce[]): string[] {
  if (policies.length === 0) return ['', 'no policy is in force']
  return [
    '',
    ...alignColumns([['RULE', 'LISTENER', 'FIELD', 'FROM'], ...policies.map(({ rule, listener, field, from }) => [rule, listener, field, from.join(' + ')])]),
  ]
}
