import { pathOf, queryOf, type RequestHead } from '../../http/message.ts'

/** Where clients of Google send API keys (ai.google.dev/api, authentication): a header, or the query of the Gemini API. */
const HEADER = 'x-goog-api-key'
const QUERY = 'key'
/** Paths of the Gemini API. In queries of other paths, `key` is a parameter of the application. */
const GEMINI = /\/(?:models|tunedModels)(?:\/.*)?$/

/**
 * The key of a client of Google. Another key than those that are known is the client's own business, such as a key of Google that is forwarded: it counts
 * as none. undefined if there is none, or if there are two.
 */
export function findGoogleKey({ headers, target }: RequestHead, isKnown: (key: string) => boolean): string | undefined {
  const keys = new Set(headers.has(HEADER) ? headers.getAll(HEADER) : [])
  if (target.includes('?') && GEMINI.test(pathOf(target))) for (const key of new URLSearchParams(queryOf(target)).getAll(QUERY)) keys.add(key)
  const [key = ''] = keys
  return keys.size === 1 && key !== '' && isKnown(key) ? key : undefined
}

/** Removes the key, so that the upstream does not receive it. */
export function removeGoogleKeys(request: RequestHead): void {
  const { target } = request
  request.headers.remove(HEADER)
  if (!target.includes('?') || !GEMINI.test(pathOf(target))) return
  const kept = queryOf(target)
    .split('&')
    .filter((pair) => !new URLSearchParams(pair).has(QUERY))
  request.target = kept.length === 0 ? pathOf(target) : `${pathOf(target)}?${kept.join('&')}`
}
