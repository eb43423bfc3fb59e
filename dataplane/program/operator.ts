import { lookup } from 'node:dns'
import type { DialRules } from '#api/address.ts'

/** Milliseconds between lookups of the operator's name. */
const REFRESH_MS = 30_000

/** Keeps the addresses of the operator up to date: a name is looked up now and every 30 seconds. A failed lookup keeps the last addresses. */
export function followOperator(xdsAddress: string): NonNullable<DialRules['operator']> {
  const { hostname, port, protocol } = new URL(xdsAddress)
  let addresses: readonly string[] = []
  const refresh = (): void =>
    lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }, (error, found) => {
      if (error === null) addresses = found.map(({ address }) => address)
    })
  refresh()
  setInterval(refresh, REFRESH_MS).unref()
  return () => ({ addresses, port: Number(port || (protocol === 'https:' ? 443 : 80)) })
}
