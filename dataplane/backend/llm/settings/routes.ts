import type { BackendAI, RouteType } from '#gen/config/types.ts'
import { pathOf } from '../../../http/message.ts'

type Routes = NonNullable<BackendAI['routes']>

/** The type of a request. */
export interface RouteMatch {
  readonly type: RouteType
  /** No entry matches, so that the request is taken as Completions. */
  readonly isDefault: boolean
  /** Set if the request is for one model of the list: `GET /v1/models/{id}`. */
  readonly modelId?: string
}

/**
 * Returns a function from request target and method to route type. The longest matching path suffix wins; `*` matches any path. A GET request below a
 * suffix of type Models is for one model (llm.md §3).
 */
export function createRouteTable(routes: Routes | undefined): (target: string, method?: string) => RouteMatch {
  const entries = Object.entries(routes ?? {})
    .filter(([suffix]) => suffix !== '*')
    .map(([suffix, type]) => [comparablePath(suffix), { type, isDefault: false }] as const)
    .toSorted(([a], [b]) => b.length - a.length)
  const any = routes?.['*']
  const fallback: RouteMatch = any === undefined ? { type: 'Completions', isDefault: true } : { type: any, isDefault: false }
  const lists = entries.flatMap(([suffix, { type }]) => (type === 'Models' ? [`${suffix}/`] : []))
  return (target, method) => {
    if (entries.length === 0) return fallback
    const path = comparablePath(pathOf(target))
    const found = entries.find(([suffix]) => path.endsWith(suffix))?.[1]
    if (found !== undefined) return found
    const list = method === 'GET' || method === 'HEAD' ? lists.find((prefix) => path.includes(prefix)) : undefined
    return list === undefined ? fallback : { type: 'Models', isDefault: false, modelId: modelIn(pathOf(target), path, list) }
  }
}

/** The model below a list, as the client spells it if the rest of the path has its usual form. */
function modelIn(given: string, comparable: string, list: string): string {
  const at = given.toLowerCase().indexOf(list)
  if (at === -1) return comparable.slice(comparable.indexOf(list) + list.length)
  const id = given.slice(at + list.length).replace(/\/$/, '')
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

/**
 * A path in the one form that route types are looked up by: upstreams serve several spellings of a path, and all of them must get the
 * same policies. Lower case; percent-encodings decoded; `\` as `/`; without parameters, empty segments, dot segments and trailing slash.
 *
 * @example
 * comparablePath('/v1//Chat/./completion%73;a/') // '/v1/chat/completions'
 */
export function comparablePath(path: string): string {
  if (isComparable(path)) return path
  // Once only, as upstreams do: `%2573` is the text `%73`.
  const decoded = path.replace(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  const segments: string[] = []
  for (const segment of decoded.toLowerCase().split(/[/\\]/)) {
    const [name = ''] = segment.split(PARAMETERS)
    if (name === '..') segments.pop()
    else if (name !== '' && name !== '.') segments.push(name)
  }
  return `${/^[/\\]/.test(decoded) ? '/' : ''}${segments.join('/')}`
}

/** Parameters of a segment, and what some servers cut off: a decoded query, fragment, NUL or line end. */
// oxlint-disable-next-line no-control-regex -- the pattern cuts at control characters
const PARAMETERS = /[;?#\0-\x1f]/
// oxlint-disable-next-line no-control-regex -- the pattern finds control characters
const isComparable = (path: string): boolean => !/[A-Z%;?#\\\0-\x1f]|\/[/.]|\/$/.test(path)
