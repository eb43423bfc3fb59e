import { anything, flag, keyed, list, map, metadata, oneOf, port, shape, text, integer, envelope } from './shared.ts'

/** Other fields are left as they are. */
const loose = { 'x-kubernetes-preserve-unknown-fields': true as const }
const numberOrName = { 'x-kubernetes-int-or-string': true as const }
const protocol = oneOf(['TCP', 'UDP', 'SCTP'], { default: 'TCP' })

export const service = envelope({
  'spec!': shape({
    ports: list(shape({ name: text(), protocol, appProtocol: text(), 'port!': port, targetPort: numberOrName, nodePort: integer(0, 65_535) })),
    selector: map(),
    type: oneOf(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'], { default: 'ClusterIP' }),
    externalName: text(),
    clusterIP: text(),
    clusterIPs: list(text()),
    externalIPs: list(text()),
    sessionAffinity: text(),
    sessionAffinityConfig: anything,
    loadBalancerIP: text(),
    loadBalancerClass: text(),
    loadBalancerSourceRanges: list(text()),
    externalTrafficPolicy: text(),
    internalTrafficPolicy: oneOf(['Cluster', 'Local']),
    trafficDistribution: text(),
    healthCheckNodePort: integer(),
    publishNotReadyAddresses: flag,
    allocateLoadBalancerNodePorts: flag,
    ipFamilies: list(text()),
    ipFamilyPolicy: text(),
  }),
})

export const endpointSlice = shape({
  'apiVersion!': text(),
  'kind!': text(),
  'metadata!': metadata,
  'addressType!': oneOf(['IPv4', 'IPv6', 'FQDN']),
  endpoints: list(
    shape({
      'addresses!': list(text(), 1, 100),
      conditions: shape({ ready: flag, serving: flag, terminating: flag }),
      hostname: text(),
      nodeName: text(),
      zone: text(),
      targetRef: anything,
      deprecatedTopology: map(),
      hints: anything,
    }),
    undefined,
    1000,
  ),
  ports: keyed('name', shape({ name: text({ default: '' }), port, protocol, appProtocol: text() }), undefined, 100),
})

/** As `kubectl get -o yaml` prints it; only the fields that make it an endpoint are read. */
export const pod = shape({
  'apiVersion!': text(),
  'kind!': text(),
  'metadata!': metadata,
  spec: shape({ nodeName: text() }, loose),
  status: shape(
    {
      podIP: text(),
      conditions: list(shape({ 'type!': text(), 'status!': text() }, loose)),
    },
    loose,
  ),
})

const bytes = map(text({ format: 'byte' }))

export const secret = shape({ 'apiVersion!': text(), 'kind!': text(), 'metadata!': metadata, data: bytes, immutable: flag, stringData: map(), type: text() })
export const configMap = shape({ 'apiVersion!': text(), 'kind!': text(), 'metadata!': metadata, data: map(), immutable: flag, binaryData: bytes })
export const namespaceObject = envelope({ spec: shape({ finalizers: list(text()) }) })
