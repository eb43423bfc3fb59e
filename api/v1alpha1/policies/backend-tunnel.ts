import { object, ref, type Definitions } from '../../schema.ts'

export const backendTunnelDefinitions: Definitions = {
  BackendTunnel: object(
    'Reaches the backend through an HTTP proxy, by CONNECT.',
    { backendRef: ref('BackendObjectReference', 'The proxy server to reach: a Service or a ProxyBackend.') },
    ['backendRef'],
  ),
}
