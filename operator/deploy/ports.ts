import { RESERVED_PORTS } from '#api/names.ts'
import type { DeployInput, DeployListener } from './types.ts'

/** A ListenerSet's listener may leave the port to its protocol. */
const defaultPorts: Readonly<Record<string, number>> = { HTTP: 80, HTTPS: 443 }

/** Ports of all listeners, once each, ascending; those that the data plane keeps for itself are left out, with a note. */
export function listPorts({ gateway, listenerSets }: DeployInput): { readonly ports: readonly number[]; readonly notes: readonly string[] } {
  const listeners: DeployListener[] = [...gateway.spec.listeners, ...listenerSets.flatMap((set) => set.spec.listeners)]
  const ports = new Set<number>()
  const notes: string[] = []
  for (const { name, port: given, protocol } of listeners) {
    const port = given ? given : defaultPorts[protocol]
    if (port === undefined) notes.push(`listener ${name} has no port, and ${protocol} has no default one; set its port`)
    else if (RESERVED_PORTS.includes(port)) notes.push(`listener ${name} has port ${port}, which the data plane reserves for itself; use another`)
    else if (port < 1 || port > 65_535) notes.push(`listener ${name} has port ${port}; use one of 1 to 65535`)
    else ports.add(port)
  }
  return { ports: [...ports].toSorted((a, b) => a - b), notes }
}
