import type { QueryParameter } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import { pathOf, queryOf, type RequestHead } from '../../http/message.ts'

/** Sets and removes query parameters. The others are unchanged. */
export function changeQuery(request: RequestHead, set: readonly QueryParameter[], remove: readonly string[]): void {
  if (set.length === 0 && remove.length === 0) return
  if (!request.target.startsWith('/')) return
  const gone = new Set([...remove, ...set.map(({ key }) => key)])
  const query = queryOf(request.target)
  const kept = query === '' ? [] : query.split('&').filter((pair) => !gone.has(decodeName(pair)))
  const added = set.map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`)
  const all = [...kept, ...added].join('&')
  request.target = pathOf(request.target) + (all === '' ? '' : `?${all}`)
}

function decodeName(pair: string): string {
  const name = pair.split('=', 1)[0]?.replaceAll('+', ' ') ?? ''
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
