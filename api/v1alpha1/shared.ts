import { DURATION_PATTERN, formatDuration } from '../duration.ts'
import { exactlyOneOf, integer, list, map, object, ref, string, type Definitions, type Schema } from '../schema.ts'

const DNS_SUBDOMAIN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
const IPV6 = '[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*'
const HOST = '[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\\.?'
/** A host name or IP address: no scheme, user, port, path or blank. */
export const HOST_PATTERN = `^(${HOST}|${IPV6})$`
/** `host` or `host:port`, with brackets around an IPv6 address before a port; several with commas. */
const ENDPOINT = `(${HOST}(:${PORT})?|${IPV6}|\\[${IPV6}\\](:${PORT})?)`
export const ENDPOINTS_PATTERN = `^\\s*(${ENDPOINT}\\s*(,\\s*${ENDPOINT}\\s*)*)?$`
const TOKEN = "[A-Za-z0-9!#$%&'*+\\-.^_`|~]+"

/** US dollars. */
export const usd = (description: string): Schema => string(description, { pattern: '^(0|[1-9][0-9]{0,5}|1000000)(\\.[0-9]{1,6})?$', maxLength: 14 })

/** A duration field. `minMs` becomes a CEL rule, because a pattern cannot compare durations. */
export function duration(description: string, minMs?: number, fallback?: string): Schema {
  const least = minMs === undefined ? undefined : formatDuration(minMs)
  return {
    ...ref('Duration', `${description}${least === undefined ? '' : ` At least ${least}.`}`),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(least === undefined
      ? {}
      : {
          'x-kubernetes-validations': [
            { rule: `duration(self) >= duration('${least}')`, message: `must be at least ${least}`, reason: 'FieldValueInvalid' as const },
          ],
        }),
  }
}

/** The condition of a section that protects (traffic.md §3). */
export const whenProtecting = ref(
  'CELExpression',
  'Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.',
)
/** The condition of a section that changes or replaces messages. */
export const whenChanging = ref(
  'CELExpression',
  'Condition, evaluated once for each request. If it is false or reads an absent value, this does not apply to the request. If it fails otherwise, it applies.',
)

export const port = (description: string): Schema => integer(description, 1, 65535)

export const sharedDefinitions: Definitions = {
  ShortString: string('Text of 1 to 256 characters.', { minLength: 1, maxLength: 256 }),
  TinyString: string('Text of 1 to 64 characters.', { minLength: 1, maxLength: 64 }),
  LongString: string('Text of 1 to 1024 characters.', { minLength: 1, maxLength: 1024 }),
  CELExpression: string(
    'A Common Expression Language (CEL) expression. One that does not compile is reported in the status and always fails; the field says what a failure does.',
    { minLength: 1, maxLength: 16384 },
  ),
  HeaderName: string('HTTP header name (RFC 9110 token), or one of the pseudo headers `:authority`, `:method`, `:path`, `:scheme`, `:status`.', {
    minLength: 1,
    maxLength: 256,
    pattern: `^(:(authority|method|path|scheme|status)|${TOKEN})$`,
  }),
  HTTPHeaderName: string('HTTP header name (RFC 9110 token), without pseudo headers.', { minLength: 1, maxLength: 256, pattern: `^${TOKEN}$` }),
  Host: string('Host name or IP address, without scheme, user, port and path.', { minLength: 1, maxLength: 256, pattern: HOST_PATTERN }),
  SNI: string('TLS server name: a lower-case DNS name.', { minLength: 1, maxLength: 253, pattern: DNS_SUBDOMAIN }),
  Duration: string(
    'Duration in the format of GEP-2257: up to four numbers with a unit h, m, s or ms, for example `3s`, `5m`, `1h30m`. No fractions, no sign.',
    {
      maxLength: 32,
      pattern: DURATION_PATTERN,
    },
  ),
  SectionName: string('Name of a part of an object: lower-case letters, digits, `-` and `.`.', { minLength: 1, maxLength: 253, pattern: DNS_SUBDOMAIN }),
  BackendObjectReference: object(
    'Destination: a Service (the default kind, with `port`) or a ProxyBackend (`group: proxy.dev`, `kind: ProxyBackend`). A reference that does not resolve is reported in the status; the policy stays in force and treats every call as failed.',
    {
      group: string('API group of the referent: empty for a Service, `proxy.dev` for a ProxyBackend.', {
        maxLength: 253,
        pattern: `^$|${DNS_SUBDOMAIN}`,
        default: '',
      }),
      kind: string('Kind of the referent.', { minLength: 1, maxLength: 63, pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$', default: 'Service' }),
      name: string('Name of the referent.', { minLength: 1, maxLength: 253 }),
      namespace: string('Namespace of the referent; default: that of the referring object. Another one needs a ReferenceGrant there for both kinds.', {
        minLength: 1,
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      }),
      port: port('Port of the Service. Required for a Service; a ProxyBackend has its own.'),
    },
    ['name'],
    [
      {
        rule: "(size(self.group) == 0 && self.kind == 'Service') || (self.group == 'proxy.dev' && self.kind == 'ProxyBackend')",
        message: 'may only reference a Service or a proxy.dev ProxyBackend',
      },
      {
        rule: "size(self.group) != 0 || self.kind != 'Service' || has(self.port)",
        message: 'must have port for Service reference',
        reason: 'FieldValueRequired',
        fieldPath: '.port',
      },
    ],
  ),
  AIModelBackendReference: object(
    'A ProxyBackend with `ai` (the default kind), a Service (with `port`) or an InferencePool. Services and pools implement the API of OpenAI.',
    {
      group: string('API group of the referent; default: that of its kind.', { maxLength: 253 }),
      kind: string('Kind of the referent.', { enum: ['ProxyBackend', 'Service', 'InferencePool'], default: 'ProxyBackend' }),
      name: string('Name of the referent.', { minLength: 1, maxLength: 253 }),
      namespace: string('Namespace of the referent; default: that of this object. Another one needs a ReferenceGrant there.', {
        minLength: 1,
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      }),
      port: port('Port of the Service.'),
    },
    ['name'],
    [{ rule: "self.kind != 'Service' || has(self.port)", message: 'must have port for Service reference', reason: 'FieldValueRequired', fieldPath: '.port' }],
  ),
  SecretReference: object(
    'A Secret in the namespace of the referring object. A Secret that is missing or lacks the required entry is reported in the status, and features that need it reject all requests.',
    { name: string('Name of the Secret.', { minLength: 1, maxLength: 253 }) },
    ['name'],
  ),
  ConfigMapReference: object(
    'A ConfigMap in the namespace of the referring object, with PEM certificates under the key `ca.crt`. If it is missing or contains no certificate, connections fail.',
    { name: string('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }) },
    ['name'],
  ),
  SecretSelector: object(
    'Selects Secrets in the namespace of the policy by their labels.',
    { matchLabels: map(string('Label value.', { maxLength: 63 }), 'Labels that a Secret must all have.') },
    ['matchLabels'],
  ),
  LabelSelector: object('Kubernetes label selector: all given requirements must hold; the empty selector matches everything.', {
    matchLabels: map(string('Label value.'), 'Labels that must be present with exactly these values.'),
    matchExpressions: list(
      object(
        'One requirement.',
        {
          key: string('Label key.'),
          operator: string('`In`, `NotIn`, `Exists` or `DoesNotExist`.', { enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'] }),
          values: list(string('Label value.'), 'Values for In and NotIn; empty for Exists and DoesNotExist.'),
        },
        ['key', 'operator'],
      ),
      'Requirements that must all hold.',
    ),
  }),
  RemoteJWKS: object(
    'A JSON Web Key Set that the operator fetches and sends to the data plane. Until it has been fetched once, no token is valid and the policy is PartiallyValid; after a failed refresh the last valid set stays in use.',
    {
      jwksPath: string('Path of the key set on the identity provider, relative to its root, for example `/realms/demo/protocol/openid-connect/certs`.', {
        minLength: 1,
        maxLength: 2000,
      }),
      cacheDuration: duration('Time between fetches.', 300_000, '5m'),
      backendRef: ref(
        'BackendObjectReference',
        'The identity provider: a Service or a static ProxyBackend. To reach it over TLS, attach a ProxyPolicy with `backend.tls` to it.',
      ),
    },
    ['jwksPath', 'backendRef'],
  ),
  JWKS: object(
    'Source of the keys that verify tokens: exactly one of remote, inline.',
    {
      remote: ref('RemoteJWKS'),
      inline: string('A JSON Web Key Set as text. One that does not parse is reported in the status, and no token is valid.', {
        minLength: 2,
        maxLength: 65536,
      }),
    },
    [],
    [exactlyOneOf('remote', 'inline')],
  ),
  Keepalive: object('TCP keepalive.', {
    retries: integer('Number of probes without a response after which the connection is closed.', 1, 64, { default: 9 }),
    time: duration('Idle time before the first probe.', 1000, '180s'),
    interval: duration('Time between probes.', 1000, '180s'),
  }),
}
