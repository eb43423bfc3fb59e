import type { BackendFull, BackendRef } from '#gen/config/types.ts'
import { isIP } from 'node:net'
import { authorityOf } from '../../http/message.ts'
import type { EndpointState, EvictionEvent, SharedHealths } from '../upstream/balancer/balancer.ts'
import type { SharedHealthTable } from '../upstream/balancer/shared-health.ts'
import { dialing } from '../upstream/dial.ts'
import { Destination, type DestinationConfig, type Measured, type PoolFactory, type UpstreamSettings } from '../upstream/destination.ts'
import type { OpenConnections } from '../upstream/connections.ts'
import type { LoopMarks } from '../upstream/loop.ts'
import { findZone, placeEndpoints, type Place } from '../upstream/balancer/locality.ts'
import { targetKey, type PolicyIndex } from '../../config/merge.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import { HealthChecks } from './checks.ts'
import { guardIdentity } from './identity.ts'
import { addressConfig, addressKinds, compileDestination, noEndpoints, splitAddress, type DestinationKinds, type DestinationParts } from './kinds.ts'
import { upstreamSettings, type Target } from './upstream.ts'

/** Identity of a destination over config versions. */
function keyOf(ref: BackendRef): string {
  if (ref.service !== undefined) return `service ${ref.service} ${ref.port ?? 0}`
  if (ref.backend !== undefined) return `backend ${ref.backend}`
  if (ref.address !== undefined) return `address ${ref.address}`
  return `invalid ${ref.invalid ?? 'BACKEND_NOT_FOUND'}`
}

/** Receives evictions and returns of the endpoints of `destination`. */
export type OnEviction = (destination: string, event: EvictionEvent) => void

/** Dependencies of the destinations. */
export interface DestinationOptions {
  /** Monotonic clock of evictions; default `performance.now`. */
  readonly nowMs?: (() => number) | undefined
  readonly onEviction?: OnEviction | undefined
  /** The node that this process runs on, for Services that prefer near endpoints. */
  readonly nodeName?: string | undefined
  /** Ports of this process that clients of dynamicForwardProxy backends cannot choose; default: none. */
  readonly listens?: () => Iterable<number>
  /** Marks requests, to recognize those that return; default: none are marked. */
  readonly marks?: LoopMarks | undefined
  /** Counts connections; default: they are not limited. */
  readonly connections?: OpenConnections | undefined
  /** Health of endpoints in all workers; default: this thread handles all traffic. */
  readonly health?: SharedHealthTable | undefined
  /** Default: those that lead to an address. */
  readonly kinds?: DestinationKinds
}

/** A part of a backend: an LLM provider, an MCP target. */
export interface BackendPart {
  /** Key of the Backend message. */
  readonly backend: string
  /** Section name, by which policies target it. */
  readonly section: string
  readonly host: string
  readonly port: number
  /** Inline policies of the backend and of the part, merged. */
  readonly inline: BackendFull | undefined
  /** Policies of Gateway, listener, route and rule, merged; lowest precedence. */
  readonly outer: BackendFull | undefined
  /** TLS with the system's CAs unless a policy configures TLS. */
  readonly isTlsDefault: boolean
  /** HTTP/2 unless a policy sets the version. */
  readonly isGrpc?: boolean
}

interface Known {
  /** Reference in the route table that keeps it; undefined: it is kept until the policies change and it is not requested again. */
  readonly routeKey: string | undefined
  /** Its config under the current snapshot and policies. */
  readonly configure: () => DestinationConfig
  readonly destination: Destination
  /** Not yet requested since the last change of policies. */
  isStale: boolean
  /** A host that the owner of the process names. */
  readonly ownersHost?: string
  /** The kind of change that makes it stale. */
  readonly staleWith: 'nothing' | 'policies' | 'policies and backends'
}

/**
 * The destinations of all routes and policies. Routes hold them over config versions; `update` sets the new endpoints and
 * settings of each, so that a change of endpoints recompiles no route.
 */
export class Destinations {
  readonly #createPool: PoolFactory
  readonly #options: DestinationOptions
  readonly #known = new Map<string, Known>()
  readonly #checks: HealthChecks
  #snapshot: ConfigSnapshot | undefined
  #policies: PolicyIndex = new Map()
  /** Determined on first use in each version of the services. */
  #place: { readonly services: ConfigSnapshot['services'] | undefined; readonly own: Place } | undefined

  constructor(createPool: PoolFactory, options: DestinationOptions = {}) {
    this.#createPool = createPool
    this.#options = options
    this.#checks = new HealthChecks({ table: options.health, onChange: options.onEviction })
  }

  /** The destination of a route's reference with the policies `outer` of Gateway, listener, route and rule. Created on first use. */
  get(ref: BackendRef, outer?: BackendFull): Destination {
    const routeKey = keyOf(ref)
    const key = outer === undefined ? routeKey : `${routeKey} ${JSON.stringify(outer)}`
    return this.#getOrCreate(key, nameOf(ref), {
      routeKey,
      staleWith: outer === undefined ? 'nothing' : 'policies',
      configure: () => this.#configOf(ref, outer),
    })
  }

  /** The destination of a reference in a policy: an authorization server, a collector. Call it again after every change of policies. */
  forPolicy(ref: BackendRef): Destination {
    const key = `policy ${keyOf(ref)}`
    return this.#getOrCreate(key, nameOf(ref), { routeKey: undefined, staleWith: 'policies', configure: () => this.#configOf(ref, undefined) })
  }

  /** The destination of a part of a backend. Call it again after every update of the backend or of policies. */
  forPart(part: BackendPart): Destination {
    const { backend, section, host, port } = part
    const name = section === '' ? backend : `${backend}/${section}`
    return this.#getOrCreate(`part ${JSON.stringify(part)}`, name, {
      routeKey: undefined,
      staleWith: 'policies and backends',
      configure: () => {
        const settings = this.#settingsOf('Backend', backend, { host, port: undefined, inline: part.inline, outer: part.outer }, section)
        const isPlain = settings.tls === undefined && settings.broken === undefined
        const config = addressConfig(authorityOf(host, port), part.isTlsDefault && isPlain ? { ...settings, tls: systemTls(host) } : settings)
        return part.isGrpc === true ? { ...config, appProtocol: 'GRPC' } : config
      },
    })
  }

  /** The destination of a Service port that is a part of a backend. Call it again after every update of the backend or of policies. `isGrpc` as in `BackendPart`. */
  forServicePart(service: string, port: number, outer: BackendFull | undefined, isGrpc = false): Destination {
    const key = `part ${JSON.stringify({ service, port, outer, isGrpc })}`
    return this.#getOrCreate(key, `${service}:${port}`, {
      routeKey: undefined,
      staleWith: 'policies and backends',
      configure: () => {
        const config = this.#serviceConfig(service, port, outer)
        return isGrpc ? { ...config, appProtocol: 'GRPC' } : config
      },
    })
  }

  /**
   * The destination of a host in a URL; TLS uses the system's CAs. Only the policies `own` apply. Call it again as for a part. `isOwners`: the owner of
   * the process names the host, which may then receive the credentials of the process.
   */
  forHost(host: string, port: number, isTls: boolean, own: BackendFull = {}, isOwners = false): Destination {
    const address = authorityOf(host, port)
    return this.#getOrCreate(`host ${address} ${isTls} ${isOwners} ${JSON.stringify(own)}`, address, {
      routeKey: undefined,
      staleWith: 'policies and backends',
      ...(isOwners && { ownersHost: host }),
      configure: () => {
        const settings = upstreamSettings({ host, port, inline: own, outer: undefined }, [], this.#secrets(), this.#find)
        return addressConfig(address, isTls && settings.tls === undefined && settings.broken === undefined ? { ...settings, tls: systemTls(host) } : settings)
      },
    })
  }

  /** Another port of the host of a policy's reference, with the same tunnel and, if `isTls`, the same TLS settings. */
  forOtherPort(ref: BackendRef, host: string, port: number, isTls: boolean): Destination {
    const address = authorityOf(host, port)
    return this.#getOrCreate(`port ${address} ${isTls} ${keyOf(ref)}`, address, {
      routeKey: undefined,
      staleWith: 'policies and backends',
      configure: () => {
        const { settings } = this.#configOf(ref, undefined)
        return addressConfig(address, { ...settings, tls: isTls ? (settings.tls ?? systemTls(host)) : undefined })
      },
    })
  }

  /** The destinations in use with the state of their endpoints. One backend may have several, with different policies. */
  *list(): Generator<{ readonly name: string; readonly endpoints: readonly EndpointState[]; readonly measured: Measured | undefined }> {
    for (const { destination } of this.#known.values()) yield { name: destination.name, endpoints: destination.endpoints, measured: destination.measured }
  }

  update(snapshot: ConfigSnapshot, policies: PolicyIndex): void {
    const arePoliciesNew = policies !== this.#policies
    const areBackendsNew = snapshot.backends !== this.#snapshot?.backends
    this.#policies = policies
    this.#snapshot = snapshot
    for (const known of this.#known.values())
      if ((arePoliciesNew && known.staleWith !== 'nothing') || (areBackendsNew && known.staleWith === 'policies and backends')) known.isStale = true
    // Configuring one may request others: the proxy of a tunnel, the picker of a pool.
    for (const { destination, configure } of this.#known.values()) {
      destination.update(configure())
      this.#checks.watch(destination)
    }
  }

  /** Closes and removes destinations without a reference. */
  retain(refs: Iterable<BackendRef>): void {
    const used = new Set<string>()
    for (const ref of refs) used.add(keyOf(ref))
    for (const [key, { routeKey, destination, isStale }] of this.#known) {
      if ((routeKey === undefined || used.has(routeKey)) && !isStale) continue
      this.#known.delete(key)
      this.#checks.forget(destination)
      destination.close()
    }
  }

  close(): void {
    for (const { destination } of this.#known.values()) {
      this.#checks.forget(destination)
      destination.close()
    }
    this.#known.clear()
  }

  #getOrCreate(key: string, name: string, how: Pick<Known, 'routeKey' | 'configure' | 'staleWith' | 'ownersHost'>): Destination {
    const known = this.#known.get(key)
    if (known !== undefined) {
      known.isStale = false
      return known.destination
    }
    const { nowMs, onEviction, health, marks, connections } = this.#options
    const permitted = (): readonly string[] | undefined =>
      dialing.identityHosts && [...dialing.identityHosts, ...(how.ownersHost === undefined ? [] : [how.ownersHost])]
    const configure = (): DestinationConfig => guardIdentity(how.configure(), permitted())
    const destination = new Destination(name, configure(), this.#createPool, {
      nowMs,
      marks,
      connections,
      shared: health && sharedHealths(health, key),
      onEviction: onEviction && ((event: EvictionEvent) => onEviction(name, event)),
    })
    this.#known.set(key, { ...how, configure, destination, isStale: false })
    this.#checks.watch(destination)
    return destination
  }

  #configOf(ref: BackendRef, outer: BackendFull | undefined): DestinationConfig {
    if (ref.service !== undefined) return this.#serviceConfig(ref.service, ref.port, outer)
    if (ref.backend !== undefined) return this.#backendConfig(ref.backend, outer)
    if (ref.address !== undefined)
      return addressConfig(
        ref.address,
        upstreamSettings({ host: splitAddress(ref.address).host, port: undefined, inline: undefined, outer }, [], this.#secrets(), this.#find),
      )
    return { ...noEndpoints, error: ref.invalid ?? 'BACKEND_NOT_FOUND' }
  }

  #serviceConfig(key: string, portNumber: number | undefined, outer: BackendFull | undefined): DestinationConfig {
    const service = this.#snapshot?.services.get(key)
    const port = service?.ports.find((candidate) => candidate.port === portNumber)
    if (service === undefined || port === undefined) return { ...noEndpoints, type: 'service', error: 'SERVICE_NOT_FOUND' }
    const settingsFor = (host: string | undefined): UpstreamSettings => this.#settingsOf('Service', key, { host, port: portNumber, inline: undefined, outer })
    const settings = settingsFor(service.hostname)
    const parts = this.#partsOf((host) => (host === service.hostname ? settings : settingsFor(host)))
    return {
      ...noEndpoints,
      endpoints: placeEndpoints(port.endpoints, service, this.#ownPlace()),
      type: 'service',
      appProtocol: port.appProtocol,
      hostname: service.hostname,
      hooks: this.#options.kinds?.ofService?.(service, port, parts),
      settings,
    }
  }

  /** Endpoint pickers use self-signed certificates, which cannot be verified unless a policy on their Service configures TLS (operator.md §4.9). */
  readonly #unverified = (ref: BackendRef, isPlaintext: boolean): Destination =>
    this.#getOrCreate(`picker ${keyOf(ref)} ${isPlaintext}`, nameOf(ref), {
      routeKey: undefined,
      staleWith: 'policies',
      configure: () => {
        const config = this.#configOf(ref, undefined)
        const { tls, broken } = config.settings
        if (isPlaintext || tls !== undefined || broken !== undefined) return config
        const unverified = { ...systemTls(config.hostname ?? ''), verify: 'none' as const }
        return { ...config, settings: { ...config.settings, tls: unverified } }
      },
    })

  #backendConfig(key: string, outer: BackendFull | undefined): DestinationConfig {
    const backend = this.#snapshot?.backends.get(key)
    if (backend === undefined) return { ...noEndpoints, error: 'BACKEND_NOT_FOUND' }
    const settingsFor = (host: string | undefined): UpstreamSettings =>
      this.#settingsOf('Backend', key, { host, port: undefined, inline: backend.policies, outer })
    return compileDestination(backend, this.#options.kinds ?? { backends: addressKinds }, this.#partsOf(settingsFor))
  }

  #partsOf(settingsFor: DestinationParts['settingsFor']): DestinationParts {
    return {
      settingsFor,
      listens: () => this.#options.listens?.() ?? [],
      secret: (key, name) => this.#secrets().get(key)?.data?.[name],
      unverified: this.#unverified,
    }
  }

  /** The zone of a node does not change: it is cached once known. */
  #ownPlace(): Place {
    const services = this.#snapshot?.services
    if (this.#place === undefined || (this.#place.own.zone === undefined && this.#place.services !== services)) {
      const { nodeName: node } = this.#options
      this.#place = { services, own: { node, zone: node === undefined ? undefined : findZone(services?.values() ?? [], node) } }
    }
    return this.#place.own
  }

  readonly #find = (ref: BackendRef): Destination => this.forPolicy(ref)

  #secrets(): ConfigSnapshot['secrets'] {
    return this.#snapshot?.secrets ?? new Map()
  }

  /** Settings by policies, which target a Service port by its number or all ports, and a part of a backend by its name. */
  #settingsOf(kind: 'Service' | 'Backend', key: string, target: Target, section = target.port === undefined ? '' : String(target.port)): UpstreamSettings {
    const [namespace = '', name = ''] = key.split('/')
    const whole = this.#policies.get(targetKey(kind, namespace, name)) ?? []
    const ofSection = section === '' ? [] : (this.#policies.get(targetKey(kind, namespace, name, section)) ?? [])
    return upstreamSettings(target, [...ofSection, ...whole], this.#secrets(), this.#find)
  }
}

/** The key of a destination is the same in all workers. */
function sharedHealths(table: SharedHealthTable, key: string): SharedHealths {
  return {
    get epoch() {
      return table.epoch
    },
    open: (label) => table.open(`${key} ${label}`),
    find: (label) => table.find(`${key} ${label}`),
  }
}

function nameOf(ref: BackendRef): string {
  if (ref.service !== undefined) return `${ref.service}:${ref.port ?? 0}`
  return ref.backend ?? ref.address ?? 'invalid'
}

function systemTls(host: string): NonNullable<UpstreamSettings['tls']> {
  const servername = isIP(host) === 0 ? host : undefined
  return { servername, ca: undefined, cert: undefined, key: undefined, subjectAltNames: undefined, verify: 'full', alpn: undefined }
}
