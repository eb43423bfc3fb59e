/**
 * Hostnames of Gateway API: exact, `*.suffix` (any depth below the suffix, never the suffix itself), or absent for
 * every host. All are lower case; callers convert hosts of requests to lower case (traffic.md §7).
 */

const WILDCARD = '*.'

/** Whether a hostname matches a host (lower case, no port). Undefined and '' match every host. */
export function matchesHostname(hostname: string | undefined, host: string): boolean {
  if (!hostname) return true
  if (!hostname.startsWith(WILDCARD)) return hostname === host
  return host.length > hostname.length - 1 && host.endsWith(hostname.slice(1))
}

/** Intersection of two hostnames: the more specific one, '' for every host, undefined if they are disjoint. */
export function intersectHostnames(a: string | undefined, b: string | undefined): string | undefined {
  if (!a || !b) return a || b || ''
  if (a === b) return a
  if (!a.startsWith(WILDCARD)) return b.startsWith(WILDCARD) && matchesHostname(b, a) ? a : undefined
  if (!b.startsWith(WILDCARD)) return matchesHostname(a, b) ? b : undefined
  if (a.endsWith(b.slice(1))) return a
  return b.endsWith(a.slice(1)) ? b : undefined
}

/** Hostnames at which a route is reachable on a listener; [''] for every host, [] for none. */
export function effectiveHostnames(route: readonly string[] | undefined, listener: string | undefined): string[] {
  const wanted = route === undefined || route.length === 0 ? [''] : route
  const found = new Set<string>()
  for (const hostname of wanted) {
    const common = intersectHostnames(hostname.toLowerCase(), listener?.toLowerCase())
    if (common !== undefined) found.add(common)
  }
  return [...found]
}
