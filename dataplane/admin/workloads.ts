import type { Service } from '#gen/config/types.ts'

/** One address that requests can be sent to, with the Service ports that it stands behind. */
export interface Workload {
  readonly address: string
  readonly zone?: string
  readonly node?: string
  readonly draining?: boolean
  /** `<namespace>/<name>:<port> -> <target port>`. */
  readonly services: string[]
}

/** The endpoints of all Services by address, for the config dump: who is behind what. */
export function workloadsOf(services: Iterable<Service>): Workload[] {
  const byAddress = new Map<string, Workload>()
  for (const { key, ports } of services) {
    for (const { port, endpoints } of ports) {
      for (const { address, port: targetPort, ...rest } of endpoints) {
        let workload = byAddress.get(address)
        if (workload === undefined) byAddress.set(address, (workload = { address, ...rest, services: [] }))
        workload.services.push(`${key}:${port} -> ${targetPort}`)
      }
    }
  }
  return [...byAddress.values()]
}
