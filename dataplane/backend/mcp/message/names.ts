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
/** Scheme of the UI resources of MCP Apps. */
const UI = 'ui://'
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

/** URIs without a scheme are unchanged: a prefix would be ambiguous with them. Clients know UI resources (MCP Apps) by their scheme, which stays first. */
export function prefixUri(target: string, uri: string): string {
  if (uri.startsWith(UI)) return `${UI}${target}${URI_MARK}${uri.slice(UI.length)}`
  return SCHEME.test(uri) ? `${target}${URI_MARK}${uri}` : uri
}

/** Target names contain no `_`, so the first one ends the target's name. */
export const splitName = (name: string): Addressed | undefined => splitAt(name, NAME_MARK)
/** The target of a task, and its id there. */
export const splitTask = (id: string): Addressed | undefined => splitAt(id, URI_MARK)

/** A task whose id names the target, and the resources in its result. Unchanged if the object is no task. */
export function prefixTask(target: string, task: JsonObject): JsonObject {
  const { taskId, result } = task
  if (typeof taskId !== 'string') return task
  const prefixed = isObject(result) && result['content'] !== undefined ? { result: { ...result, content: prefixContent(target, result['content']) } } : {}
  return { ...task, taskId: `${target}${URI_MARK}${taskId}`, ...prefixed }
}

/** URIs without a target's prefix return undefined or a target that does not exist. */
export function splitUri(uri: string): Addressed | undefined {
  const isUi = uri.startsWith(UI)
  const found = splitAt(isUi ? uri.slice(UI.length) : uri, URI_MARK)
  if (found === undefined) return undefined
  // Each resource has one URI. A target's name contains no delimiter of an authority, so the mark is in the authority.
  if (!isUi) return found.name.startsWith(UI) ? undefined : found
  return { target: found.target, name: `${UI}${found.name}` }
}

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

/** Members of a tool's `_meta` that name its UI resource: in `ui`, and the older form. */
const UI_MEMBER = 'resourceUri'
const FLAT_UI_MEMBER = 'ui/resourceUri'

/**
 * A tool whose UI resource (MCP Apps) has the URI that `change` returns; if it returns undefined, the tool has no UI. Unchanged without one.
 */
export function withUiResource(tool: JsonObject, change: (uri: string) => string | undefined): JsonObject {
  const meta = tool['_meta']
  if (!isObject(meta)) return tool
  const { ui } = meta
  const changed: JsonObject = { ...meta }
  let isChanged = false
  const set = (object: JsonObject, member: string): void => {
    const uri = object[member]
    if (typeof uri !== 'string') return
    const shown = change(uri)
    isChanged ||= shown !== uri
    if (shown === undefined) delete object[member]
    else object[member] = shown
  }
  set(changed, FLAT_UI_MEMBER)
  if (isObject(ui)) set((changed['ui'] = { ...ui }), UI_MEMBER)
  return isChanged ? { ...tool, _meta: changed } : tool
}

/** A member name without case, as parsers that ignore case compare it. Maps U+017F and U+212A to `s` and `k` too. */
export const fold = (name: string): string => name.toUpperCase().toLowerCase()
