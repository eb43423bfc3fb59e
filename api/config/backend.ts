import { exactlyOneOf, ref, type Definitions } from '../schema.ts'
import { boolean, key, list, object, port, string } from './shared.ts'

export const backendDefinitions: Definitions = {
  Service: object(
    'A Kubernetes Service, or an InferencePool, with its endpoints.',
    {
      key: key('<namespace>/<name>, for an InferencePool <namespace>/<name>.inference'),
      hostname: string('`<name>.<namespace>.svc.<cluster domain>`, of an InferencePool `.inference.`; SNI default, and Host under hostRewrite Auto.'),
      ports: list(ref('ServicePort'), 'Ports.'),
      trafficDistribution: { type: 'string', enum: ['PreferSameZone', 'PreferSameNode', 'PreferClose'], description: 'Preferred locality of endpoints.' },
      internalTrafficPolicy: { type: 'string', enum: ['Cluster', 'Local'], description: 'Local uses endpoints of the data plane’s own node only.' },
      picker: ref('EndpointPicker', 'InferencePools only. Absent: balanced like a Service.'),
    },
    ['key', 'ports'],
  ),
  EndpointPicker: object(
    'The endpoint picker of an InferencePool: an ext_proc service that selects an endpoint for each request (Endpoint Picker Protocol 1.0).',
    {
      backend: ref('BackendRef'),
      failureMode: {
        type: 'string',
        enum: ['FailOpen', 'FailClose'],
        default: 'FailClose',
        description: 'If the picker cannot be reached: FailOpen balances over the endpoints, FailClose responds with 503.',
      },
      isPlaintext: boolean('Called without TLS. Otherwise with TLS, without verification of the certificate unless a policy on the Service configures it.'),
    },
    ['backend'],
  ),
  ServicePort: object(
    'One port of a Service.',
    {
      port: port('Service port.'),
      name: string('Port name.'),
      appProtocol: {
        type: 'string',
        enum: ['HTTP11', 'HTTP2', 'GRPC', 'WS', 'TCP', 'TLS', 'A2A'],
        description: 'Protocol of the endpoints, from appProtocol. Selects the HTTP version unless a policy does. A2A: agents, whose cards are rewritten.',
      },
      endpoints: list(ref('Endpoint'), 'Ready endpoints. Empty: 503.'),
    },
    ['port', 'endpoints'],
  ),
  Endpoint: object(
    'One address that serves a port.',
    {
      address: string('IP address, or a DNS name (ExternalName).'),
      port: port('Target port.'),
      zone: string('Topology zone.'),
      node: string('Node name.'),
      draining: boolean('Terminating but still serving: used only when nothing else is left.'),
    },
    ['address', 'port'],
  ),
  Backend: {
    ...object(
      'A ProxyBackend.',
      {
        key: key('<namespace>/<name>'),
        static: object('One fixed host.', { host: string('IP address or DNS name.'), port: port('Port.') }, ['host', 'port']),
        dynamicForwardProxy: ref('DynamicForwardProxyBackend', 'The destination is the request’s Host (SNI for TLS). Ports default to 80, or 443 over TLS.'),
        ai: ref('AIBackend'),
        rollouts: list(ref('AIModelRolloutState'), 'State of the rollouts of the models. The gateway sets it.'),
        mcp: ref('MCPBackend'),
        cloudBackend: ref('CloudBackend'),
        a2a: ref('A2ABackend'),
        policies: ref('BackendFull', 'Policies written on the backend itself; they win over attached ones.'),
      },
      ['key'],
    ),
    'x-kubernetes-validations': [exactlyOneOf('static', 'dynamicForwardProxy', 'ai', 'mcp', 'cloudBackend', 'a2a')],
  },
  BackendTlsValidation: object('Backend TLS as the operator resolved it, from a BackendTLSPolicy or a ProxyPolicy’s `backend.tls`.', {
    sni: string('SNI and, unless subjectAltNames is given, the name that the certificate must carry.'),
    subjectAltNames: list(
      object(
        'A name that the certificate must carry; any one suffices.',
        { type: { type: 'string', enum: ['Hostname', 'URI'], description: 'Kind of name.' }, value: string('Value.') },
        ['type', 'value'],
      ),
      'Replaces the check of sni.',
    ),
    caCertificates: list(string('Key of a Secret message of type ca.'), 'Trust anchors; absent: system CAs. Listed but none resolves: connections fail.'),
    clientCertificate: string('Key of a Secret message of type tls, presented to the upstream.'),
    insecureSkipVerify: { type: 'string', enum: ['All', 'Hostname'], description: 'All: no verification. Hostname: verify the chain only.' },
    alpn: list(string('Protocol name.'), 'ALPN protocols; default h2 and http/1.1, narrowed by the chosen HTTP version.'),
  }),
}
