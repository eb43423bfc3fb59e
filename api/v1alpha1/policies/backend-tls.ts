import { atMostOneOf, choice, list, object, ref, type Definitions } from '../../schema.ts'

export const backendTlsDefinitions: Definitions = {
  BackendTLS: object(
    'TLS to the backend. Without fields, the certificate is verified against the system CAs and SNI is taken from the destination.',
    {
      mtlsCertificateRef: list(
        ref('SecretReference'),
        'Client certificate: a Secret with `tls.key` and `tls.crt`. A `ca.cert` in it verifies the server, unless caCertificateRefs is set. If the Secret is missing, connections fail.',
        undefined,
        1,
      ),
      caCertificateRefs: list(
        ref('ConfigMapReference'),
        'CA certificates that verify the server; default: those of the system. If missing, connections fail.',
        undefined,
        1,
      ),
      insecureSkipVerify: choice(['All', 'Hostname'], 'All disables verification of the certificate. Hostname verifies its chain but not its names.'),
      sni: ref('SNI', 'Server name sent, and verified unless verifySubjectAltNames is set. Default: host name of the destination.'),
      verifySubjectAltNames: list(
        ref('ShortString', 'Subject alternative name.'),
        'Names; the certificate must have one of them. Default: host name of the destination.',
        1,
        16,
      ),
      alpnProtocols: list(
        ref('TinyString', 'Protocol name.'),
        'ALPN protocols offered. Default: h2 and http/1.1, narrowed to the HTTP version if that is set.',
        1,
        16,
      ),
    },
    [],
    [atMostOneOf('verifySubjectAltNames', 'insecureSkipVerify')],
  ),
}
