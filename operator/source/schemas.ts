import type { Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import type { Kind } from './objects.ts'
import { configMap, endpointSlice, namespaceObject, pod, secret, service } from './schemas/core.ts'
import { versions } from './schemas/gateway-api.ts'
import { envelope } from './schemas/shared.ts'

const own = (name: string): Schema => envelope({ 'spec!': definitions[name] ?? {} })
const newest = (kind: Kind): Schema => versions.get(kind)?.get('v1') ?? {}

/** Schema of the newest version of each kind, with the defaults that an API server would fill in. */
export const schemas: Readonly<Record<Kind, Schema>> = {
  GatewayClass: newest('GatewayClass'),
  Gateway: newest('Gateway'),
  ListenerSet: newest('ListenerSet'),
  HTTPRoute: newest('HTTPRoute'),
  GRPCRoute: newest('GRPCRoute'),
  TLSRoute: newest('TLSRoute'),
  TCPRoute: newest('TCPRoute'),
  ReferenceGrant: newest('ReferenceGrant'),
  BackendTLSPolicy: newest('BackendTLSPolicy'),
  ProxyPolicy: own('ProxyPolicySpec'),
  ProxyBackend: own('ProxyBackendSpec'),
  ProxyParameters: own('ProxyParametersSpec'),
  InferencePool: newest('InferencePool'),
  Service: service,
  EndpointSlice: endpointSlice,
  Pod: pod,
  Secret: secret,
  ConfigMap: configMap,
  Namespace: namespaceObject,
}

/** Schema of a kind in the version that was written: older ones have other required fields. */
export const schemaOf = (kind: Kind, version: string): Schema => versions.get(kind)?.get(version) ?? schemas[kind]
