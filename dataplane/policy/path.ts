import { normalizePrefix } from '#api/routing/path.ts'
import type { PathMatch, PathModifier } from '#gen/config/types.ts'
import { ProxyError } from '../request/exchange/error.ts'
import { pathOf } from '../http/message.ts'

/**
 * Rewrites the path of a request target and keeps the query. `match` is the path condition of the matched rule. Targets without a path
 * (`*`, CONNECT's) are unchanged. Throws FILTER_FAILED for a prefix rewrite without a prefix match.
 */
export function rewritePath(target: string, modifier: PathModifier, match: PathMatch | undefined): string {
  if (modifier.type === 'ReplacePrefixMatch' && match?.type !== 'PathPrefix')
    throw new ProxyError('FILTER_FAILED', { detail: 'ReplacePrefixMatch needs a PathPrefix match' })
  if (!target.startsWith('/')) return target
  const path = pathOf(target)
  const query = target.slice(path.length)
  if (modifier.type === 'ReplaceFullPath') return escapePath(rooted(modifier.value)) + query
  return replacePrefix(path, normalizePrefix(match?.value ?? ''), escapePath(modifier.value)) + query
}

/** Joins replacement and rest with exactly one slash. The result is never empty. */
function replacePrefix(path: string, prefix: string, replacement: string): string {
  const head = replacement.replace(/\/+$/, '')
  const rest = path.slice(prefix.length).replace(/^\/+/, '/')
  return rooted(head === '' ? rest : head + rest)
}

function rooted(path: string): string {
  return path.startsWith('/') ? path : `/${path}`
}

/** Percent-encodes characters of a configured replacement that would end the path or the request line. `%` is unchanged. */
function escapePath(path: string): string {
  return path.replace(/[^!-~]|[?#]/gu, (char) => {
    let out = ''
    for (const byte of Buffer.from(char)) out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    return out
  })
}
