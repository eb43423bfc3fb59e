import type { Service } from '#gen/config/types.ts'

/** An endpoint address with the Service ports that lead to it. */
export interface Workload {
  readonly address: string
  readonly zone?: string
  readonly node?: string
  readonly draining?: boolean
  /** `<namespace>/<name>:<port> -> <target port>`. */
  readonly services: string[]
}

/** Groups the endpoints of all Services by address, for the config dump. */
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
