import type { Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import type { Kind } from './objects.ts'
import { configMap, endpointSlice, namespaceObject, pod, secret, service } from './schemas/core.ts'
import { backendTlsPolicy, gateway, gatewayClass, listenerSet, referenceGrant } from './schemas/gateway.ts'
import { inferencePool } from './schemas/inference.ts'
import { grpcRoute, httpRoute, tcpRoute, tlsRoute } from './schemas/route.ts'
import { envelope } from './schemas/shared.ts'

const own = (name: string): Schema => envelope({ 'spec!': definitions[name] ?? {} })

/** Schema of each kind, with the defaults that an API server would fill in. */
export const schemas: Readonly<Record<Kind, Schema>> = {
  GatewayClass: gatewayClass,
  Gateway: gateway,
  ListenerSet: listenerSet,
  HTTPRoute: httpRoute,
  GRPCRoute: grpcRoute,
  TLSRoute: tlsRoute,
  TCPRoute: tcpRoute,
  ReferenceGrant: referenceGrant,
  BackendTLSPolicy: backendTlsPolicy,
  ProxyPolicy: own('ProxyPolicySpec'),
  ProxyBackend: own('ProxyBackendSpec'),
  ProxyParameters: own('ProxyParametersSpec'),
  InferencePool: inferencePool,
  Service: service,
  EndpointSlice: endpointSlice,
  Pod: pod,
  Secret: secret,
  ConfigMap: configMap,
  Namespace: namespaceObject,
}
