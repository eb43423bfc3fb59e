import { isObject, type JsonObject } from './json.ts'

/** How the names that clients see refer to targets (mcp.md §4). */
export interface Naming {
  /** Tools and prompts are `<target>_<name>`. */
  readonly prefixesNames: boolean
  /** Resources are `<target>+<uri>`. */
  readonly prefixesUris: boolean
  /** Names are unchanged, and the target that offers one is looked up. */
  readonly looksUp: boolean
}

const NAME_MARK = '_'
const URI_MARK = '+'
/** RFC 3986 §3.1. A template's scheme is literal in practice. */
const SCHEME = /^[a-zA-Z][a-zA-Z0-9+.-]*:/

/** An item and the target that offers it. */
export interface Addressed {
  readonly target: string
  /** Name or URI as the target knows it. */
  readonly name: string
}

/** The name of a tool or prompt as clients see it. */
export const prefixName = (target: string, name: string): string => `${target}${NAME_MARK}${name}`

/** URIs without a scheme are unchanged: a prefix would be ambiguous with them. */
export const prefixUri = (target: string, uri: string): string => (SCHEME.test(uri) ? `${target}${URI_MARK}${uri}` : uri)

/** Target names contain no `_`, so the first one ends the target's name. */
export const splitName = (name: string): Addressed | undefined => splitAt(name, NAME_MARK)
/** URIs without a target's prefix return undefined or a target that does not exist. */
export const splitUri = (uri: string): Addressed | undefined => splitAt(uri, URI_MARK)

function splitAt(text: string, mark: string): Addressed | undefined {
  const at = text.indexOf(mark)
  return at <= 0 ? undefined : { target: text.slice(0, at), name: text.slice(at + 1) }
}

/** Prefixes resource links and embedded resources in the content of a tool's or prompt's result, so that clients can read them. */
export function prefixContent(target: string, content: unknown): unknown {
  if (Array.isArray(content)) return content.map((item) => prefixContent(target, item))
  if (!isObject(content)) return content
  if (content['type'] === 'resource_link') return withPrefixedUri(target, content, 'uri')
  if (content['type'] === 'resource' && isObject(content['resource'])) return { ...content, resource: withPrefixedUri(target, content['resource'], 'uri') }
  return content
}

/** The object with the URI in `member` prefixed; unchanged if there is none. */
export function withPrefixedUri(target: string, item: JsonObject, member: 'uri' | 'uriTemplate'): JsonObject {
  const uri = item[member]
  return typeof uri === 'string' ? { ...item, [member]: prefixUri(target, uri) } : item
}

/** A member name without case, as parsers that ignore case compare it. Maps U+017F and U+212A to `s` and `k` too. */
export const fold = (name: string): string => name.toUpperCase().toLowerCase()
