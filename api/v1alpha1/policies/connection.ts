import { atMostOneOf, choice, list, object, ref, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

/** Backend sections about the connection itself. */
export const connectionDefinitions: Definitions = {
  BackendTCP: object('TCP settings of connections to the backend.', {
    keepalive: ref('Keepalive'),
    connectTimeout: duration('Time for a connection to be made; then the attempt fails with 504. Default: 10s.', 100),
  }),
  BackendHTTP: object('HTTP settings of requests to the backend.', {
    version: choice(
      ['HTTP1', 'HTTP2'],
      'HTTP version. Default: what appProtocol of the Service port says; HTTP2 for gRPC; the version of the client when it came in plaintext; HTTP1 when it came over TLS.',
    ),
    requestTimeout: duration('Time for one attempt until the response head; then it fails with 504 and may be retried.', 1),
  }),
  BackendTunnel: object(
    'Reaches the backend through an HTTP proxy, by CONNECT.',
    { backendRef: ref('BackendObjectReference', 'The proxy server to reach: a Service or a ProxyBackend.') },
    ['backendRef'],
  ),
  BackendTLS: object(
    'Makes the proxy start TLS to the backend. With no fields set, the certificate is verified against the system CAs and SNI is taken from the destination.',
    {
      mtlsCertificateRef: list(
        ref('SecretReference'),
        'Client certificate: a Secret with `tls.key` and `tls.crt`. A `ca.cert` in it verifies the server, unless caCertificateRefs is given. When the Secret is missing, connections fail.',
        undefined,
        1,
      ),
      caCertificateRefs: list(
        ref('ConfigMapReference'),
        'CA certificates that verify the server; default: those of the system. When missing, connections fail.',
        undefined,
        1,
      ),
      insecureSkipVerify: choice(['All', 'Hostname'], 'All turns every check of the certificate off. Hostname verifies its chain but not its names.'),
      sni: ref('SNI', 'Server name sent, and verified unless verifySubjectAltNames is given. Default: host name of the destination.'),
      verifySubjectAltNames: list(
        ref('ShortString', 'Subject alternative name.'),
        'Names of which the certificate must carry one. Default: host name of the destination.',
        1,
        16,
      ),
      alpnProtocols: list(
        ref('TinyString', 'Protocol name.'),
        'ALPN protocols offered. Default: h2 and http/1.1, narrowed to the HTTP version where that is given.',
        1,
        16,
      ),
    },
    [],
    [atMostOneOf('verifySubjectAltNames', 'insecureSkipVerify')],
  ),
}
