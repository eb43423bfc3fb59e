import { ref, type Definitions } from '../schema.ts'
import { integer, key, list, object, port, string } from './shared.ts'

export const listenerDefinitions: Definitions = {
  Bind: object(
    'One port that the data plane listens on. What is spoken there follows from its listeners: a port may mix HTTP, HTTPS and TLS; TCP stands alone.',
    {
      key: key('<port>/<namespace>/<gateway>'),
      port: port('TCP port.'),
      addresses: list(string('IP address.'), 'Addresses to listen on; all when absent.'),
    },
    ['key', 'port'],
  ),
  GatewayRef: object('The Gateway that an object belongs to.', { namespace: string('Namespace.'), name: string('Name.') }, ['namespace', 'name']),
  Listener: object(
    'One listener of a Gateway or ListenerSet.',
    {
      key: key('<namespace>/<gateway>.<section>, or listenerset/<namespace>/<listener set>/<section>'),
      bind: string('Key of the bind it listens on.'),
      gateway: ref('GatewayRef'),
      listenerSet: ref('GatewayRef', 'Set when the listener comes from a ListenerSet.'),
      name: string('Section name.'),
      hostname: string('Exact or `*.` hostname, lower case; absent matches any.'),
      protocol: { type: 'string', enum: ['HTTP', 'HTTPS', 'TLS', 'TCP'], description: 'Protocol as Gateway API names it.' },
      tls: ref('ListenerTls', 'Set for HTTPS and TLS, and only there.'),
      inProcessPlugins: {
        type: 'boolean',
        description: 'Whether plugins with isolation InProcess may run. Equal for all listeners of a Gateway. Default false.',
      },
    },
    ['key', 'bind', 'gateway', 'name', 'protocol'],
  ),
  ListenerTls: object(
    'TLS of a listener.',
    {
      mode: { type: 'string', enum: ['Terminate', 'Passthrough'], description: 'Terminate decrypts here; Passthrough relays bytes by SNI.' },
      certificates: list(
        string('Key of a Secret message of type tls.'),
        'Certificates to offer. Terminate with none, or with keys that do not resolve: handshakes fail, never plaintext.',
      ),
      clientValidation: ref('ClientValidation'),
      options: { type: 'object', additionalProperties: { type: 'string' }, description: 'TLS options of the listener, as written; none has an effect.' },
    },
    ['mode'],
  ),
  ClientValidation: object(
    'Client certificate validation (Gateway `spec.tls.frontend`).',
    {
      mode: {
        type: 'string',
        enum: ['AllowValidOnly', 'AllowInsecureFallback'],
        description:
          'AllowValidOnly requires a certificate that verifies. AllowInsecureFallback asks, accepts a missing or invalid one, and exposes no identity then.',
      },
      caCertificates: list(string('Key of a Secret message of type ca.'), 'CA certificates. If none of the keys resolves, every handshake fails.'),
    },
    ['mode', 'caCertificates'],
  ),
  Secret: object(
    'Key material. Never logged; `/config_dump` shows `<redacted>`.',
    {
      key: key('<type>/<namespace>/<name>; ca/configmap/<namespace>/<name> and ca/secret/<namespace>/<name>/<entry> for trust anchors'),
      type: { type: 'string', enum: ['tls', 'ca', 'opaque'], description: 'tls: certificate and privateKey. ca: certificate. opaque: data.' },
      certificate: string('PEM chain, leaf first; for ca, the trust anchors.'),
      privateKey: string('PEM private key.'),
      data: { type: 'object', additionalProperties: { type: 'string' }, description: 'Entries of an opaque secret, decoded from base64 to UTF-8.' },
    },
    ['key', 'type'],
  ),
  Milliseconds: integer('Whole milliseconds; 0 turns the limit off.', { minimum: 0 }),
}
