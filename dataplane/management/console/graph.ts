import { X509Certificate } from 'node:crypto'
import type { BackendNode, EndpointNode, ModelNode, Overview } from '#api/management/overview.ts'
import { mergeEndpoint } from '#api/management/merge.ts'
import { servingTargets, shadowTargets } from '#api/model-problems.ts'
import type { AIModel, AIModelTarget, BackendRef, Listener, Route, TcpRoute } from '#gen/config/types.ts'
import { kindOf } from '../../backend/kinds.ts'
import { showRollouts } from '../../config/models.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import { authorityOf } from '../../http/message.ts'
import { Slice } from '../../runtime/cooperative.ts'
import type { ThreadEndpoints } from './endpoints.ts'

type ListenerNode = Overview['listeners'][number]
type RouteNode = Overview['routes'][number]

/** Endpoints of one backend in the graph. */
const MAX_ENDPOINTS = 200

export function listListeners({ listeners, binds, secrets }: ConfigSnapshot): ListenerNode[] {
  return [...listeners.values()].map((listener) => ({
    key: listener.key,
    gateway: gatewayKey(listener),
    name: listener.name,
    port: binds.get(listener.bind)?.port ?? 0,
    protocol: listener.protocol,
    hostname: listener.hostname ?? null,
    certificates: (listener.tls?.certificates ?? []).flatMap((secret) => describeCertificate(secret, secrets.get(secret)?.certificate) ?? []),
  }))
}

export const gatewayKey = ({ gateway }: Pick<Listener, 'gateway'>): string => `${gateway.namespace}/${gateway.name}`

function describeCertificate(secret: string, pem: string | undefined): ListenerNode['certificates'][number] | undefined {
  if (pem === undefined) return undefined
  try {
    const { subject, subjectAltName = '', validToDate } = new X509Certificate(pem)
    const names = subjectAltName === '' ? [] : subjectAltName.split(', ').map((name) => name.replace(/^(?:DNS|IP Address):/, ''))
    return { secret, subject: subject ?? '', names, notAfterMs: validToDate.getTime() }
  } catch {
    // PX4008 reports it.
    return undefined
  }
}

/** The routes of the config; each is one node, whatever the number of its rules. */
export async function listRoutes({ routes, tcpRoutes }: ConfigSnapshot): Promise<RouteNode[]> {
  const slice = new Slice()
  const nodes = new Map<string, { node: RouteNode; listeners: Set<string>; hostnames: Set<string>; backends: Set<string> }>()
  for (const message of [...routes.values(), ...tcpRoutes.values()]) {
    if (slice.isOver) await slice.next()
    const { kind, namespace, name } = message.route
    const key = `${kind} ${namespace}/${name}`
    let known = nodes.get(key)
    if (known === undefined) {
      const node = {
        key,
        kind,
        namespace,
        name,
        origin: originOf(message),
        listeners: [],
        hostnames: [],
        rules: 0,
        backends: [],
      }
      nodes.set(key, (known = { node, listeners: new Set(), hostnames: new Set(), backends: new Set() }))
    }
    known.node.rules++
    for (const listener of message.listeners) known.listeners.add(listener)
    for (const hostname of message.hostnames ?? []) known.hostnames.add(hostname)
    for (const { ref } of refsOf(message)) known.backends.add(nameOfRef(ref))
  }
  return [...nodes.values()].map(({ node, listeners, hostnames, backends }) => ({
    ...node,
    listeners: [...listeners],
    hostnames: [...hostnames],
    backends: [...backends],
  }))
}

/** Field of the short form that a route is made from. */
export const originOf = (message: Route | TcpRoute): string | null => ('origin' in message ? (message.origin ?? null) : null)

const refsOf = ({ backends = [] }: Route | TcpRoute): readonly { readonly ref: BackendRef }[] => backends

/** Name of a backend in logs and metrics. */
export function nameOfRef(ref: BackendRef): string {
  if (ref.service !== undefined) return `${ref.service}:${ref.port ?? 0}`
  return ref.backend ?? ref.address ?? 'invalid'
}

/** The backends of all routes, with the endpoints of the config and their state in each thread. */
export async function listBackends(snapshot: ConfigSnapshot, threads: readonly (readonly ThreadEndpoints[])[]): Promise<BackendNode[]> {
  const slice = new Slice()
  const states = new Map<string, Map<string, EndpointNode>>()
  for (const { backend, endpoints } of threads.flat()) {
    const known = states.get(backend) ?? new Map<string, EndpointNode>()
    states.set(backend, known)
    for (const endpoint of endpoints) known.set(endpoint.address, mergeEndpoint(known.get(endpoint.address), endpoint))
  }
  const nodes = new Map<string, BackendNode>()
  for (const message of [...snapshot.routes.values(), ...snapshot.tcpRoutes.values()]) {
    if (slice.isOver) await slice.next()
    for (const { ref } of refsOf(message)) {
      const key = nameOfRef(ref)
      if (!nodes.has(key))
        nodes.set(key, { key, kind: kindOfRef(ref, snapshot), endpoints: endpointsOf(ref, key, snapshot, states), models: modelsOf(ref, snapshot) })
    }
  }
  return [...nodes.values()]
}

function kindOfRef(ref: BackendRef, { backends }: ConfigSnapshot): BackendNode['kind'] {
  if (ref.service !== undefined) return 'service'
  if (ref.address !== undefined) return 'static'
  const backend = ref.backend === undefined ? undefined : backends.get(ref.backend)
  return (backend && kindOf(backend)?.kind.node) ?? 'invalid'
}

/** Endpoints of the config, and those of the parts of a backend (providers, MCP targets), which are destinations named `<backend>/<part>`. */
function endpointsOf(
  ref: BackendRef,
  key: string,
  { services, backends }: Objects,
  states: ReadonlyMap<string, ReadonlyMap<string, EndpointNode>>,
): EndpointNode[] {
  const known = states.get(key)
  const found = new Map<string, EndpointNode>()
  const port = ref.service === undefined ? undefined : services.get(ref.service)?.ports.find((each) => each.port === ref.port)
  for (const { address, port: target, draining, zone } of port?.endpoints ?? []) {
    const label = authorityOf(address, target)
    found.set(label, { ...(known?.get(label) ?? unused(label)), draining: draining ?? false, zone: zone ?? null })
  }
  const backend = ref.backend === undefined ? undefined : backends.get(ref.backend)
  const { kind, part } = (backend && kindOf(backend)) ?? {}
  const fixed = kind?.endpoint?.(part)
  if (fixed !== undefined) {
    const label = authorityOf(fixed.host, fixed.port)
    found.set(label, known?.get(label) ?? unused(label))
  }
  if (ref.address !== undefined) found.set(ref.address, known?.get(ref.address) ?? unused(ref.address))
  if (ref.backend !== undefined)
    for (const [name, endpoints] of states) if (name.startsWith(`${ref.backend}/`)) for (const [label, endpoint] of endpoints) found.set(label, endpoint)
  for (const target of targetsOf(ref, { services, backends }))
    for (const endpoint of endpointsOf(target, nameOfRef(target), { services, backends }, states)) found.set(endpoint.address, endpoint)
  return [...found.values()].slice(0, MAX_ENDPOINTS)
}

type Objects = Pick<ConfigSnapshot, 'services' | 'backends'>

const modelsIn = ({ backend: key }: BackendRef, { backends }: Objects): readonly AIModel[] => (key === undefined ? [] : (backends.get(key)?.ai?.models ?? []))

const shownModels = ({ backend: key = '' }: BackendRef, { backends }: Objects): ReturnType<typeof showRollouts> => {
  const backend = backends.get(key)
  return backend === undefined ? [] : showRollouts(backend)
}

const targetsIn = (model: AIModel): AIModelTarget[] => [...servingTargets(model), ...shadowTargets(model)]

/** What the models of a backend lead to in the end, each once: backends with providers, Services and addresses. */
function targetsOf(ref: BackendRef, objects: Objects): BackendRef[] {
  const found = new Map<string, BackendRef>()
  const seen = new Set<string>()
  const visit = (from: BackendRef): void => {
    for (const { backendRef } of modelsIn(from, objects).flatMap(targetsIn)) {
      const name = nameOfRef(backendRef)
      if (seen.has(name)) continue
      seen.add(name)
      if (modelsIn(backendRef, objects).length > 0) visit(backendRef)
      else found.set(name, backendRef)
    }
  }
  visit(ref)
  return [...found.values()]
}

function modelsOf(ref: BackendRef, objects: Objects): ModelNode[] {
  const nameOf = ({ backendRef, model }: AIModelTarget): string => `${nameOfRef(backendRef)}${model === undefined ? '' : ` ${model}`}`
  const describe = (targets: readonly AIModelTarget[]) => targets.map((target) => ({ target: nameOf(target), weight: target.weight ?? 1 }))
  return shownModels(ref, objects).map(({ name, visibility = 'Public', by = 'Weight', sticky = null, to, rules, fallback = [], shadow }) => ({
    name,
    visibility,
    by,
    sticky,
    rules:
      to === undefined
        ? rules.map((rule) => ({
            when: rule.when ?? null,
            to: describe(rule.to),
            rollout: rule.state === undefined ? null : `${rule.state.phase}: ${rule.state.message}`,
          }))
        : [{ when: null, to: describe(to), rollout: null }],
    fallback: fallback.map((entry) => ({ on: [...entry.on], to: describe(entry.to) })),
    shadow:
      shadow === undefined
        ? null
        : {
            to: nameOf(shadow.to),
            percent: shadow.percent,
            budget: `${shadow.budget} USD per ${shadow.window ?? 'Month'}`,
            judge: shadow.judge === undefined ? null : nameOf(shadow.judge.to),
          },
  }))
}

const unused = (address: string): EndpointNode => ({
  address,
  health: null,
  evictedForMs: null,
  evictedBecause: null,
  failedCheck: null,
  latencyMs: null,
  pending: 0,
  draining: false,
  zone: null,
})
