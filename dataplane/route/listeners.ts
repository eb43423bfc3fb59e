import { hostOf } from '../http/message.ts'
import { HostTable } from './hostnames.ts'

/** The plaintext or the TLS listeners of one port: HTTP listeners are looked up by Host, HTTPS and TLS listeners by SNI. */
export type ListenerTable<L> = HostTable<L>

/** Of listeners with the same hostname the first wins (the operator reports the conflict). */
export function createListenerTable<L extends { readonly hostname?: string | undefined }>(listeners: Iterable<L>): ListenerTable<L> {
  const table = new HostTable<L>()
  for (const listener of listeners) {
    const hostname = listener.hostname?.toLowerCase()
    if (table.get(hostname) === undefined) table.set(hostname, listener)
  }
  return table
}

/** Converts an authority or SNI to a lookup key: lower case, without port. */
export function normalizeHost(authority: string): string {
  return hostOf(authority).toLowerCase()
}

/** The listener of a Host (an authority, whose port is ignored) or SNI; pass '' if there is none. Undefined: 404, or a closed TLS connection. */
export function selectListener<L>(table: ListenerTable<L>, authority: string): L | undefined {
  return table.lookup(normalizeHost(authority))
}

/**
 * Checks whether a request may use its TLS connection (traffic.md §5.4): its Host must select the listener that SNI
 * selected. Another listener of the port is MISDIRECTED (421), no listener LISTENER_NOT_FOUND (404). Undefined: it may.
 */
export function checkMisdirected<L>(table: ListenerTable<L>, own: L, authority: string): 'MISDIRECTED' | 'LISTENER_NOT_FOUND' | undefined {
  const owner = selectListener(table, authority)
  if (owner === own) return undefined
  return owner === undefined ? 'LISTENER_NOT_FOUND' : 'MISDIRECTED'
}
