import type { RouteRef, SessionPersistence as Config } from '#gen/config/types.ts'
import { defineSlot } from '../../request/exchange/slot.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { ResponseHead } from '../../http/message.ts'
import { seal, unseal, type SessionKeys } from '../../runtime/seal.ts'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import { cookieOf } from '../../net/upstream/balancer/hash.ts'
import type { Destination } from '../../net/upstream/destination.ts'

/** A backend of a rule. */
interface StickyBackend {
  readonly destination: Destination
  /** Set if the backend handles requests itself. */
  readonly service?: { readonly current: object | undefined } | undefined
}

/** What a token says: where the requests of its session go. */
interface Session {
  /** Name of the destination. */
  readonly backend: string
  /** `host:port`; empty if the backend selects endpoints itself. */
  readonly endpoint: string
}

/** The session that a request belongs to. */
const sessionOf = defineSlot<Session>('sessionPersistence', { isForked: false })

/** Longer tokens are not from this gateway: names of backends and endpoints are short. */
const MAX_TOKEN_CHARS = 2048

/**
 * The session persistence of one rule (traffic.md §7.1). The token of a session is encrypted, with the rule as its context: clients learn no
 * address, select no endpoint, and tokens of other rules are not valid.
 */
export class SessionPersistence {
  readonly #config: Config
  readonly #rule: string
  readonly #keys: SessionKeys
  readonly #epochMs: () => number

  constructor(config: Config, { kind, namespace, name, rule, ruleIndex }: RouteRef, keys: SessionKeys, epochMs: () => number) {
    this.#config = config
    this.#rule = `${kind}/${namespace}/${name}/${rule ?? ruleIndex}`
    this.#keys = keys
    this.#epochMs = epochMs
  }

  /** The backend of the request's session, also with weight 0; undefined: it has none that is valid. */
  backendOf<T extends StickyBackend>(exchange: Exchange, backends: readonly T[]): T | undefined {
    const { type, name } = this.#config
    const token = type === 'Header' ? exchange.request.headers.get(name) : cookieOf(exchange.request.headers, name)
    const session = token === undefined ? undefined : this.#read(token)
    const backend = session && backends.find(({ destination }) => destination.name === session.backend)
    if (backend !== undefined) sessionOf.set(exchange, session)
    return backend
  }

  /** The endpoint of the request's session; undefined if there is none, or if it is gone, evicted or `failed`. */
  endpointOf(exchange: Exchange, { destination }: StickyBackend, failed: EndpointState | undefined): EndpointState | undefined {
    const endpoint = sessionOf.get(exchange)?.endpoint
    const found = endpoint ? destination.availableAt(endpoint) : undefined
    return found === failed ? undefined : found
  }

  /** Adds the token to the response, if the client does not have it. */
  finish(exchange: Exchange, { destination, service }: StickyBackend, response: ResponseHead): void {
    const isOfEndpoint = service?.current === undefined && destination.hooks?.choose === undefined && !destination.isDynamic
    const session: Session = { backend: destination.name, endpoint: isOfEndpoint ? (exchange.endpoint ?? '') : '' }
    const known = sessionOf.get(exchange)
    if (known?.backend === session.backend && known.endpoint === session.endpoint) return
    const { type, name } = this.#config
    const token = seal(this.#keys, this.#rule, [Math.floor(this.#epochMs() / 1000), session.backend, session.endpoint].join(' '))
    if (type === 'Header') response.headers.set(name, token)
    else response.headers.append('set-cookie', `${name}=${token}${this.#attributesFor(exchange)}`)
  }

  #attributesFor({ connection }: Exchange): string {
    const { path = '/', isPermanent = false, absoluteTimeoutMs } = this.#config
    const age = isPermanent && absoluteTimeoutMs !== undefined ? `; Max-Age=${Math.ceil(absoluteTimeoutMs / 1000)}` : ''
    return `; Path=${path}${age}; HttpOnly; SameSite=Strict${connection.tls === undefined ? '' : '; Secure'}`
  }

  #read(token: string): Session | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined
    const content = unseal(this.#keys, this.#rule, token)
    if (content === undefined) return undefined
    const [since, backend = '', endpoint = ''] = content.toString().split(' ')
    const { absoluteTimeoutMs = Infinity } = this.#config
    return this.#epochMs() < Number(since) * 1000 + absoluteTimeoutMs ? { backend, endpoint } : undefined
  }
}
