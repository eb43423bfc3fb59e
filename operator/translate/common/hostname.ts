/** Hostname rules of Gateway API: exact, `*.suffix` of any depth, absent for any. Compared in lower case. */

const suffixOf = (hostname: string): string | undefined => (hostname.startsWith('*.') ? hostname.slice(1) : undefined)

/** Whether some host matches both hostnames. */
export function intersects(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined || a === b) return true
  const [suffixA, suffixB] = [suffixOf(a), suffixOf(b)]
  if (suffixA !== undefined && suffixB !== undefined) return suffixA.endsWith(suffixB) || suffixB.endsWith(suffixA)
  if (suffixA !== undefined) return b.endsWith(suffixA)
  return suffixB !== undefined && a.endsWith(suffixB)
}

/** Whether a route with `hostnames` (none: any host) can serve a listener. */
export function matchesListener(listener: string | undefined, hostnames: readonly string[]): boolean {
  return hostnames.length === 0 || hostnames.some((hostname) => intersects(listener, hostname))
}

export const lowerHostname = (hostname: string | undefined): string | undefined =>
  hostname === undefined || hostname === '' ? undefined : hostname.toLowerCase()
