import { BIG, FEW, frontend, LONG, MANY, PATTERN, proxyBackend, repeat, REQUIRED, service, SMALL, some, text, UNSUPPORTED, type Row } from './row.ts'

const at = 'spec.frontend'
const keepalive = (section: object) => frontend({ tcp: { keepalive: section } })
const tls = (section: object) => frontend({ tls: section })
const http = (section: object) => frontend({ http: section })
const otlp = (more: object) => frontend({ accessLog: { otlp: { backendRef: service, ...more } } })
const tracing = (more: object) => frontend({ tracing: { backendRef: service, ...more } })
const attributes = (section: object) => frontend({ accessLog: { attributes: section } })
const added = { name: 'n', expression: '1' }
const ciphers = [
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
const oneSecond = 'must be at least 1s'

export const frontendRows: Row[] = [
  ['an empty frontend', frontend({}), at, 'at least one of the fields'],
  ['an empty tcp', frontend({ tcp: {} }), `${at}.tcp`, some('keepalive')],
  ['an empty tls', tls({}), `${at}.tls`, 'at least one of the fields'],
  ['an empty http', http({}), `${at}.http`, 'at least one of the fields'],
  ['an unknown frontend field', frontend({ connect: {} }), '', 'unknown field "spec.frontend.connect"'],

  ['keepalive with defaults', keepalive({})],
  ['keepalive with everything', keepalive({ retries: 64, time: '1s', interval: '1s' })],
  ['keepalive with 0 retries', keepalive({ retries: 0 }), `${at}.tcp.keepalive.retries`, SMALL],
  ['keepalive with 65 retries', keepalive({ retries: 65 }), `${at}.tcp.keepalive.retries`, BIG],
  ['keepalive time 999ms', keepalive({ time: '999ms' }), `${at}.tcp.keepalive.time`, oneSecond],
  ['keepalive interval 0s', keepalive({ interval: '0s' }), `${at}.tcp.keepalive.interval`, oneSecond],

  [
    'tls with everything',
    tls({ handshakeTimeout: '100ms', alpnProtocols: ['h2'], minProtocolVersion: '1.2', maxProtocolVersion: '1.3', cipherSuites: ciphers }),
  ],
  ['handshakeTimeout 99ms', tls({ handshakeTimeout: '99ms' }), `${at}.tls.handshakeTimeout`, 'must be at least 100ms'],
  ['handshakeTimeout without unit', tls({ handshakeTimeout: '15' }), `${at}.tls.handshakeTimeout`, PATTERN],
  ['no ALPN protocols', tls({ alpnProtocols: [] }), `${at}.tls.alpnProtocols`, FEW],
  ['17 ALPN protocols', tls({ alpnProtocols: repeat(17, () => 'h2') }), `${at}.tls.alpnProtocols`, MANY],
  ['an ALPN protocol of 65 characters', tls({ alpnProtocols: [text(65)] }), `${at}.tls.alpnProtocols[0]`, LONG],
  ['TLS 1.1', tls({ minProtocolVersion: '1.1' }), `${at}.tls.minProtocolVersion`, UNSUPPORTED],
  ['TLS 1.4', tls({ maxProtocolVersion: '1.4' }), `${at}.tls.maxProtocolVersion`, UNSUPPORTED],
  ['TLS version as a number', tls({ minProtocolVersion: 1.2 }), `${at}.tls.minProtocolVersion`, 'must be of type string'],
  [
    'TLS min above max',
    tls({ minProtocolVersion: '1.3', maxProtocolVersion: '1.2' }),
    `${at}.tls.minProtocolVersion`,
    'must not be higher than maxProtocolVersion',
  ],
  ['an unknown cipher suite', tls({ cipherSuites: ['TLS_RSA_WITH_RC4_128_MD5'] }), `${at}.tls.cipherSuites[0]`, UNSUPPORTED],

  [
    'http with everything',
    http({
      maxBufferSize: 1,
      maxHeldBytes: 1,
      http1MaxHeaders: 4096,
      http1IdleTimeout: '1s',
      http2WindowSize: 1,
      http2ConnectionWindowSize: 1,
      http2FrameSize: 1677215,
      http2KeepaliveInterval: '1s',
      http2KeepaliveTimeout: '1s',
      maxConnectionDuration: '1s',
    }),
  ],
  ['headersWithUnderscores Reject', http({ headersWithUnderscores: 'Reject' })],
  ['headersWithUnderscores Deny', http({ headersWithUnderscores: 'Deny' }), `${at}.http.headersWithUnderscores`, UNSUPPORTED],
  ['pathNormalization Off', http({ pathNormalization: 'Off' })],
  [
    'pathNormalization false, as kubectl reads Off without quotes',
    http({ pathNormalization: false }),
    `${at}.http.pathNormalization`,
    'must be of type string',
  ],
  ['clientIP by hops', http({ clientIP: { trustedHops: 32 } })],
  ['clientIP by ranges', http({ clientIP: { header: 'Forwarded', trustedCIDRs: ['10.0.0.0/8', '::1'], failureMode: 'FailOpen' } })],
  ['clientIP by another header', http({ clientIP: { header: 'CF-Connecting-IP' } })],
  ['clientIP without trust', http({ clientIP: {} }), `${at}.http.clientIP`, 'trustedHops or trustedCIDRs is required'],
  ['clientIP by Forwarded without trust', http({ clientIP: { header: 'forwarded' } }), `${at}.http.clientIP`, 'trustedHops or trustedCIDRs is required'],
  ['clientIP by hops and ranges', http({ clientIP: { trustedHops: 1, trustedCIDRs: ['::1'] } }), `${at}.http.clientIP`, 'at most one of the fields'],
  ['clientIP by hops of another header', http({ clientIP: { header: 'X-Real-IP', trustedHops: 1 } }), `${at}.http.clientIP.trustedHops`, 'may only be set'],
  ['clientIP with 0 hops', http({ clientIP: { trustedHops: 0 } }), `${at}.http.clientIP.trustedHops`, SMALL],
  ['clientIP with 33 hops', http({ clientIP: { trustedHops: 33 } }), `${at}.http.clientIP.trustedHops`, BIG],
  ['clientIP with a header of underscores', http({ clientIP: { header: 'x_ip' } }), `${at}.http.clientIP.header`, PATTERN],
  ['clientIP with 65 ranges', http({ clientIP: { trustedCIDRs: repeat(65, (i) => `10.0.0.${i}`) } }), `${at}.http.clientIP.trustedCIDRs`, MANY],
  [
    'xForwardedClientCert with everything',
    http({ xForwardedClientCert: { mode: 'AppendForward', certDetailsToAdd: ['Subject', 'Cert', 'Chain', 'DNS', 'URI'] } }),
  ],
  [
    'xForwardedClientCert with details that are not sent',
    http({ xForwardedClientCert: { certDetailsToAdd: ['URI'] } }),
    `${at}.http.xForwardedClientCert.certDetailsToAdd`,
    'needs mode AppendForward or SanitizeSet',
  ],
  ['xForwardedClientCert ForwardOnly', http({ xForwardedClientCert: { mode: 'ForwardOnly' } }), `${at}.http.xForwardedClientCert.mode`, UNSUPPORTED],
  ['maxBufferSize 0', http({ maxBufferSize: 0 }), `${at}.http.maxBufferSize`, SMALL],
  ['maxHeldBytes 0', http({ maxHeldBytes: 0 }), `${at}.http.maxHeldBytes`, SMALL],
  ['maxHeldBytes 1 TiB', http({ maxHeldBytes: 1099511627776 })],
  ['maxHeldBytes above 1 TiB', http({ maxHeldBytes: 1099511627777 }), `${at}.http.maxHeldBytes`, BIG],
  ['http1MaxHeaders 0', http({ http1MaxHeaders: 0 }), `${at}.http.http1MaxHeaders`, SMALL],
  ['http1MaxHeaders 4097', http({ http1MaxHeaders: 4097 }), `${at}.http.http1MaxHeaders`, BIG],
  ['http2WindowSize 0', http({ http2WindowSize: 0 }), `${at}.http.http2WindowSize`, SMALL],
  ['http2ConnectionWindowSize 0', http({ http2ConnectionWindowSize: 0 }), `${at}.http.http2ConnectionWindowSize`, SMALL],
  ['http2FrameSize 16383', http({ http2FrameSize: 16383 }), `${at}.http.http2FrameSize`, SMALL],
  ['http2FrameSize 16384', http({ http2FrameSize: 16384 })],
  ['http2FrameSize 1677216', http({ http2FrameSize: 1677216 }), `${at}.http.http2FrameSize`, BIG],
  ...['http1IdleTimeout', 'http2KeepaliveInterval', 'http2KeepaliveTimeout', 'maxConnectionDuration'].map((field): Row => [
    `${field} 999ms`,
    http({ [field]: '999ms' }),
    `${at}.http.${field}`,
    oneSecond,
  ]),

  [
    'an access log with everything',
    frontend({
      accessLog: {
        filter: 'true',
        attributes: { remove: ['http.method'], add: [added] },
        otlp: { backendRef: proxyBackend, protocol: 'HTTP', path: '/v1/logs' },
      },
    }),
  ],
  ['access log attributes without fields', attributes({}), `${at}.accessLog.attributes`, some('remove', 'add')],
  ['no attributes removed', attributes({ remove: [] }), `${at}.accessLog.attributes.remove`, FEW],
  ['33 attributes removed', attributes({ remove: repeat(33, (i) => `a${i}`) }), `${at}.accessLog.attributes.remove`, MANY],
  ['an attribute name of 65 characters removed', attributes({ remove: [text(65)] }), `${at}.accessLog.attributes.remove[0]`, LONG],
  ['no attributes added', attributes({ add: [] }), `${at}.accessLog.attributes.add`, FEW],
  ['64 attributes added', attributes({ add: repeat(64, (i) => ({ ...added, name: `a${i}` })) })],
  ['65 attributes added', attributes({ add: repeat(65, (i) => ({ ...added, name: `a${i}` })) }), `${at}.accessLog.attributes.add`, MANY],
  ['an attribute without expression', attributes({ add: [{ name: 'n' }] }), `${at}.accessLog.attributes.add[0].expression`, REQUIRED],
  ['OTLP without backendRef', frontend({ accessLog: { otlp: {} } }), `${at}.accessLog.otlp.backendRef`, REQUIRED],
  ['OTLP by an unknown protocol', otlp({ protocol: 'UDP' }), `${at}.accessLog.otlp.protocol`, UNSUPPORTED],
  ['OTLP path with GRPC', otlp({ protocol: 'GRPC', path: '/v1/logs' }), `${at}.accessLog.otlp.path`, 'only be set when protocol is HTTP'],
  ['OTLP path with the default protocol', otlp({ path: '/v1/logs' }), `${at}.accessLog.otlp.path`, 'only be set when protocol is HTTP'],
  ['OTLP path without slash', otlp({ protocol: 'HTTP', path: 'v1' }), `${at}.accessLog.otlp.path`, "must start with '/'"],
  ['OTLP path of 1025 characters', otlp({ protocol: 'HTTP', path: `/${text(1024)}` }), `${at}.accessLog.otlp.path`, LONG],
  [
    'OTLP to a Service without port',
    frontend({ accessLog: { otlp: { backendRef: { name: 's' } } } }),
    `${at}.accessLog.otlp.backendRef.port`,
    'must have port',
  ],
  [
    'tracing with everything',
    tracing({ protocol: 'HTTP', path: '/t', attributes: { add: [added] }, resources: [added], randomSampling: '0.5', clientSampling: 'true' }),
  ],
  ['tracing without backendRef', frontend({ tracing: {} }), `${at}.tracing.backendRef`, REQUIRED],
  ['tracing path with GRPC', tracing({ path: '/v1/traces' }), `${at}.tracing.path`, 'only be set when protocol is HTTP'],
  ['tracing path without slash', tracing({ protocol: 'HTTP', path: 't' }), `${at}.tracing.path`, "must start with '/'"],
  ['a tracing resource without name', tracing({ resources: [{ expression: '1' }] }), `${at}.tracing.resources[0].name`, REQUIRED],
  ['an empty sampling expression', tracing({ randomSampling: '' }), `${at}.tracing.randomSampling`, 'at least 1 chars long'],

  ['networkAuthorization', frontend({ networkAuthorization: { action: 'Deny', policy: { matchExpressions: ['source.address == "1.2.3.4"'] } } })],
  ['networkAuthorization without policy', frontend({ networkAuthorization: {} }), `${at}.networkAuthorization.policy`, REQUIRED],
  ['proxyProtocol', frontend({ proxyProtocol: { version: 'All', mode: 'Optional' } })],
  ['proxyProtocol V3', frontend({ proxyProtocol: { version: 'V3' } }), `${at}.proxyProtocol.version`, UNSUPPORTED],
  ['proxyProtocol in an unknown mode', frontend({ proxyProtocol: { mode: 'Lax' } }), `${at}.proxyProtocol.mode`, UNSUPPORTED],
]
