import type { MCPAuthentication } from '#gen/config/types.ts'
import { withoutBrackets } from '../../../http/message.ts'
import { fetchDestination, type Callout, type CalloutResponse } from '../../../net/callout/http.ts'
import type { Destinations } from '../../../net/destination/destinations.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { Destination } from '../../../net/upstream/destination.ts'

/** Metadata of an authorization server (RFC 8414), unchecked as the identity provider sent it. */
export type ServerMetadata = Readonly<Record<string, unknown>>

const TIMEOUT_MS = 10_000
const LIMIT_BYTES = 1024 * 1024
/** The document rarely changes: about once per upgrade of the provider. */
const CACHE_MS = 60_000
/** Clients register once. Of one worker. */
const REGISTRATIONS_PER_MINUTE = 60

/** The identity provider that clients log in to. */
export class IdentityProvider {
  readonly #issuer: URL | undefined
  readonly #kind: MCPAuthentication['provider']
  readonly #keySet: MCPAuthentication['jwks']
  readonly #destinations: Pick<Destinations, 'forPolicy' | 'forHost' | 'forOtherPort'>
  readonly #nowMs: () => number
  #minute = 0
  #registrations = 0
  #cached: { readonly document: Promise<ServerMetadata>; readonly untilMs: number } | undefined

  constructor({ issuer, provider, jwks }: MCPAuthentication, destinations: Pick<Destinations, 'forPolicy' | 'forHost' | 'forOtherPort'>, nowMs: () => number) {
    this.#issuer = issuer === undefined ? undefined : (URL.parse(issuer) ?? undefined)
    this.#kind = provider
    this.#keySet = jwks
    this.#destinations = destinations
    this.#nowMs = nowMs
  }

  /** The provider's own metadata, cached for a minute. Rejects if it cannot be fetched; failures are not cached. */
  metadata(): Promise<ServerMetadata> {
    if (this.#cached !== undefined && this.#cached.untilMs > this.#nowMs()) return this.#cached.document
    const document = this.#fetchMetadata()
    this.#cached = { document, untilMs: this.#nowMs() + CACHE_MS }
    document.catch(() => (this.#cached = undefined))
    return document
  }

  /** Counts a registration. False: there were too many in this minute. */
  admitRegistration(): boolean {
    const minute = Math.floor(this.#nowMs() / 60_000)
    if (minute !== this.#minute) [this.#minute, this.#registrations] = [minute, 0]
    return this.#registrations++ < REGISTRATIONS_PER_MINUTE
  }

  /** Registers a client (RFC 7591) at the provider's registration endpoint, default Keycloak's. Rejects if the provider cannot be reached. */
  async register(body: Buffer, exchange: Exchange): Promise<CalloutResponse> {
    const issuer = this.#requireIssuer()
    const metadata = await this.metadata().catch(() => undefined)
    const isAdvertised = typeof metadata?.['registration_endpoint'] === 'string'
    const url = isAdvertised ? this.endpoint(metadata, 'registration_endpoint') : new URL(`${trimmedPath(issuer)}/clients-registrations/openid-connect`, issuer)
    return this.#call(url, { method: 'POST', body }, exchange)
  }

  /**
   * The URL of an endpoint in the provider's metadata. Throws unless it is at the origin of the issuer, or at the backend that the keys come from: whoever
   * can change the document must not choose where the gateway sends requests or users to.
   */
  endpoint(metadata: ServerMetadata, name: 'registration_endpoint' | 'authorization_endpoint'): URL {
    const issuer = this.#requireIssuer()
    const value = metadata[name]
    const url = typeof value === 'string' ? URL.parse(value) : null
    if (url === null) throw new Error(`the metadata of the identity provider has no URL ${name}`)
    if (url.origin !== issuer.origin && !this.#isAtKeySet(url, issuer))
      throw new Error(`${name} of the identity provider is at ${url.origin}: only endpoints at the origin of the issuer, ${issuer.origin}, are used`)
    return url
  }

  #isAtKeySet({ hostname, port, protocol }: URL, issuer: URL): boolean {
    const { from } = this.#keySet
    if (from === undefined || (protocol !== 'https:' && protocol !== issuer.protocol)) return false
    const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
    return this.#destinations.forPolicy(from).isAt(withoutBrackets(hostname), number)
  }

  async #fetchMetadata(): Promise<ServerMetadata> {
    const issuer = this.#requireIssuer()
    const path = trimmedPath(issuer)
    const target = this.#kind === 'IdpKind2' ? `${path}/.well-known/openid-configuration` : `/.well-known/oauth-authorization-server${path}`
    const url = new URL(target, issuer)
    const { status, body } = await this.#call(url, { method: 'GET' })
    if (status !== 200) throw new Error(`${url.href} answered ${status}`)
    const document: unknown = JSON.parse(body.toString())
    if (typeof document !== 'object' || document === null || Array.isArray(document)) throw new Error(`${url.href} answered no JSON object`)
    return document as ServerMetadata
  }

  #call(url: URL, { method, body }: Pick<Callout, 'method' | 'body'>, exchange?: Exchange): Promise<CalloutResponse> {
    const headers = new HeaderList(['accept', 'application/json', ...(body === undefined ? [] : ['content-type', 'application/json'])])
    return fetchDestination(
      this.#destinationOf(url),
      { method, target: `${url.pathname}${url.search}`, authority: url.host, headers, body },
      { timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES, exchange },
    )
  }

  /**
   * The backend that the keys come from if the host is the same: its policies apply, also if the keys are on another port.
   * Otherwise the host of the URL, verified with the system's CAs.
   */
  #destinationOf({ hostname, port: urlPort, protocol }: URL): Destination {
    const { from } = this.#keySet
    const host = withoutBrackets(hostname)
    const isTls = protocol === 'https:'
    const port = urlPort === '' ? (isTls ? 443 : 80) : Number(urlPort)
    const known = from === undefined ? undefined : this.#destinations.forPolicy(from)
    if (from === undefined || known?.isAt(host) !== true) return this.#destinations.forHost(host, port, isTls)
    // The port of a Service is known from its reference only.
    return from.backend === undefined || known.isAt(host, port) ? known : this.#destinations.forOtherPort(from, host, port, isTls)
  }

  #requireIssuer(): URL {
    if (this.#issuer === undefined) throw new Error('mcp.authentication.issuer is not set or no URL: the metadata of the identity provider cannot be found')
    return this.#issuer
  }
}

const trimmedPath = ({ pathname }: URL): string => pathname.replace(/\/+$/, '')
