import type { PathMatch, PathModifier } from '#gen/config/types.ts'
import { ProxyError } from '../exchange/error.ts'
import { pathOf } from '../http/message.ts'
import { normalizePrefix } from '../route/path.ts'

/**
 * A target with its path rewritten and its query kept. `match` is the path condition that chose the rule. Targets that are no
 * paths (`*`, CONNECT's) stay. Throws FILTER_FAILED for a prefix rewrite of anything but a prefix match.
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

/** Exactly one slash where replacement and rest meet; never an empty path. */
function replacePrefix(path: string, prefix: string, replacement: string): string {
  const head = replacement.replace(/\/+$/, '')
  const rest = path.slice(prefix.length).replace(/^\/+/, '/')
  return rooted(head === '' ? rest : head + rest)
}

function rooted(path: string): string {
  return path.startsWith('/') ? path : `/${path}`
}

/** Replacements are the user's text: what would end a path or a request line is percent-encoded, `%` is left as it is. */
function escapePath(path: string): string {
  return path.replace(/[^!-~]|[?#]/gu, (char) => {
    let out = ''
    for (const byte of Buffer.from(char)) out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    return out
  })
}
