import { atLeastOneOf, atMostOneOf, choice, integer, list, object, ref, set, string, type Definitions } from '../schema.ts'
import { duration } from './shared.ts'

const TLS_VERSIONS = ['1.2', '1.3']
const CIPHER_SUITES = [
  'TLS13_AES_256_GCM_SHA384',
  'TLS13_AES_128_GCM_SHA256',
  'TLS13_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
]
const MAX_U32 = 4294967295
/** 1 TiB. */
const MAX_HELD_BYTES = 1099511627776

/** `path` belongs to OTLP over HTTP only. */
const otlpPathRules = [
  {
    rule: "!has(self.path) || (has(self.protocol) && self.protocol == 'HTTP')",
    message: 'path may only be set when protocol is HTTP',
    fieldPath: '.path',
    reason: 'FieldValueForbidden' as const,
  },
  { rule: "!has(self.path) || self.path.startsWith('/')", message: "path must start with '/'", fieldPath: '.path', reason: 'FieldValueInvalid' as const },
]
const otlpProtocol = choice(['HTTP', 'GRPC'], 'OTLP over gRPC, or protobuf over HTTP.', { default: 'GRPC' })

/** The header is a list of addresses, one for each hop. */
const isList = "self.header.lowerAscii() in ['x-forwarded-for', 'forwarded']"

const sections = {
  tcp: ref('FrontendTCP'),
  tls: ref('FrontendTLS'),
  http: ref('FrontendHTTP'),
  accessLog: ref('AccessLog'),
  tracing: ref('Tracing'),
  networkAuthorization: ref(
    'Authorization',
    'Authorization of connections, before a request is read and on TLS ports after the handshake; expressions see only `source`. A denied connection is closed. Rules of all levels apply together.',
  ),
  proxyProtocol: ref('ProxyProtocol'),
}

export const frontendDefinitions: Definitions = {
  Frontend: object(
    'Settings of the connections that clients make, for a whole Gateway. TLS and HTTP settings affect new connections only.',
    sections,
    [],
    [atLeastOneOf(...Object.keys(sections))],
  ),
  FrontendTCP: object('TCP settings of client connections.', { keepalive: ref('Keepalive') }, [], [atLeastOneOf('keepalive')]),
  FrontendTLS: object(
    'TLS settings of client connections. Only TLS 1.2 and 1.3 are supported.',
    {
      handshakeTimeout: duration('Timeout for the first bytes and the handshake; then the connection is closed.', 100, '15s'),
      alpnProtocols: list(ref('TinyString', 'Protocol name.'), 'ALPN protocols offered, in order of preference. Default: h2 and http/1.1.', 1, 16, {
        default: ['h2', 'http/1.1'],
      }),
      minProtocolVersion: choice(TLS_VERSIONS, 'Lowest TLS version accepted. Default: 1.2. Quote it in YAML.'),
      maxProtocolVersion: choice(TLS_VERSIONS, 'Highest TLS version accepted. Default: 1.3. Quote it in YAML.'),
      cipherSuites: list(
        choice(CIPHER_SUITES, 'Cipher suite.'),
        'Cipher suites accepted. Default: the AES-GCM suites of TLS 1.3 and of ECDHE with ECDSA and RSA. ChaCha20 is used only if listed.',
        undefined,
        CIPHER_SUITES.length,
      ),
    },
    [],
    [
      atLeastOneOf('handshakeTimeout', 'alpnProtocols', 'minProtocolVersion', 'maxProtocolVersion', 'cipherSuites'),
      {
        rule: '!has(self.minProtocolVersion) || !has(self.maxProtocolVersion) || self.minProtocolVersion <= self.maxProtocolVersion',
        message: 'minProtocolVersion must not be higher than maxProtocolVersion',
        fieldPath: '.minProtocolVersion',
      },
    ],
  ),
  FrontendHTTP: object(
    'HTTP settings of client connections.',
    {
      maxBufferSize: integer(
        'Maximum size in bytes of a body that is buffered for policies that need a complete body. Each such policy documents how it handles a larger one. LLM backends read up to 32 MiB if this has its default.',
        1,
        MAX_U32,
        { default: 2097152 },
      ),
      maxJsonDepth: integer(
        'Levels of arrays and objects in JSON that clients and upstreams send: bodies of LLM and MCP requests, and `json()` in expressions. A request with more gets 400; an expression fails.',
        1,
        4096,
        { default: 512 },
      ),
      maxJsonMembers: integer(
        'Members of all objects and elements of all arrays of such JSON, in total. A request with more gets 400; an expression fails.',
        1,
        10_000_000,
        { default: 100_000 },
      ),
      maxHeldBytes: integer(
        'Maximum number of bytes of bodies that a data plane buffers at once, of all requests and responses together. A request whose body would exceed it gets 503 with `retry-after`. Default: a quarter of the memory limit of the container, or of the memory of the machine without one; in small containers half of what is beyond 192 MiB, at least 16 MiB.',
        1,
        MAX_HELD_BYTES,
      ),
      http1MaxHeaders: integer('Maximum number of headers of an HTTP/1 request; a request with more is rejected with 431.', 1, 4096, { default: 100 }),
      http1IdleTimeout: duration('Time after which an idle HTTP/1 connection is closed; also the timeout for a request head.', 1000, '10m'),
      http2WindowSize: integer('Initial flow-control window of a stream in bytes. Default: 256 KiB.', 1, 2147483647),
      http2ConnectionWindowSize: integer('Initial flow-control window of a connection in bytes. Default: 1 MiB.', 1, 2147483647),
      http2FrameSize: integer('Largest HTTP/2 frame accepted, in bytes.', 16384, 1677215, { default: 16384 }),
      http2KeepaliveInterval: duration('Time between HTTP/2 pings. Not set: no pings.', 1000),
      http2KeepaliveTimeout: duration(
        'Timeout for the reply to a ping, after which the connection is closed; only with http2KeepaliveInterval. Default: 20s.',
        1000,
      ),
      pathNormalization: choice(
        ['Default', 'Off'],
        'Default (also if the field is not set): before routes and policies see a path, dot segments are resolved, empty segments are removed and percent-encoded unreserved characters are decoded; the path is forwarded in this form. `%2F` and `%5C` are not decoded. "Off", in quotes: paths are used and forwarded as received.',
      ),
      headersWithUnderscores: choice(
        ['Allow', 'Drop', 'Reject'],
        'Handling of request headers and trailers with underscores in their names. Allow (default): they are forwarded, unless a policy set or removed the same name with dashes, because CGI and WSGI servers do not distinguish the two. Drop: they are removed. Reject: the request gets 400. gRPC metadata often has underscores.',
      ),
      maxConnectionDuration: duration(
        'Age at which a connection is closed gracefully (GOAWAY, or `connection: close`); requests in flight finish. Not set: no limit.',
        1000,
      ),
      clientIP: ref('ClientIP'),
      xForwardedClientCert: ref('XForwardedClientCert'),
    },
    [],
    [
      atLeastOneOf(
        'maxBufferSize',
        'maxJsonDepth',
        'maxJsonMembers',
        'maxHeldBytes',
        'http1MaxHeaders',
        'http1IdleTimeout',
        'http2WindowSize',
        'http2ConnectionWindowSize',
        'http2FrameSize',
        'http2KeepaliveInterval',
        'http2KeepaliveTimeout',
        'pathNormalization',
        'headersWithUnderscores',
        'maxConnectionDuration',
        'clientIP',
        'xForwardedClientCert',
      ),
    ],
  ),
  ClientIP: object(
    'Takes the address of the client from a header that trusted proxies in front of the gateway set, for expressions, logs, `ipAllowList`, limits and load balancing. `X-Forwarded-*`, `Forwarded` and `x-request-id` are accepted from trusted proxies only, whether or not they name the client.',
    {
      header: string('Header with the address: `X-Forwarded-For`, `Forwarded` (RFC 7239), or another one with a single address.', {
        minLength: 1,
        maxLength: 64,
        pattern: '^[A-Za-z0-9-]+$',
        default: 'X-Forwarded-For',
      }),
      trustedHops: integer(
        'Number of proxies in front of the gateway: the client is the entry of that number, counted from the right. With fewer entries it is the peer. Every peer is trusted: only the proxies may be able to connect.',
        1,
        32,
      ),
      trustedCIDRs: set(
        { $ref: '#/$defs/CIDR' },
        'Addresses of the proxies: the client is the first entry from the right that is not one of them. A peer that is not one of them is the client itself.',
        1,
        64,
      ),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'If a trusted peer sends no usable address: FailClosed rejects the request with 403, FailOpen takes the address of the peer.',
        { default: 'FailClosed' },
      ),
    },
    [],
    [
      atMostOneOf('trustedHops', 'trustedCIDRs'),
      {
        rule: `has(self.trustedHops) || has(self.trustedCIDRs) || !(${isList})`,
        message: 'trustedHops or trustedCIDRs is required for X-Forwarded-For and Forwarded',
        reason: 'FieldValueRequired',
      },
      { rule: `!has(self.trustedHops) || ${isList}`, message: 'trustedHops may only be set for X-Forwarded-For and Forwarded', fieldPath: '.trustedHops' },
    ],
  ),
  XForwardedClientCert: object(
    'The header `x-forwarded-client-cert` of requests on connections with a verified client certificate. Elsewhere it is always removed.',
    {
      mode: choice(
        ['Sanitize', 'AppendForward', 'SanitizeSet'],
        'Sanitize removes the header, AppendForward adds an element for the certificate of the connection to that of the client, SanitizeSet replaces it.',
        { default: 'Sanitize' },
      ),
      certDetailsToAdd: set(
        choice(['Subject', 'Cert', 'Chain', 'DNS', 'URI'], 'A field of the element.'),
        'Fields besides `Hash`, the SHA-256 digest of the certificate. Cert and Chain are URL-encoded PEM.',
        1,
        5,
      ),
    },
    [],
    [
      {
        rule: "!has(self.certDetailsToAdd) || self.mode != 'Sanitize'",
        message: 'certDetailsToAdd needs mode AppendForward or SanitizeSet',
        fieldPath: '.certDetailsToAdd',
      },
    ],
  ),
  ProxyProtocol: object('Reads a PROXY protocol header at the start of each connection and takes the client address from it.', {
    version: choice(['V1', 'V2', 'All'], 'Versions accepted.', { default: 'V2' }),
    mode: choice(['Strict', 'Optional'], 'Strict closes connections without a header (5 s to send it); Optional lets them pass.', { default: 'Strict' }),
  }),
  AccessLog: object('Access log: one line on standard output per request, and optionally an OTLP log record.', {
    filter: ref('CELExpression', 'Only requests for which this is true are logged; a failure counts as false. Default: all.'),
    attributes: ref('LogTracingAttributes'),
    otlp: ref('OtlpAccessLog'),
  }),
  OtlpAccessLog: object(
    'Sends access logs to an OpenTelemetry collector, in batches that never delay requests.',
    {
      backendRef: ref('BackendObjectReference', 'The collector: a Service or a ProxyBackend.'),
      protocol: otlpProtocol,
      path: ref('LongString', 'Path for protocol HTTP. Default: /v1/logs.'),
    },
    ['backendRef'],
    otlpPathRules,
  ),
  Tracing: object(
    'Distributed tracing (W3C trace context); spans go to an OpenTelemetry collector in batches. Sampling is decided before authentication, so `jwt` is not available to it.',
    {
      backendRef: ref('BackendObjectReference', 'The collector: a Service or a ProxyBackend.'),
      protocol: otlpProtocol,
      path: ref('LongString', 'Path for protocol HTTP. Default: /v1/traces.'),
      attributes: ref('LogTracingAttributes'),
      resources: list(ref('ResourceAdd'), 'Resource attributes, evaluated once at start; expressions see only `env`.', undefined, 64),
      randomSampling: ref(
        'CELExpression',
        'Whether a request without a trace starts one: a boolean, or a probability from 0.0 to 1.0. A failure counts as false. Not set: never.',
      ),
      clientSampling: ref(
        'CELExpression',
        'Whether a request that is part of a trace gets a span: a boolean, or a probability. A failure counts as false. Not set: always.',
      ),
    },
    ['backendRef'],
    otlpPathRules,
  ),
  ResourceAdd: object(
    'A resource attribute.',
    { name: ref('ShortString', 'Attribute name.'), expression: ref('CELExpression', 'Value; the attribute is omitted if this fails.') },
    ['name', 'expression'],
  ),
  LogTracingAttributes: object(
    'Changes to the attributes that are recorded by default.',
    {
      remove: list(ref('TinyString', 'Attribute name.'), 'Default attributes to omit, for example `http.method`.', 1, 32),
      add: list(ref('AttributeAdd'), 'Attributes to add; one with the name of a default attribute replaces it.', 1, 64),
    },
    [],
    [atLeastOneOf('remove', 'add')],
  ),
  AttributeAdd: object(
    'A computed attribute.',
    { name: ref('ShortString', 'Attribute name.'), expression: ref('CELExpression', 'Value; the attribute is omitted if this fails or is null.') },
    ['name', 'expression'],
  ),
}
