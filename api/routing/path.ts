/** Normalizes a prefix to a leading and no trailing slash: `foo/` becomes `/foo`, `/` becomes ''. */
export function normalizePrefix(value: string): string {
  const rooted = value.startsWith('/') ? value : `/${value}`
  return rooted.endsWith('/') ? rooted.slice(0, -1) : rooted
}
