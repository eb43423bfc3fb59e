import type { HeaderList } from '../../../http/headers.ts'
import { isGeminiFormat, type ClientFormat, type UpstreamFormat } from '../common/types.ts'
import type { QueryRule, TargetRules } from './types.ts'

/** The client's query, without the keys that a target rejects or that name a version of another API. Others keep their spelling. */
export function fitQuery(query: string, { only, never }: QueryRule): string {
  if (query === '' || (only === undefined && never.length === 0)) return query
  const pairs = query.split('&')
  const kept = pairs.filter((pair) => {
    const key = keyOf(pair)
    return !never.includes(key) && only?.includes(key) !== false
  })
  return kept.length === pairs.length ? query : kept.join('&')
}

/** The decoded key of a pair. One that cannot be decoded stays as it is. */
function keyOf(pair: string): string {
  const at = pair.indexOf('=')
  const key = (at === -1 ? pair : pair.slice(0, at)).replaceAll('+', ' ')
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

/** Headers of Google's SDKs, with the client's key. */
const GOOGLE = ['x-goog-api-key', 'x-goog-api-client', 'x-goog-user-project']
/** Headers of the Messages API that mean nothing to other APIs. */
const ANTHROPIC = ['anthropic-beta', 'anthropic-version', 'anthropic-dangerous-direct-browser-access']

/**
 * Removes what a target rejects from the client's headers: values of `anthropic-beta`, and headers of the Messages API for other APIs, with the client's key
 * for it. Headers that a policy has set stay.
 */
export function fitHeaders(headers: HeaderList, from: ClientFormat, to: UpstreamFormat, { betas, query }: TargetRules): void {
  const isGoogle = query.only !== undefined && query.only.length > 0
  if (isGeminiFormat(from) && !isGoogle) for (const name of GOOGLE) if (headers.has(name) && !headers.isChanged(name)) headers.remove(name)
  if (betas.place !== 'header') {
    const isMessages = from === 'messages' || from === 'tokenCount'
    for (const name of isMessages ? [...ANTHROPIC, 'x-api-key'] : ANTHROPIC) if (headers.has(name) && !headers.isChanged(name)) headers.remove(name)
    return
  }
  const values = to === 'messagesCount' ? betas.countValues : betas.values
  if (values === undefined || !headers.has('anthropic-beta')) return
  const kept = fitBetas(
    headers.getAll('anthropic-beta').flatMap((line) => line.split(',')),
    values,
    betas.renames,
  )
  if (kept.length > 0) headers.set('anthropic-beta', kept.join(','))
  else headers.remove('anthropic-beta')
}

/** The values of `anthropic-beta` that a target knows, by its names for them. */
export function fitBetas(given: readonly string[], values: ReadonlySet<string> | undefined, renames: Readonly<Record<string, string>>): string[] {
  const named = given.map((value) => value.trim()).map((value) => (Object.hasOwn(renames, value) ? (renames[value] ?? value) : value))
  return [...new Set(named)].filter((value) => value !== '' && values?.has(value) !== false)
}
