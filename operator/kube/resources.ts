import { kinds, type Kind } from '../source/objects.ts'

const plurals: Readonly<Record<Kind, string>> = {
  GatewayClass: 'gatewayclasses',
  Gateway: 'gateways',
  ListenerSet: 'listenersets',
  HTTPRoute: 'httproutes',
  GRPCRoute: 'grpcroutes',
  TLSRoute: 'tlsroutes',
  TCPRoute: 'tcproutes',
  ReferenceGrant: 'referencegrants',
  BackendTLSPolicy: 'backendtlspolicies',
  ProxyPolicy: 'proxypolicies',
  ProxyBackend: 'proxybackends',
  ProxyParameters: 'proxyparameters',
  InferencePool: 'inferencepools',
  Service: 'services',
  EndpointSlice: 'endpointslices',
  Pod: 'pods',
  Secret: 'secrets',
  ConfigMap: 'configmaps',
  Namespace: 'namespaces',
}

/** Kinds whose status the operator writes. */
export const statusKinds: ReadonlySet<Kind> = new Set([
  'GatewayClass',
  'Gateway',
  'ListenerSet',
  'HTTPRoute',
  'GRPCRoute',
  'TLSRoute',
  'TCPRoute',
  'BackendTLSPolicy',
  'ProxyPolicy',
  'ProxyBackend',
  'InferencePool',
])

const apiRoot = (group: string, version: string): string => (group === '' ? `/api/${version}` : `/apis/${group}/${version}`)

/** Paths of all objects of a kind, for each version that may be served, the newest first. */
export function collectionPaths(kind: Kind): readonly string[] {
  const { group, versions } = kinds[kind]
  return versions.map((version) => `${apiRoot(group, version)}/${plurals[kind]}`)
}

/** Path of one object under the path of its collection (`/apis/<group>/<version>/<plural>`). */
export function objectPath(collection: string, namespace: string, name: string): string {
  const slash = collection.lastIndexOf('/')
  return namespace === '' ? `${collection}/${name}` : `${collection.slice(0, slash)}/namespaces/${namespace}${collection.slice(slash)}/${name}`
}
