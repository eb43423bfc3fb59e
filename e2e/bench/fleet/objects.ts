/** Namespace of all objects of the benchmark. */
export const NAMESPACE = 'fleet'
/** Port of every Gateway's listener. Only one of them has a data plane that listens. */
export const LISTENER_PORT = 18_080
/** Name of the Service that the second rule of every route refers to. */
export const SHARED_SERVICE = 'shared'
/** Path that every route forwards to the shared Service. */
const SHARED_PATH = '/shared'

const GATEWAY_API = 'gateway.networking.k8s.io/v1'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly spec?: object
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> }
}

export const gatewayName = (index: number): string => `gateway-${index}`
export const routeName = (index: number): string => `route-${index}`
export const serviceName = (index: number): string => `service-${index}`

export const namespace: Manifest = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }

export function gateway(index: number): Manifest {
  const spec = { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: LISTENER_PORT, protocol: 'HTTP' }] }
  return { apiVersion: GATEWAY_API, kind: 'Gateway', metadata: { name: gatewayName(index), namespace: NAMESPACE }, spec }
}

/** A Service and its EndpointSlice with one address. */
export function service(name: string, address: string, port: number): Manifest[] {
  const metadata = { name, namespace: NAMESPACE }
  const slice = {
    addressType: 'IPv4',
    ports: [{ name: 'http', port, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  }
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ name: 'http', port: 80, targetPort: port }] } },
    { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } }, ...slice },
  ]
}

interface RouteOptions {
  readonly name: string
  readonly gateway: string
  readonly hostname: string
  readonly service: string
}

/** A route with a rule for one Service, and one for the shared Service. */
export function route({ name, gateway: parent, hostname, service: backend }: RouteOptions): Manifest {
  const spec = {
    parentRefs: [{ name: parent }],
    hostnames: [hostname],
    rules: [
      { matches: [{ path: { type: 'PathPrefix', value: '/' } }], backendRefs: [{ name: backend, port: 80 }] },
      { matches: [{ path: { type: 'PathPrefix', value: SHARED_PATH } }], backendRefs: [{ name: SHARED_SERVICE, port: 80 }] },
    ],
  }
  return { apiVersion: GATEWAY_API, kind: 'HTTPRoute', metadata: { name, namespace: NAMESPACE }, spec }
}
