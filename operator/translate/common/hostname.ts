import { intersectHostnames } from '#api/routing/hostnames.ts'

/** Whether a route with `hostnames` (none: any host) can serve a listener. */
export function matchesListener(listener: string | undefined, hostnames: readonly string[]): boolean {
  return hostnames.length === 0 || hostnames.some((hostname) => intersectHostnames(listener, hostname) !== undefined)
}

export const lowerHostname = (hostname: string | undefined): string | undefined =>
  hostname === undefined || hostname === '' ? undefined : hostname.toLowerCase()
