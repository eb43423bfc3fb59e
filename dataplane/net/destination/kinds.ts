import { isIP } from 'node:net'
import type { Backend, BackendRef, Service, ServicePort } from '#gen/config/types.ts'
import { authorityOf, originAuthority, withoutBrackets } from '../../http/message.ts'
import type { BackendType } from '../../request/exchange/exchange.ts'
import { dialing } from '../upstream/dial.ts'
import { defaultSettings, type Destination, type DestinationConfig, type UpstreamSettings } from '../upstream/destination.ts'
import type { DestinationHooks } from '../upstream/hooks.ts'
import { compileReach } from './reach.ts'

/** What the compilation of a destination may use. */
export interface DestinationParts {
  /** Settings by the policies of the backend; `host` names it in TLS. */
  readonly settingsFor: (host: string | undefined) => UpstreamSettings
  /** Ports of this process. */
  readonly listens: () => Iterable<number>
  /** A value of a Secret; undefined: it does not resolve. */
  readonly secret: (key: string, name: string) => string | undefined
  /** The destination of a service whose certificate cannot be verified, unless a policy on it configures TLS. */
  readonly unverified: (ref: BackendRef, isPlaintext: boolean) => Destination
}

/** How a kind of backend becomes a destination. `Part` is its part of the Backend message. */
export interface DestinationKind<Part> {
  /** Value of `backend.type` in expressions, unless the destination sets it. Default: unknown. */
  readonly type?: BackendType
  /** Default: it has no destination, and a service handles its requests. */
  destination?(part: Part, parts: DestinationParts): DestinationConfig
  /** Default: none. */
  hooks?(part: Part, parts: DestinationParts): DestinationHooks
}

/** The kinds by the name of their field in the Backend message, and what Services add. */
export interface DestinationKinds {
  readonly backends: Readonly<Record<string, DestinationKind<unknown>>>
  readonly ofService?: (service: Service, port: ServicePort, parts: DestinationParts) => DestinationHooks | undefined
}

/** Kinds that need nothing but an address: all that calls of policies can use. */
export const addressKinds = {
  static: { destination: ({ host, port }, { settingsFor }) => addressConfig(authorityOf(host, port), settingsFor(host)) },
  dynamicForwardProxy: {
    destination: (part, { settingsFor, listens }) => {
      const guard = compileReach(part, { ...dialing.rules, ports: listens })
      return { ...noEndpoints, type: 'dynamic', isDynamic: true, guard, settings: settingsFor(undefined) }
    },
  },
  a2a: { destination: ({ host, port }, { settingsFor }) => ({ ...addressConfig(authorityOf(host, port), settingsFor(host)), appProtocol: 'A2A' }) },
} as const satisfies { readonly [K in keyof Backend]?: DestinationKind<NonNullable<Backend[K]>> }

export const noEndpoints = {
  endpoints: [],
  appProtocol: undefined,
  settings: defaultSettings,
  hostname: undefined,
  isHostRewritten: false,
  isDynamic: false,
  error: undefined,
} as const

/** What a table by the names of kinds has for the kind of a backend. */
export function findKind<T>(backend: Backend, table: Readonly<Record<string, T>>): readonly [name: keyof Backend, found: T] | undefined {
  return Object.entries(table).find(([field]) => backend[field as keyof Backend] !== undefined) as [keyof Backend, T] | undefined
}

export function compileDestination(backend: Backend, { backends }: DestinationKinds, parts: DestinationParts): DestinationConfig {
  const [name, kind] = findKind(backend, backends) ?? []
  const part = name && backend[name]
  if (kind?.destination === undefined) return { ...noEndpoints, type: kind?.type ?? 'unknown', error: 'BACKEND_NOT_FOUND' }
  return { ...kind.destination(part, parts), hooks: kind.hooks?.(part, parts) }
}

/** `host:port`, IPv6 in brackets. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: withoutBrackets(address.slice(0, colon)), port: Number(address.slice(colon + 1)) }
}

export function addressConfig(address: string, settings: UpstreamSettings): DestinationConfig {
  const { host, port } = splitAddress(address)
  return {
    ...noEndpoints,
    type: 'static',
    endpoints: [{ address: host, port }],
    settings,
    // An IP address is no virtual host name: keep the client's Host (traffic.md §8.11).
    ...(isIP(host) === 0 && { hostname: host, authority: originAuthority(host, port, settings.tls !== undefined) }),
    isHostRewritten: true,
  }
}
