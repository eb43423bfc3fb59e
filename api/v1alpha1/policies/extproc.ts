import { object, ref, type Definitions } from '../../schema.ts'

export const extProcDefinitions: Definitions = {
  ExtProc: object(
    "External processing: a gRPC service (Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`) sees, and may change, headers, bodies and trailers of request and response. When it fails, the request is answered 500.",
    { backendRef: ref('BackendObjectReference', 'The processor: a Service or a ProxyBackend.') },
    ['backendRef'],
  ),
}
