import { isIP } from 'node:net'
import { AddressRanges, refuseAddress, type DialRules } from '#api/address.ts'
import type { DynamicForwardProxyBackend } from '#gen/config/types.ts'
import type { ConnectGuard } from '../upstream/types.ts'

/**
 * Judges the destinations that clients of a dynamicForwardProxy backend name (traffic.md §13), in addition to what holds for every connection
 * (`dataplane/net/upstream/dial.ts`). In this order: ports of `own`, listeners among them, and special addresses are rejected, then `deny`, then everything
 * that a given `allow` does not contain.
 */
export function compileReach({ allow, deny }: DynamicForwardProxyBackend, own: DialRules): ConnectGuard {
  const denied = compileList(deny ?? [])
  const allowed = allow && compileList(allow)
  return {
    key: JSON.stringify([allow, deny]),
    reject(host, address, port) {
      const name = host.toLowerCase().replace(/\.$/, '')
      const reason = refuseAddress(address, port, own) ?? (denied(name, address) ? 'in deny' : allowed?.(name, address) === false ? 'not in allow' : undefined)
      return reason && `${host}:${port} (${address}): ${reason}`
    },
  }
}

/** Tells whether a name or its address is in a list. */
function compileList(entries: readonly string[]): (name: string, address: string) => boolean {
  const ranges = new AddressRanges(entries.filter(isRange))
  const names = entries.filter((entry) => !isRange(entry)).map((entry) => entry.toLowerCase())
  const exact = new Set(names.filter((name) => !name.startsWith('*.')))
  const suffixes = names.filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
  return (name, address) => exact.has(name) || suffixes.some((suffix) => name.endsWith(suffix)) || ranges.has(address)
}

const isRange = (entry: string): boolean => isIP(entry.split('/', 1)[0] ?? '') !== 0
