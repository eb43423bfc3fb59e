import type { Gateway } from '../source/objects.ts'

interface Address {
  readonly type: string
  readonly value: string
}

/** Fields of a Service that hold its addresses. */
export interface PlacedService {
  readonly spec: { readonly type?: string; readonly clusterIP?: string; readonly clusterIPs?: readonly string[] }
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] } }
}

/**
 * `status.addresses` of a Gateway from the Service of its data planes (operator.md §4.2): those of the load balancer, or the
 * cluster IPs with those that the Gateway requests. Sorted by type and value.
 */
export function addressesOf(gateway: Gateway, service: PlacedService | undefined): Address[] {
  if (!service) return []
  const { spec, status } = service
  const addresses =
    spec.type === 'LoadBalancer'
      ? (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }): Address[] =>
          hostname ? [{ type: 'Hostname', value: hostname }] : ip ? [{ type: 'IPAddress', value: ip }] : [],
        )
      : [
          ...(spec.clusterIPs ?? [spec.clusterIP ?? '']).filter((ip) => ip !== '' && ip !== 'None').map((value) => ({ type: 'IPAddress', value })),
          ...(gateway.spec.addresses ?? []).flatMap(({ type, value }): Address[] => (value ? [{ type, value }] : [])),
        ]
  const byText = new Map(addresses.map((address) => [`${address.type} ${address.value}`, address]))
  return [...byText].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, address]) => address)
}
