import { isRecord } from './json.ts'

/** Suffixes of the paths of agent cards: A2A 0.3 and later, and before. */
const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const
/** Paths of the card for authenticated clients, HTTP+JSON: A2A 1.0 and 0.3. */
const EXTENDED = ['/extendedAgentCard', '/v1/card'] as const

/** The base path of the agent, if the path is that of its card: `/agents/a` for `/agents/a/.well-known/agent-card.json`, empty for the root. */
export function agentBaseOf(path: string): string | undefined {
  const suffix = [...WELL_KNOWN, ...EXTENDED].find((end) => path.endsWith(end))
  return suffix === undefined ? undefined : path.slice(0, -suffix.length)
}

/** Where clients reach the agent. */
export interface AgentPlace {
  /** Scheme and authority as the client used them: `https://gateway.example`. */
  readonly origin: string
  /** Base path of the agent for clients, without a trailing slash. */
  readonly base: string
  /** Base path that the agent itself received. */
  readonly upstreamBase: string
}

/** A card cannot be rewritten. */
export class CardError extends Error {
  override readonly name = 'CardError'
}

/**
 * Changes the URLs of an agent card to those of the gateway: `url` and `additionalInterfaces` of A2A 0.3, `supportedInterfaces` of 1.0. Signatures are removed:
 * they do not match the changed card. Throws a CardError if the card has no URL.
 */
export function rewriteCard(card: unknown, place: AgentPlace): Readonly<Record<string, unknown>> {
  if (!isRecord(card)) throw new CardError('the agent card is not an object')
  const { url, supportedInterfaces, additionalInterfaces, signatures: _, ...rest } = card
  if (typeof url !== 'string' && !Array.isArray(supportedInterfaces)) throw new CardError('the agent card has neither url nor supportedInterfaces')
  return {
    ...rest,
    ...(url !== undefined && { url: typeof url === 'string' ? rewriteUrl(url, place) : url }),
    ...(supportedInterfaces !== undefined && { supportedInterfaces: rewriteInterfaces(supportedInterfaces, place) }),
    ...(additionalInterfaces !== undefined && { additionalInterfaces: rewriteInterfaces(additionalInterfaces, place) }),
  }
}

const rewriteInterfaces = (interfaces: unknown, place: AgentPlace): unknown =>
  Array.isArray(interfaces)
    ? interfaces.map((one: unknown) => (isRecord(one) && typeof one['url'] === 'string' ? { ...one, url: rewriteUrl(one['url'], place) } : one))
    : interfaces

/** The path below the base of the agent stays; that of another base is unchanged. An address without a scheme, as of gRPC, becomes that of the gateway. */
function rewriteUrl(text: string, { origin, base, upstreamBase }: AgentPlace): string {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (url === null) return /^[^/]*:\/\//.test(text) || text.startsWith('/') ? `${origin}${base}` : origin.replace(/^[a-z]+:\/\//, '')
  const path = url.pathname === '/' ? '' : url.pathname
  const isBelow = path === upstreamBase || path.startsWith(`${upstreamBase}/`)
  return `${origin}${isBelow ? `${base}${path.slice(upstreamBase.length)}` : path}${url.search}`
}
