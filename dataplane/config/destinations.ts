import type { BackendFull, BackendRef } from '#gen/config/types.ts'
import { isIP } from 'node:net'
import { defaultSettings, Destination, type DestinationConfig, type PoolFactory, type UpstreamSettings } from '../upstream/destination.ts'
import { targetKey, type PolicyIndex } from './merge.ts'
import type { ConfigSnapshot } from './store.ts'
import { upstreamSettings, type Target } from './upstream.ts'

const noEndpoints = {
  endpoints: [],
  appProtocol: undefined,
  settings: defaultSettings,
  hostname: undefined,
  isHostRewritten: false,
  isDynamic: false,
  error: undefined,
} as const

/** What identifies a destination over config versions. */
function keyOf(ref: BackendRef): string {
  if (ref.service !== undefined) return `service ${ref.service} ${ref.port ?? 0}`
  if (ref.backend !== undefined) return `backend ${ref.backend}`
  if (ref.address !== undefined) return `address ${ref.address}`
  return `invalid ${ref.invalid ?? 'BACKEND_NOT_FOUND'}`
}

interface Known {
  readonly ref: BackendRef
  /** Policies of what leads to it: Gateway, listener, route, rule, merged. Weaker than those on the destination itself. */
  readonly outer: BackendFull | undefined
  readonly destination: Destination
  /** Policies changed since it was last asked for: nothing that is composed now refers to it. */
  isStale: boolean
}

/**
 * The destinations that routes refer to. Routes hold them over config versions; `update` gives each its new endpoints and
 * settings, so that a change of endpoints recompiles no route.
 */
export class Destinations {
  readonly #createPool: PoolFactory
  readonly #nowMs: (() => number) | undefined
  readonly #known = new Map<string, Known>()
  #snapshot: ConfigSnapshot | undefined
  #policies: PolicyIndex = new Map()

  /** `nowMs`: the clock of evictions; default the machine's, which never goes back. */
  constructor(createPool: PoolFactory, nowMs?: () => number) {
    this.#createPool = createPool
    this.#nowMs = nowMs
  }

  /** The destination of a reference under the policies of what leads to it; made on first use. */
  get(ref: BackendRef, outer?: BackendFull): Destination {
    const key = outer === undefined ? keyOf(ref) : `${keyOf(ref)} ${JSON.stringify(outer)}`
    const known = this.#known.get(key)
    if (known !== undefined) {
      known.isStale = false
      return known.destination
    }
    const destination = new Destination(nameOf(ref), this.#configOf(ref, outer), this.#createPool, { nowMs: this.#nowMs })
    this.#known.set(key, { ref, outer, destination, isStale: false })
    return destination
  }

  update(snapshot: ConfigSnapshot, policies: PolicyIndex): void {
    const arePoliciesNew = policies !== this.#policies
    this.#policies = policies
    this.#snapshot = snapshot
    for (const known of this.#known.values()) {
      if (arePoliciesNew && known.outer !== undefined) known.isStale = true
      known.destination.update(this.#configOf(known.ref, known.outer))
    }
  }

  /** Closes and forgets destinations that no reference names any more. */
  retain(refs: Iterable<BackendRef>): void {
    const used = new Set<string>()
    for (const ref of refs) used.add(keyOf(ref))
    for (const [key, { ref, destination, isStale }] of this.#known) {
      if (used.has(keyOf(ref)) && !isStale) continue
      this.#known.delete(key)
      destination.close()
    }
  }

  close(): void {
    for (const { destination } of this.#known.values()) destination.close()
    this.#known.clear()
  }

  #configOf(ref: BackendRef, outer: BackendFull | undefined): DestinationConfig {
    if (ref.service !== undefined) return this.#serviceConfig(ref.service, ref.port, outer)
    if (ref.backend !== undefined) return this.#backendConfig(ref.backend, outer)
    if (ref.address !== undefined)
      return addressConfig(
        ref.address,
        upstreamSettings({ host: splitAddress(ref.address).host, port: undefined, inline: undefined, outer }, [], this.#secrets()),
      )
    return { ...noEndpoints, error: ref.invalid ?? 'BACKEND_NOT_FOUND' }
  }

  #serviceConfig(key: string, portNumber: number | undefined, outer: BackendFull | undefined): DestinationConfig {
    const service = this.#snapshot?.services.get(key)
    const port = service?.ports.find((candidate) => candidate.port === portNumber)
    if (service === undefined || port === undefined) return { ...noEndpoints, error: 'SERVICE_NOT_FOUND' }
    return {
      ...noEndpoints,
      endpoints: port.endpoints,
      appProtocol: port.appProtocol,
      hostname: service.hostname,
      settings: this.#settingsOf('Service', key, { host: service.hostname, port: portNumber, inline: undefined, outer }),
    }
  }

  #backendConfig(key: string, outer: BackendFull | undefined): DestinationConfig {
    const backend = this.#snapshot?.backends.get(key)
    if (backend === undefined) return { ...noEndpoints, error: 'BACKEND_NOT_FOUND' }
    const settingsFor = (host: string | undefined): UpstreamSettings =>
      this.#settingsOf('Backend', key, { host, port: undefined, inline: backend.policies, outer })
    if (backend.dynamicForwardProxy !== undefined) return { ...noEndpoints, isDynamic: true, settings: settingsFor(undefined) }
    if (backend.static === undefined) return { ...noEndpoints, error: 'BACKEND_NOT_FOUND' }
    const { host, port } = backend.static
    return addressConfig(`${host.includes(':') ? `[${host}]` : host}:${port}`, settingsFor(host))
  }

  #secrets(): ConfigSnapshot['secrets'] {
    return this.#snapshot?.secrets ?? new Map()
  }

  /** Policies of a Service port come by its number, or for all ports. */
  #settingsOf(kind: 'Service' | 'Backend', key: string, target: Target): UpstreamSettings {
    const [namespace = '', name = ''] = key.split('/')
    const whole = this.#policies.get(targetKey(kind, namespace, name)) ?? []
    const ofPort = target.port === undefined ? [] : (this.#policies.get(targetKey(kind, namespace, name, String(target.port))) ?? [])
    return upstreamSettings(target, [...ofPort, ...whole], this.#secrets())
  }
}

function nameOf(ref: BackendRef): string {
  if (ref.service !== undefined) return `${ref.service}:${ref.port ?? 0}`
  return ref.backend ?? ref.address ?? 'invalid'
}

/** `host:port`, IPv6 in brackets. */
function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

function addressConfig(address: string, settings: UpstreamSettings): DestinationConfig {
  const { host, port } = splitAddress(address)
  return {
    ...noEndpoints,
    endpoints: [{ address: host, port }],
    settings,
    // An IP address is not a name that a virtual host could go by: the client's Host stays (traffic.md §8.11).
    hostname: isIP(host) === 0 ? host : undefined,
    isHostRewritten: true,
  }
}
