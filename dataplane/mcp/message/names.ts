import { isObject, type JsonObject } from './json.ts'

/** How names of targets show in what clients see (mcp.md §4). */
export interface Naming {
  /** Tools and prompts are `<target>_<name>`. */
  readonly prefixesNames: boolean
  /** Resources are `<target>+<uri>`. */
  readonly prefixesUris: boolean
  /** Names are those of the targets; who offers one is looked up. */
  readonly looksUp: boolean
}

const NAME_MARK = '_'
const URI_MARK = '+'
/** RFC 3986 §3.1. A template's scheme is literal in practice. */
const SCHEME = /^[a-zA-Z][a-zA-Z0-9+.-]*:/

export interface Addressed {
  readonly target: string
  /** Name or URI as the target knows it. */
  readonly name: string
}

export const prefixName = (target: string, name: string): string => `${target}${NAME_MARK}${name}`

/** URIs without a scheme stay: they could not be told from names of targets. */
export const prefixUri = (target: string, uri: string): string => (SCHEME.test(uri) ? `${target}${URI_MARK}${uri}` : uri)

/** Target names hold no `_`: the first one ends it. */
export const splitName = (name: string): Addressed | undefined => splitAt(name, NAME_MARK)
export const splitUri = (uri: string): Addressed | undefined => splitAt(uri, URI_MARK)

function splitAt(text: string, mark: string): Addressed | undefined {
  const at = text.indexOf(mark)
  return at <= 0 ? undefined : { target: text.slice(0, at), name: text.slice(at + 1) }
}

/** Content of a tool's or prompt's result: links to resources, and embedded ones, get their prefix so that clients can read them back. */
export function prefixContent(target: string, content: unknown): unknown {
  if (Array.isArray(content)) return content.map((item) => prefixContent(target, item))
  if (!isObject(content)) return content
  if (content['type'] === 'resource_link') return withPrefixedUri(target, content, 'uri')
  if (content['type'] === 'resource' && isObject(content['resource'])) return { ...content, resource: withPrefixedUri(target, content['resource'], 'uri') }
  return content
}

/** The object with the URI of that member prefixed; as it is when there is none. */
export function withPrefixedUri(target: string, item: JsonObject, member: 'uri' | 'uriTemplate'): JsonObject {
  const uri = item[member]
  return typeof uri === 'string' ? { ...item, [member]: prefixUri(target, uri) } : item
}
