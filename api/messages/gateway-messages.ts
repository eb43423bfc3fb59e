import type { MessageTable } from './types.ts'

/** Conditions of Gateways, their listeners and ListenerSets, and deployment of data planes: PX10xx. */
export const gatewayMessages = {
  PX1001: {
    title: 'certificate reference of an unsupported kind',
    cause: 'A certificateRef names a kind other than Secret. The listener stays, so that TLS handshakes fail instead of reaching another listener.',
    fix: 'Store the certificate in a Secret of type kubernetes.io/tls and refer to it.',
  },
  PX1002: {
    title: 'reference to another namespace is not permitted',
    cause:
      'A Gateway or ListenerSet refers to a Secret or ConfigMap of another namespace, and no ReferenceGrant there permits it. The referenced object is not read.',
    fix: 'Create a ReferenceGrant in the namespace of the referenced object, or move the object to the namespace of the Gateway.',
  },
  PX1003: {
    title: 'certificate object not found',
    cause: 'The Secret or ConfigMap that a TLS setting refers to does not exist.',
    fix: 'Create the object, or correct name and namespace of the reference. The status is updated as soon as the object exists.',
  },
  PX1004: {
    title: 'certificate or key is not usable',
    cause: 'The Secret lacks tls.crt or tls.key, the PEM does not parse, the key does not belong to the certificate, or the key is too weak for TLS.',
    fix: 'Write the certificate chain to tls.crt and its private key to tls.key: RSA of at least 2048 bits, or ECDSA. `openssl x509 -in tls.crt -noout -text` shows the certificate.',
  },
  PX1005: {
    title: 'CA reference of an unsupported kind',
    cause: 'A caCertificateRef names a kind that cannot hold CA certificates.',
    fix: 'Use a ConfigMap with entry ca.crt; validation of client certificates also accepts a Secret.',
  },
  PX1006: {
    title: 'CA certificate is not usable',
    cause: 'The referenced object lacks its CA entry, or the entry holds no valid PEM certificate.',
    fix: 'Write one or more PEM certificates to the entry that the message names.',
  },
  PX1007: {
    title: 'listener needs exactly one certificate',
    cause: 'tls.certificateRefs of a listener that terminates TLS is empty or has several entries.',
    fix: 'Name one Secret in certificateRefs. Use one listener per hostname for several certificates.',
  },
  PX1008: {
    title: 'no CA certificate to verify clients with',
    cause: 'Validation of client certificates is configured, and none of its CA references resolves. Handshakes on the listener fail.',
    fix: 'Correct the references in caCertificateRefs; the listener condition ResolvedRefs lists the problem of each.',
  },
  PX1009: {
    title: 'listener protocol is not supported',
    cause: 'The protocol of a listener is none of HTTP, HTTPS, TLS and TCP. Protocol names are in upper case.',
    fix: 'Use one of the supported protocols.',
  },
  PX1010: {
    title: 'listener has no port',
    cause: 'A listener of a ListenerSet has no port, and its protocol has no default port.',
    fix: 'Set the port of the listener.',
  },
  PX1011: {
    title: 'listener port is reserved',
    cause: 'The data plane uses the port itself, for management endpoints (15000, 15020, 15021, 15022) or for messages between its replicas (15023).',
    fix: 'Use another port for the listener.',
  },
  PX1012: {
    title: 'listener allows route kinds that its protocol does not support',
    cause: 'allowedRoutes.kinds lists a kind that cannot be served with the protocol of the listener. The other kinds of the list work.',
    fix: 'Remove the kind, or change the protocol: HTTP and HTTPS serve HTTPRoute and GRPCRoute, TLS serves TLSRoute, TCP serves TCPRoute.',
  },
  PX1013: {
    title: 'listener has no TLS settings',
    cause: 'A listener with protocol HTTPS or TLS has no tls section. It is never served in plaintext; handshakes fail.',
    fix: 'Set tls.certificateRefs, or tls.mode Passthrough for protocol TLS.',
  },
  PX1014: {
    title: 'listener port is used with another protocol',
    cause: 'Two listeners of one port have protocols that cannot share it. HTTPS and TLS can share a port.',
    fix: 'Use different ports, or one protocol.',
  },
  PX1015: {
    title: 'listener hostname is used twice',
    cause:
      'Two listeners have the same port and hostname. Of listeners of the Gateway itself none is served; listeners of ListenerSets lose to those of the Gateway and of older ListenerSets.',
    fix: 'Give each listener of a port a hostname of its own, or remove one of them.',
  },
  PX1016: {
    title: 'ListenerSet is not allowed',
    cause: 'spec.allowedListeners of the Gateway does not include the namespace of the ListenerSet. The default allows none.',
    fix: 'Set spec.allowedListeners.namespaces of the Gateway, for example `from: Same`.',
  },
  PX1017: {
    title: 'clients without a valid certificate are accepted',
    cause: 'A validation mode is AllowInsecureFallback. Requests of clients without a valid certificate reach the routes.',
    fix: 'Use mode AllowValidOnly, unless every route checks the client by other means.',
  },
  PX1018: {
    title: 'address type is not supported',
    cause: 'spec.addresses has an entry that is not an IP address. A load balancer can be asked for an IP address only.',
    fix: 'Use an entry of type IPAddress, or remove spec.addresses. Manage DNS names outside of the Gateway.',
  },
  PX1019: {
    title: 'addresses cannot be requested',
    cause: 'spec.addresses has a value that is not an IP address, or several values.',
    fix: 'Name at most one IP address.',
  },
  PX1020: {
    title: 'ProxyParameters not found',
    cause:
      'parametersRef of the GatewayClass or infrastructure.parametersRef of the Gateway names an object that does not exist, or another kind. Existing data planes keep running unchanged.',
    fix: 'Create the ProxyParameters, or correct group, kind, name and namespace of the reference.',
  },
  PX1021: {
    title: 'Gateway has no usable port',
    cause: 'No listener of the Gateway has a port that a Service can expose.',
    fix: 'Correct the listeners; their conditions name the problem of each.',
  },
  PX1022: {
    title: 'deployment parameters are invalid',
    cause:
      'An overlay of ProxyParameters has a field of the wrong type or an unknown directive, or image.repository is empty. Existing data planes keep running unchanged.',
    fix: 'Correct the field that the message names. `proxyctl lint` checks overlays without a cluster.',
  },
  PX1023: {
    title: 'unknown fields of overlays are ignored',
    cause: 'An overlay of ProxyParameters sets a field that the object does not have. All other fields are applied.',
    fix: 'Correct the name of the field, or remove it.',
  },
  PX1024: {
    title: 'CA of the config stream is missing',
    cause: 'TLS of the config stream is enabled, and Secret proxy-xds-cert in the namespace of the operator does not exist or holds no CA certificate.',
    fix: 'Create the Secret with ca.crt, tls.crt and tls.key.',
  },
  PX1025: {
    title: 'Gateway is not ready',
    cause: 'The Service of the Gateway has no address yet, or no pod of its data plane is ready. This is normal for some seconds after creation.',
    fix: 'If it lasts, the message names the cause: a load balancer that assigns no address, an image that cannot be pulled, a quota. `proxyctl status` lists the causes inside of pods.',
  },
  PX1026: {
    title: 'session key or admin token is not usable',
    cause: 'The Secret with the session key or the admin token of the Gateway exists, and its value is not 32 bytes in hexadecimal digits.',
    fix: 'Correct the value, or delete the Secret; the operator then creates a new one and rolls the pods. A new session key invalidates existing sessions.',
  },
  PX1027: {
    title: 'deployment failed',
    cause: 'The API server rejected an object of the Gateway, for example because of a quota, an admission policy or an immutable field. The operator retries.',
    fix: 'The message is that of the API server. Correct the ProxyParameters, the policy or the permissions that it names.',
  },
  PX1028: {
    title: 'field of a Gateway is not supported',
    cause: 'A Gateway sets defaultScope, an experimental field of Gateway API. It has no effect; everything else of the Gateway is in force.',
    fix: 'Remove the field, and name the Gateway in parentRefs of its routes.',
  },
  PX1029: {
    title: 'TLS options are not supported',
    cause:
      'A listener has tls.options, or a BackendTLSPolicy has options. Gateway API defines no key; those of other controllers have no effect here. Everything else of the listener or policy is in force.',
    fix: 'Remove the options. For TLS versions, cipher suites and ALPN of a listener, use frontend.tls of a ProxyPolicy; for certificates of clients, tls.frontend of the Gateway.',
  },
  PX1030: {
    title: 'field of ProxyParameters has no effect in a directory',
    cause:
      'Manifests of a directory set a field of ProxyParameters that is about pods or other objects of a cluster, or a variable whose value comes from an object that the directory does not have. All other fields are in force.',
    fix: 'Nothing, if the manifests are also for a cluster. Else remove the field, or add the Secret or ConfigMap to the directory.',
  },
} as const satisfies MessageTable

export type GatewayCode = keyof typeof gatewayMessages
