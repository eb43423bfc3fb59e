import { hostOf } from '../http/message.ts'
import { HostTable } from './hostnames.ts'

/** The listeners of one port and one side of TLS: HTTP ones are looked up by Host, HTTPS and TLS ones by SNI. */
export type ListenerTable<L> = HostTable<L>

/** Earlier listeners win where two claim one hostname (the operator reports the conflict). */
export function createListenerTable<L extends { readonly hostname?: string | undefined }>(listeners: Iterable<L>): ListenerTable<L> {
  const table = new HostTable<L>()
  for (const listener of listeners) {
    const hostname = listener.hostname?.toLowerCase()
    if (table.get(hostname) === undefined) table.set(hostname, listener)
  }
  return table
}

/** Host of an authority or SNI as tables know it: lower case, without port. */
export function normalizeHost(authority: string): string {
  return hostOf(authority).toLowerCase()
}

/** The listener of a Host (an authority, the port is ignored) or SNI; '' where there is none. Undefined: 404, or a dropped TLS connection. */
export function selectListener<L>(table: ListenerTable<L>, authority: string): L | undefined {
  return table.lookup(normalizeHost(authority))
}

/**
 * Whether a request may use the TLS connection that it came on (traffic.md §5.4): its Host must lead to the listener that SNI
 * led to. A Host of another listener of the port is MISDIRECTED (421), one of none LISTENER_NOT_FOUND (404).
 */
export function checkMisdirected<L>(table: ListenerTable<L>, own: L, authority: string): 'MISDIRECTED' | 'LISTENER_NOT_FOUND' | undefined {
  const owner = selectListener(table, authority)
  if (owner === own) return undefined
  return owner === undefined ? 'LISTENER_NOT_FOUND' : 'MISDIRECTED'
}
