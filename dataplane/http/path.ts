/** A target whose path has no empty segment, no segment that begins with a dot and no percent-encoding. */
const clean = /^(?:\/[^/.?%][^/?%]*)*\/?(?:\?|$)/
const unreserved = /^[A-Za-z0-9._~-]$/

/**
 * Normalizes the path of a target in origin form (traffic.md §5 step 2): decodes percent-encoded unreserved characters, removes empty
 * segments and resolves dot segments (RFC 3986 §6.2.2). Other percent-encodings stay as sent, `%2F` and `%5C` among them, because decoding
 * them would change the segments. Linear in the length of the target. Returns clean targets, `*` and '' unchanged.
 */
export function normalizeTarget(target: string): string {
  if (clean.test(target) || !target.startsWith('/')) return target
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  const normalized = removeSegments(path.replace(/%[0-9A-Fa-f]{2}/g, decodeUnreserved))
  return mark === -1 ? normalized : normalized + target.slice(mark)
}

function decodeUnreserved(encoded: string): string {
  const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
  return unreserved.test(character) ? character : encoded
}

/** Empty segments are removed first, as file systems and most servers read a path: `/a//../b` is `/b`. */
function removeSegments(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const last = segments.at(-1)
  const isDirectory = kept.length > 0 && (last === '' || last === '.' || last === '..')
  return `/${kept.join('/')}${isDirectory ? '/' : ''}`
}
