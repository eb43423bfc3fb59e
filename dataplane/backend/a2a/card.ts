import { isJsonObject as isRecord, type JsonObject } from '#api/json/index.ts'
import type { PathMatch } from '#gen/config/types.ts'

/** Ends of the paths of agent cards: A2A 0.3 and later, and before. */
const WELL_KNOWN = /\/\.well-known\/agent(?:-card)?\.json$/
/** Ends of the paths of the card for authenticated clients, HTTP+JSON: A2A 1.0 and 0.3. */
const EXTENDED = /(?:\/v1\/card|\/extendedAgentCard)$/

/** Where the response to a GET request can be a card. */
export interface CardPath {
  /** End of the path that names the card, such as `/.well-known/agent-card.json`. */
  readonly suffix: string
  /** The response must be a card. False: other resources of the agent can have the path, so that the content decides. */
  readonly isCertain: boolean
}

/**
 * Whether the path, as the client sent it, is that of a card. Paths of extended cards are common words: it is certain only directly below the prefix
 * of the route.
 */
export function cardPathOf(path: string, match: PathMatch | undefined): CardPath | undefined {
  const suffix = (WELL_KNOWN.exec(path) ?? EXTENDED.exec(path))?.[0]
  if (suffix === undefined) return undefined
  const prefix = match?.type === 'PathPrefix' ? match.value.replace(/\/+$/, '') : ''
  return { suffix, isCertain: WELL_KNOWN.test(suffix) || path === `${prefix}${suffix}` }
}

/** Where clients reach the agent. */
export interface AgentPlace {
  /** Scheme and authority as the client used them: `https://gateway.example`. */
  readonly origin: string
  /** Prefix of paths for clients, without a trailing slash, empty for the root. */
  readonly base: string
  /** The prefix that the agent receives instead of it. */
  readonly upstreamBase: string
}

/** A card cannot be rewritten. */
export class CardError extends Error {
  override readonly name = 'CardError'
}

/** Whether JSON of unknown kind is an agent card, also a malformed one. */
export const resemblesCard = (value: unknown): boolean =>
  isRecord(value) && ('supportedInterfaces' in value || ('url' in value && ('skills' in value || 'capabilities' in value || 'protocolVersion' in value)))

/**
 * Changes the URLs of an agent card to those of the gateway: `url` and `additionalInterfaces` of A2A 0.3, `supportedInterfaces` of 1.0. Signatures
 * of a card that changes are removed, because they do not match. Returns the card itself if nothing changes. Throws a CardError if the card is
 * malformed.
 */
export function rewriteCard(card: unknown, place: AgentPlace): JsonObject {
  if (!isRecord(card)) throw new CardError('it is not an object')
  const { signatures, ...rest } = card
  const changed: Record<string, unknown> = rest
  let isChanged = false
  const set = (name: string, value: unknown): void => {
    isChanged ||= value !== card[name]
    changed[name] = value
  }
  if (signatures !== undefined && signatures !== null) listOf(signatures, 'signatures')
  const { url, supportedInterfaces, additionalInterfaces } = card
  // A2A 1.0, section 5.7: required lists have at least one element; an empty list says no more than none.
  const interfaces = Array.isArray(supportedInterfaces) && supportedInterfaces.length === 0 ? undefined : supportedInterfaces
  if ((url ?? interfaces ?? undefined) === undefined) throw new CardError('it has neither url nor an entry of supportedInterfaces')
  if (url !== undefined && url !== null) set('url', rewriteUrl(textOf(url, 'url'), place))
  for (const [name, value] of Object.entries({ supportedInterfaces, additionalInterfaces }))
    if (value !== undefined && value !== null) set(name, rewriteInterfaces(value, name, place))
  return isChanged ? changed : card
}

/** The card with the skills whose id is admitted. Returns the card itself if that are all. Throws a CardError if they are no list of objects. */
export function withSkills(card: JsonObject, isAdmitted: (id: string) => boolean): JsonObject {
  const skills = card['skills']
  if (skills === undefined || skills === null) return card
  const all = listOf(skills, 'skills')
  const kept = all.filter(({ id }) => typeof id === 'string' && isAdmitted(id))
  if (kept.length === all.length) return card
  const { signatures: _, ...rest } = card
  return { ...rest, skills: kept }
}

function listOf(value: unknown, name: string): readonly JsonObject[] {
  if (!Array.isArray(value)) throw new CardError(`${name} is not a list`)
  return value.map((one: unknown, index) => {
    if (!isRecord(one)) throw new CardError(`${name}[${index}] is not an object`)
    return one
  })
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new CardError(`${name} is not a string`)
  return value
}

/** The list itself if no URL changes. */
function rewriteInterfaces(value: unknown, name: string, place: AgentPlace): unknown {
  const list = listOf(value, name)
  const changed = list.map((one, index) => {
    const url = rewriteUrl(textOf(one['url'], `${name}[${index}].url`), place)
    return url === one['url'] ? one : { ...one, url }
  })
  return changed.every((one, index) => one === list[index]) ? value : changed
}

/**
 * The path below the base of the agent stays; that of another base is unchanged. An address without a scheme, as of gRPC, becomes that of the gateway.
 * A URL of the gateway stays as it is.
 */
function rewriteUrl(text: string, { origin, base, upstreamBase }: AgentPlace): string {
  const authority = origin.replace(/^[a-z]+:\/\//, '')
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (url === null) return /^[^/]*:\/\//.test(text) || text.startsWith('/') ? `${origin}${base}` : authority
  if (url.origin === URL.parse(origin)?.origin && isBelow(url.pathname, base) && url.username === '' && url.password === '') return text
  const path = url.pathname === '/' ? '' : url.pathname
  return `${origin}${isBelow(path, upstreamBase) ? `${base}${path.slice(upstreamBase.length)}` : path}${url.search}`
}

const isBelow = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`)
