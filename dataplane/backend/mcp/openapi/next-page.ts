import type { OpenApiTool } from '#gen/config/types.ts'
import type { JsonObject } from '../message/json.ts'

const MAX_LINK_CHARS = 8192

/**
 * The arguments of the next page, from the header `Link` with the relation `next` (RFC 8288): parameters of the operation in the query of its
 * URL that differ from those of the request. Undefined if there is no next page. The URL itself is not shown: it has the address of the API.
 */
export function nextPage({ parameters }: OpenApiTool, link: string | undefined, sent: string, schema: JsonObject): JsonObject | undefined {
  const target = link === undefined || link.length > MAX_LINK_CHARS ? undefined : findNext(link)
  const next = target === undefined ? undefined : queryOf(target)
  if (next === undefined) return undefined
  const current = queryOf(sent) ?? new URLSearchParams()
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, { readonly type?: unknown } | undefined>> }
  const changed: Record<string, unknown> = {}
  for (const { name, in: place, argument } of parameters) {
    const value = place === 'query' ? next.get(name) : null
    if (value === null || value === current.get(name)) continue
    const type = Object.hasOwn(properties, argument) ? properties[argument]?.type : undefined
    const isNumber = [type].flat().some((one) => one === 'integer' || one === 'number') && /^\d{1,15}$/.test(value)
    changed[argument] = isNumber ? Number(value) : value
  }
  return Object.keys(changed).length === 0 ? undefined : changed
}

/** The URL of the first link with the relation. Links are separated by commas, which URLs may contain too. */
function findNext(link: string): string | undefined {
  for (const part of link.split('<').slice(1)) {
    const end = part.indexOf('>')
    if (end !== -1 && /;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\b)/i.test(part.slice(end))) return part.slice(0, end)
  }
  return undefined
}

function queryOf(target: string): URLSearchParams | undefined {
  return URL.canParse(target, 'http://api.invalid/') ? new URL(target, 'http://api.invalid/').searchParams : undefined
}
