import type { MCPAuthentication } from '#gen/config/types.ts'
import { withoutBrackets } from '../../http/message.ts'
import { fetchDestination, type Callout, type CalloutAnswer } from '../../callout/http.ts'
import type { Destinations } from '../../destination/destinations.ts'
import { HeaderList } from '../../http/headers.ts'
import type { Destination } from '../../upstream/destination.ts'

/** Metadata of an authorization server (RFC 8414); members are the identity provider's. */
export type ServerMetadata = Readonly<Record<string, unknown>>

const TIMEOUT_MS = 10_000
const LIMIT_BYTES = 1024 * 1024
/** The document changes about as often as the provider is upgraded. */
const CACHE_MS = 60_000

/** The identity provider that clients log in at. */
export class IdentityProvider {
  readonly #issuer: URL | undefined
  readonly #kind: MCPAuthentication['provider']
  readonly #keySet: MCPAuthentication['jwks']
  readonly #destinations: Pick<Destinations, 'forPolicy' | 'forHost' | 'forOtherPort'>
  readonly #nowMs: () => number
  #cached: { readonly document: Promise<ServerMetadata>; readonly untilMs: number } | undefined

  constructor({ issuer, provider, jwks }: MCPAuthentication, destinations: Pick<Destinations, 'forPolicy' | 'forHost' | 'forOtherPort'>, nowMs: () => number) {
    this.#issuer = issuer === undefined ? undefined : (URL.parse(issuer) ?? undefined)
    this.#kind = provider
    this.#keySet = jwks
    this.#destinations = destinations
    this.#nowMs = nowMs
  }

  /** The provider's own metadata. Rejects when it cannot be had. Kept for a minute; a failure is not. */
  metadata(): Promise<ServerMetadata> {
    if (this.#cached !== undefined && this.#cached.untilMs > this.#nowMs()) return this.#cached.document
    const document = this.#fetchMetadata()
    this.#cached = { document, untilMs: this.#nowMs() + CACHE_MS }
    document.catch(() => (this.#cached = undefined))
    return document
  }

  /** Registers a client (RFC 7591): where the provider says, else where Keycloak does it. Rejects when the provider cannot be reached. */
  async register(body: Buffer): Promise<CalloutAnswer> {
    const issuer = this.#requireIssuer()
    const advertised = await this.metadata().then(
      ({ registration_endpoint: endpoint }) => (typeof endpoint === 'string' ? URL.parse(endpoint) : null),
      () => null,
    )
    const url = advertised ?? new URL(`${trimmedPath(issuer)}/clients-registrations/openid-connect`, issuer)
    return this.#call(url, { method: 'POST', body })
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

  #call(url: URL, { method, body }: Pick<Callout, 'method' | 'body'>): Promise<CalloutAnswer> {
    const headers = new HeaderList(['accept', 'application/json', ...(body === undefined ? [] : ['content-type', 'application/json'])])
    return fetchDestination(
      this.#destinationOf(url),
      { method, target: `${url.pathname}${url.search}`, authority: url.host, headers, body },
      { timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES },
    )
  }

  /**
   * The backend that the keys come from, when it is the same host: its policies know how to reach it, also where the keys are behind
   * another port. Else the URL alone, checked with the system's CAs.
   */
  #destinationOf({ hostname, port: givenPort, protocol }: URL): Destination {
    const { from } = this.#keySet
    const host = withoutBrackets(hostname)
    const isTls = protocol === 'https:'
    const port = givenPort === '' ? (isTls ? 443 : 80) : Number(givenPort)
    const known = from === undefined ? undefined : this.#destinations.forPolicy(from)
    if (from === undefined || known?.isAt(host) !== true) return this.#destinations.forHost(host, port, isTls)
    // Which port of a Service is meant, only its reference says.
    return from.backend === undefined || known.isAt(host, port) ? known : this.#destinations.forOtherPort(from, host, port, isTls)
  }

  #requireIssuer(): URL {
    if (this.#issuer === undefined) throw new Error('mcp.authentication.issuer is not set or no URL: the metadata of the identity provider cannot be found')
    return this.#issuer
  }
}

const trimmedPath = ({ pathname }: URL): string => pathname.replace(/\/+$/, '')
