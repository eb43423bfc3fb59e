import {
  BIG,
  DUPLICATE,
  entries,
  FEW,
  gatewayTarget,
  LONG,
  MANY,
  one,
  PATTERN,
  policy,
  proxyBackend,
  repeat,
  REQUIRED,
  service,
  SHORT,
  SMALL,
  some,
  text,
  traffic,
  UNSUPPORTED,
  type Row,
} from './row.ts'

const at = 'spec.traffic'
const preRouting = (section: object) => policy({ targetRefs: [gatewayTarget], traffic: { phase: 'PreRouting', ...section } })
const header = (name: string) => ({ name, value: '"v"' })
const transform = (request: object) => traffic({ transformation: { request } })
const extAuth = (more: object) => traffic({ extAuth: { backendRef: service, ...more } })
const limit = (...local: object[]) => traffic({ rateLimit: { local } })
const descriptor = { entries: [{ name: 'n', expression: 'source.address' }] }
const global = (more: object) => traffic({ rateLimit: { global: { backendRef: service, domain: 'd', descriptors: [descriptor], ...more } } })
const cors = (section: object) => traffic({ cors: section })
const expressions = { policy: { matchExpressions: ['true'] } }
const jwt = { providers: [{ issuer: 'i', jwks: { inline: '{}' } }] }

const preRoutingAllowed = {
  authorization: expressions,
  transformation: { request: { remove: ['x-a'] } },
  extProc: { backendRef: service },
  extAuth: { backendRef: service, grpc: {} },
  jwtAuthentication: jwt,
  basicAuthentication: { secretRef: { name: 's' } },
  apiKeyAuthentication: { secretRef: { name: 's' } },
  cors: {},
}
const preRoutingForbidden = {
  rateLimit: { local: [{ requests: 1, unit: 'Seconds' }] },
  csrf: {},
  headerModifiers: { request: {} },
  hostRewrite: { mode: 'Auto' },
  timeouts: { request: '1s' },
  retry: {},
  directResponse: { status: 200 },
}
/** Every field that holds a backendRef. */
const backendRefHolders: Record<string, (backendRef: unknown) => ReturnType<typeof traffic>> = {
  'extProc.backendRef': (backendRef) => traffic({ extProc: { backendRef } }),
  'extAuth.backendRef': (backendRef) => traffic({ extAuth: { backendRef, grpc: {} } }),
  'rateLimit.global.backendRef': (backendRef) => traffic({ rateLimit: { global: { backendRef, domain: 'd', descriptors: [descriptor] } } }),
  'jwtAuthentication.providers[0].jwks.remote.backendRef': (backendRef) =>
    traffic({ jwtAuthentication: { providers: [{ issuer: 'i', jwks: { remote: { jwksPath: '/jwks', backendRef } } }] } }),
}
const backendRefRows: Row[] = Object.entries(backendRefHolders).flatMap(([field, of]): Row[] => [
  [`${field}: a Service with port`, of({ ...service, namespace: 'other' })],
  [`${field}: a ProxyBackend`, of(proxyBackend)],
  [`${field}: a Service without port`, of({ name: 's' }), `${at}.${field}.port`, 'must have port for Service reference'],
  [`${field}: no name`, of({ port: 80 }), `${at}.${field}.name`, REQUIRED],
  [`${field}: another kind`, of({ group: 'example.com', kind: 'Bucket', name: 'b' }), `${at}.${field}`, 'may only reference a Service'],
  [`${field}: port 0`, of({ name: 's', port: 0 }), `${at}.${field}.port`, SMALL],
  [`${field}: port 65536`, of({ name: 's', port: 65536 }), `${at}.${field}.port`, BIG],
])

export const trafficRows: Row[] = [
  ...Object.entries(preRoutingAllowed).map(([field, value]): Row => [`PreRouting with ${field}`, preRouting({ [field]: value })]),
  ...Object.entries(preRoutingForbidden).map(([field, value]): Row => [
    `PreRouting with ${field}`,
    preRouting({ [field]: value }),
    at,
    'PreRouting only supports',
  ]),
  ['an unknown phase', traffic({ phase: 'Routing' }), `${at}.phase`, UNSUPPORTED],
  ['an unknown traffic field', traffic({ buffer: {} }), '', 'unknown field "spec.traffic.buffer"'],
  ...backendRefRows,

  [
    'a transformation of everything',
    transform({ set: [header('x-a'), header(':path')], add: [header('x-b')], remove: ['x-c'], body: '"b"', metadata: { a: '1' } }),
  ],
  ['transformation.response alone', traffic({ transformation: { response: { set: [header(':status')] } } })],
  ['an empty transformation', traffic({ transformation: {} }), `${at}.transformation`, some('request', 'response')],
  ['an empty transform', transform({}), `${at}.transformation.request`, some('set', 'add', 'remove', 'body', 'metadata')],
  ['16 headers set', transform({ set: repeat(16, (i) => header(`x-${i}`)) })],
  ['17 headers set', transform({ set: repeat(17, (i) => header(`x-${i}`)) }), `${at}.transformation.request.set`, MANY],
  ['17 headers added', transform({ add: repeat(17, (i) => header(`x-${i}`)) }), `${at}.transformation.request.add`, MANY],
  ['17 headers removed', transform({ remove: repeat(17, (i) => `x-${i}`) }), `${at}.transformation.request.remove`, MANY],
  ['an empty list of headers set', transform({ set: [] }), `${at}.transformation.request.set`, FEW],
  ['an empty list of headers added', transform({ add: [] }), `${at}.transformation.request.add`, FEW],
  ['an empty list of headers removed', transform({ remove: [] }), `${at}.transformation.request.remove`, FEW],
  ['a header set twice', transform({ set: [header('x-a'), header('x-a')] }), `${at}.transformation.request.set[1]`, DUPLICATE],
  ['a header added twice', transform({ add: [header('x-a'), header('x-a')] }), `${at}.transformation.request.add[1]`, DUPLICATE],
  ['a header removed twice', transform({ remove: ['x-a', 'x-a'] }), `${at}.transformation.request.remove[1]`, DUPLICATE],
  ['a header name with a space', transform({ remove: ['x a'] }), `${at}.transformation.request.remove[0]`, PATTERN],
  ['an unknown pseudo header', transform({ set: [header(':protocol')] }), `${at}.transformation.request.set[0].name`, PATTERN],
  ['a header name of 257 characters', transform({ remove: [text(257)] }), `${at}.transformation.request.remove[0]`, LONG],
  ['a header without value', transform({ set: [{ name: 'x-a' }] }), `${at}.transformation.request.set[0].value`, REQUIRED],
  ['an empty expression', transform({ body: '' }), `${at}.transformation.request.body`, SHORT],
  ['an expression of 16384 characters', transform({ body: text(16384) })],
  ['an expression of 16385 characters', transform({ body: text(16385) }), `${at}.transformation.request.body`, LONG],
  ['16 metadata entries', transform({ metadata: entries(16, '1') })],
  ['17 metadata entries', transform({ metadata: entries(17, '1') }), `${at}.transformation.request.metadata`, MANY],
  ['no metadata entries', transform({ metadata: {} }), `${at}.transformation.request.metadata`, FEW],

  ['extProc without backendRef', traffic({ extProc: {} }), `${at}.extProc.backendRef`, REQUIRED],
  ['extAuth over gRPC', extAuth({ grpc: { contextExtensions: { a: 'b' }, requestMetadata: { a: 'jwt.sub' } }, forwardBody: { maxSize: 1 } })],
  [
    'extAuth over HTTP',
    extAuth({
      http: {
        path: '"/"',
        redirect: '"/login"',
        allowedRequestHeaders: [':path'],
        addRequestHeaders: { a: '1' },
        allowedResponseHeaders: ['x-user'],
        responseMetadata: { a: '1' },
      },
    }),
  ],
  ['extAuth with neither protocol', extAuth({}), `${at}.extAuth`, one('grpc', 'http')],
  ['extAuth with both protocols', extAuth({ grpc: {}, http: {} }), `${at}.extAuth`, one('grpc', 'http')],
  ['extAuth without backendRef', traffic({ extAuth: { grpc: {} } }), `${at}.extAuth.backendRef`, REQUIRED],
  ['forwardBody without maxSize', extAuth({ grpc: {}, forwardBody: {} }), `${at}.extAuth.forwardBody.maxSize`, REQUIRED],
  ['forwardBody.maxSize 0', extAuth({ grpc: {}, forwardBody: { maxSize: 0 } }), `${at}.extAuth.forwardBody.maxSize`, SMALL],
  ...['contextExtensions', 'requestMetadata'].map((field): Row => [
    `65 entries of grpc.${field}`,
    extAuth({ grpc: { [field]: entries(65, '1') } }),
    `${at}.extAuth.grpc.${field}`,
    MANY,
  ]),
  ...['addRequestHeaders', 'responseMetadata'].map((field): Row => [
    `65 entries of http.${field}`,
    extAuth({ http: { [field]: entries(65, '1') } }),
    `${at}.extAuth.http.${field}`,
    MANY,
  ]),
  ...['allowedRequestHeaders', 'allowedResponseHeaders'].map((field): Row => [
    `65 items of http.${field}`,
    extAuth({ http: { [field]: repeat(65, (i) => `x-${i}`) } }),
    `${at}.extAuth.http.${field}`,
    MANY,
  ]),
  ['64 entries of each gRPC map', extAuth({ grpc: { contextExtensions: entries(64, '1'), requestMetadata: entries(64, '1') } })],
  ['an empty allowed header', extAuth({ http: { allowedRequestHeaders: [''] } }), `${at}.extAuth.http.allowedRequestHeaders[0]`, SHORT],

  ['local limits of requests and tokens', limit({ requests: 1, unit: 'Seconds', burst: 0 }, { tokens: 1000, unit: 'Hours' })],
  ['a local limit of neither', limit({ unit: 'Minutes' }), `${at}.rateLimit.local[0]`, one('requests', 'tokens')],
  ['a local limit of both', limit({ requests: 1, tokens: 1, unit: 'Minutes' }), `${at}.rateLimit.local[0]`, one('requests', 'tokens')],
  ['a local limit without unit', limit({ requests: 1 }), `${at}.rateLimit.local[0].unit`, REQUIRED],
  ['a local limit per day', limit({ requests: 1, unit: 'Days' }), `${at}.rateLimit.local[0].unit`, UNSUPPORTED],
  ['a local limit of 0 requests', limit({ requests: 0, unit: 'Hours' }), `${at}.rateLimit.local[0].requests`, SMALL],
  ['a local limit of 0 tokens', limit({ tokens: 0, unit: 'Hours' }), `${at}.rateLimit.local[0].tokens`, SMALL],
  ['a negative burst', limit({ requests: 1, unit: 'Hours', burst: -1 }), `${at}.rateLimit.local[0].burst`, SMALL],
  ['16 local limits', limit(...repeat(16, () => ({ requests: 1, unit: 'Hours' })))],
  ['17 local limits', limit(...repeat(17, () => ({ requests: 1, unit: 'Hours' }))), `${at}.rateLimit.local`, MANY],
  ['no local limits', limit(), `${at}.rateLimit.local`, FEW],
  ['an empty rateLimit', traffic({ rateLimit: {} }), `${at}.rateLimit`, some('local', 'global')],
  ['a global limit', global({ descriptors: [{ ...descriptor, unit: 'Tokens' }] })],
  ['a global limit without domain', global({ domain: undefined }), `${at}.rateLimit.global.domain`, REQUIRED],
  ['a global limit with an empty domain', global({ domain: '' }), `${at}.rateLimit.global.domain`, SHORT],
  ['a domain of 257 characters', global({ domain: text(257) }), `${at}.rateLimit.global.domain`, LONG],
  ['no descriptors', global({ descriptors: [] }), `${at}.rateLimit.global.descriptors`, FEW],
  ['17 descriptors', global({ descriptors: repeat(17, () => descriptor) }), `${at}.rateLimit.global.descriptors`, MANY],
  ['a descriptor without entries', global({ descriptors: [{}] }), `${at}.rateLimit.global.descriptors[0].entries`, REQUIRED],
  [
    'a descriptor with 17 entries',
    global({ descriptors: [{ entries: repeat(17, () => descriptor.entries[0]) }] }),
    `${at}.rateLimit.global.descriptors[0].entries`,
    MANY,
  ],
  ['a descriptor of unknown unit', global({ descriptors: [{ ...descriptor, unit: 'Bytes' }] }), `${at}.rateLimit.global.descriptors[0].unit`, UNSUPPORTED],
  [
    'an entry name of 65 characters',
    global({ descriptors: [{ entries: [{ name: text(65), expression: '1' }] }] }),
    `${at}.rateLimit.global.descriptors[0].entries[0].name`,
    LONG,
  ],
  [
    'an entry without expression',
    global({ descriptors: [{ entries: [{ name: 'n' }] }] }),
    `${at}.rateLimit.global.descriptors[0].entries[0].expression`,
    REQUIRED,
  ],

  [
    'CORS with everything',
    cors({
      allowOrigins: ['https://a.com', 'http://*.b.com:8080', 'https://*'],
      allowCredentials: true,
      allowMethods: ['GET', 'PATCH'],
      allowHeaders: ['x-a'],
      exposeHeaders: ['x-b'],
      maxAge: 1,
    }),
  ],
  ['CORS with stars', cors({ allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], exposeHeaders: ['*'] })],
  ['CORS of another scheme', cors({ allowOrigins: ['ftp://a.com'] }), `${at}.cors.allowOrigins[0]`, PATTERN],
  ['CORS origin with path', cors({ allowOrigins: ['https://a.com/x'] }), `${at}.cors.allowOrigins[0]`, PATTERN],
  ['CORS origin star and another', cors({ allowOrigins: ['*', 'https://a.com'] }), `${at}.cors.allowOrigins`, "'*' may not be set together with other origins"],
  ['CORS method star and another', cors({ allowMethods: ['*', 'GET'] }), `${at}.cors.allowMethods`, "'*' may not be set together with other methods"],
  ['CORS allowHeaders star and another', cors({ allowHeaders: ['*', 'x-a'] }), `${at}.cors.allowHeaders`, "'*' may not be set together with other headers"],
  ['CORS exposeHeaders star and another', cors({ exposeHeaders: ['x-a', '*'] }), `${at}.cors.exposeHeaders`, "'*' may not be set together with other headers"],
  ['CORS with an unknown method', cors({ allowMethods: ['FETCH'] }), `${at}.cors.allowMethods[0]`, UNSUPPORTED],
  ['CORS with one origin twice', cors({ allowOrigins: ['https://a.com', 'https://a.com'] }), `${at}.cors.allowOrigins[1]`, DUPLICATE],
  ['CORS with 65 origins', cors({ allowOrigins: repeat(65, (i) => `https://a${i}.com`) }), `${at}.cors.allowOrigins`, MANY],
  ['CORS with 65 allowed headers', cors({ allowHeaders: repeat(65, (i) => `x-${i}`) }), `${at}.cors.allowHeaders`, MANY],
  ['CORS with maxAge 0', cors({ maxAge: 0 }), `${at}.cors.maxAge`, SMALL],

  ['CSRF without more', traffic({ csrf: {} })],
  ['CSRF with 16 origins', traffic({ csrf: { additionalOrigins: repeat(16, (i) => `https://a.com:${8000 + i}`) } })],
  ['CSRF with 17 origins', traffic({ csrf: { additionalOrigins: repeat(17, () => 'https://a.com') } }), `${at}.csrf.additionalOrigins`, MANY],
  ['CSRF with no origins', traffic({ csrf: { additionalOrigins: [] } }), `${at}.csrf.additionalOrigins`, FEW],
  ['CSRF origin without scheme', traffic({ csrf: { additionalOrigins: ['a.com'] } }), `${at}.csrf.additionalOrigins[0]`, PATTERN],
  ['CSRF origin with path', traffic({ csrf: { additionalOrigins: ['https://a.com/'] } }), `${at}.csrf.additionalOrigins[0]`, PATTERN],

  [
    'headerModifiers both ways',
    traffic({ headerModifiers: { request: { set: [{ name: 'x-a', value: '' }] }, response: { add: [{ name: 'x-a', value: 'v' }], remove: ['x-b'] } } }),
  ],
  ['empty headerModifiers', traffic({ headerModifiers: {} }), `${at}.headerModifiers`, some('request', 'response')],
  [
    'headerModifiers with 17 headers',
    traffic({ headerModifiers: { request: { set: repeat(17, (i) => ({ name: `x-${i}`, value: 'v' })) } } }),
    `${at}.headerModifiers.request.set`,
    MANY,
  ],
  [
    'headerModifiers with a pseudo header',
    traffic({ headerModifiers: { request: { set: [{ name: ':path', value: '/' }] } } }),
    `${at}.headerModifiers.request.set[0].name`,
    PATTERN,
  ],
  [
    'headerModifiers with one header twice',
    traffic({
      headerModifiers: {
        request: {
          add: [
            { name: 'x', value: '1' },
            { name: 'x', value: '2' },
          ],
        },
      },
    }),
    `${at}.headerModifiers.request.add[1]`,
    DUPLICATE,
  ],

  ['hostRewrite Auto', traffic({ hostRewrite: { mode: 'Auto' } })],
  ['hostRewrite None', traffic({ hostRewrite: { mode: 'None' } })],
  ['hostRewrite without mode', traffic({ hostRewrite: {} }), `${at}.hostRewrite.mode`, REQUIRED],
  ['hostRewrite of unknown mode', traffic({ hostRewrite: { mode: 'Static' } }), `${at}.hostRewrite.mode`, UNSUPPORTED],
  ['a timeout of 1ms', traffic({ timeouts: { request: '1ms' } })],
  ['a timeout of four units', traffic({ timeouts: { request: '1h2m3s4ms' } })],
  ['no timeout', traffic({ timeouts: {} }), `${at}.timeouts`, some('request')],
  ['a timeout of 0s', traffic({ timeouts: { request: '0s' } }), `${at}.timeouts.request`, 'must be at least 1ms'],
  ...['1.5s', '-1s', '10us', '1d', '5', '1h1m1s1ms1s', '100000s'].map((value): Row => [
    `a timeout of ${value}`,
    traffic({ timeouts: { request: value } }),
    `${at}.timeouts.request`,
    PATTERN,
  ]),
  ['a retry of everything', traffic({ retry: { codes: [500, 503], attempts: 2, backoff: '100ms' } })],
  ['a retry of code 399', traffic({ retry: { codes: [399] } }), `${at}.retry.codes[0]`, SMALL],
  ['a retry of code 600', traffic({ retry: { codes: [600] } }), `${at}.retry.codes[0]`, BIG],
  ['a retry of one code twice', traffic({ retry: { codes: [503, 503] } }), `${at}.retry.codes[1]`, DUPLICATE],
  ['a retry of 0 attempts', traffic({ retry: { attempts: 0 } }), `${at}.retry.attempts`, SMALL],
  ['a retry with bad backoff', traffic({ retry: { backoff: 'soon' } }), `${at}.retry.backoff`, PATTERN],
  ['a direct response', traffic({ directResponse: { status: 200, body: text(4096) } })],
  ['a direct response without status', traffic({ directResponse: { body: 'b' } }), `${at}.directResponse.status`, REQUIRED],
  ['a direct response of 199', traffic({ directResponse: { status: 199 } }), `${at}.directResponse.status`, SMALL],
  ['a direct response of 600', traffic({ directResponse: { status: 600 } }), `${at}.directResponse.status`, BIG],
  ['a direct response with an empty body', traffic({ directResponse: { status: 200, body: '' } }), `${at}.directResponse.body`, SHORT],
  ['a direct response with a body of 4097', traffic({ directResponse: { status: 200, body: text(4097) } }), `${at}.directResponse.body`, LONG],
]
