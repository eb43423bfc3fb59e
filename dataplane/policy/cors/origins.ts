const ORIGIN = /^(https?):\/\/(\[[0-9a-f:.]+\]|[^\s/?#@:[\]]+)(?::([0-9]{1,5}))?$/

interface Origin {
  readonly scheme: string
  readonly host: string
  readonly port: number
}

/** Scheme, host and port in lower case, with the default port added; undefined for anything else (`null`, other schemes, a path, port 0). */
function parseOrigin(text: string): Origin | undefined {
  const [, scheme, host, digits] = ORIGIN.exec(text.toLowerCase()) ?? []
  if (scheme === undefined || host === undefined) return undefined
  const port = digits === undefined ? (scheme === 'https' ? 443 : 80) : Number(digits)
  return port > 0 && port < 65536 ? { scheme, host, port } : undefined
}

/**
 * Returns a test for values of `Origin`. Patterns are `*` or `scheme://host[:port]`, with `*` for any text in the host, dots included
 * (traffic.md §8.1). `*` alone allows every value, `null` too; an invalid pattern allows none.
 */
export function compileOrigins(patterns: readonly string[]): (origin: string) => boolean {
  if (patterns.includes('*')) return () => true
  const allowed = patterns.map(parseOrigin).filter((origin) => origin !== undefined)
  return (text) => {
    const origin = parseOrigin(text)
    return origin !== undefined && allowed.some(({ scheme, host, port }) => scheme === origin.scheme && port === origin.port && matchesGlob(host, origin.host))
  }
}

/** Whether text consists of the parts between the stars, in order. */
function matchesGlob(glob: string, text: string): boolean {
  const [first = '', ...parts] = glob.split('*')
  const last = parts.pop()
  if (last === undefined) return glob === text
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found === -1 || found + part.length > text.length - last.length) return false
    at = found + part.length
  }
  return true
}
