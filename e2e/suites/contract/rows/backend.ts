import {
  backend,
  backendPolicy,
  BIG,
  FEW,
  LONG,
  MANY,
  one,
  parameters,
  PATTERN,
  proxyBackend,
  repeat,
  REQUIRED,
  service,
  SHORT,
  SMALL,
  text,
  UNSUPPORTED,
  type Row,
} from './row.ts'

const at = 'spec.backend'
const host = { host: 'example.com', port: 443 }
const tls = (section: object) => backendPolicy({ tls: section })
const auth = (section: object) => backendPolicy({ auth: section })
const tokenEndpoint = { backendRef: service, path: '/token' }
const exchange = { grantType: 'TokenExchange', tokenEndpoint }
const own = { grantType: 'ClientCredentials', tokenEndpoint, secretRef: { name: 's' } }
const eviction = (section: object) => backendPolicy({ health: { eviction: section } })
const identity = { clientId: 'c', objectId: 'o', resourceId: 'r' }
const kindsOfBackend = one('ai', 'static', 'dynamicForwardProxy', 'mcp', 'cloudBackend')
const kindsOfAuth = one('key', 'secretRef', 'passthrough', 'cloudA', 'cloudB', 'cloudC', 'oauth')
const mtls = [{ name: 's' }]

export const backendRows: Row[] = [
  ['a static backend', backend({ static: host })],
  ['a static backend with policies', backend({ static: host, policies: { tls: {}, tcp: { connectTimeout: '100ms' } } })],
  ['a dynamic forward proxy', backend({ dynamicForwardProxy: {} })],
  [
    'a dynamic forward proxy with limits',
    backend({ dynamicForwardProxy: { allow: ['*.example.com', 'a_b.test', '10.0.0.0/8', 'fd00::/8', '::1'], deny: ['192.0.2.1', 'localhost'] } }),
  ],
  ...['10.0.0.0/33', '*', 'a.*.com', 'a:80', 'http://a', 'a..b', ''].map((entry): Row => [
    `the destination ${JSON.stringify(entry)}`,
    backend({ dynamicForwardProxy: { allow: [entry] } }),
    'spec.dynamicForwardProxy.allow[0]',
    entry === '' ? 'at least 1 chars long' : PATTERN,
  ]),
  ['an agent runtime', backend({ cloudBackend: { agentRuntime: { agentRuntimeRef: 'arn:aws:bedrock-agentcore:us-east-1:1:runtime/x', qualifier: 'q' } } })],
  ['no kind of backend', backend({}), 'spec', kindsOfBackend],
  ['two kinds of backend', backend({ static: host, dynamicForwardProxy: {} }), 'spec', kindsOfBackend],
  ['policies alone', backend({ policies: { tls: {} } }), 'spec', kindsOfBackend],
  ['empty policies', backend({ static: host, policies: {} }), 'spec.policies', 'at least one of the fields'],
  ['a static backend without host', backend({ static: { port: 1 } }), 'spec.static.host', REQUIRED],
  ['a static backend with an empty host', backend({ static: { host: '', port: 1 } }), 'spec.static.host', SHORT],
  ['a static backend with a host of 257', backend({ static: { host: text(257), port: 1 } }), 'spec.static.host', LONG],
  ['a static backend without port', backend({ static: { host: 'h' } }), 'spec.static.port', REQUIRED],
  ['a static backend with port 0', backend({ static: { host: 'h', port: 0 } }), 'spec.static.port', SMALL],
  ['a static backend with port 65536', backend({ static: { host: 'h', port: 65536 } }), 'spec.static.port', BIG],
  ['a cloudBackend of nothing', backend({ cloudBackend: {} }), 'spec.cloudBackend', one('agentRuntime')],
  ['an agent runtime without ref', backend({ cloudBackend: { agentRuntime: {} } }), 'spec.cloudBackend.agentRuntime.agentRuntimeRef', REQUIRED],
  [
    'ai policies on a static backend',
    backend({ static: host, policies: { ai: { modelAliases: { a: 'b' } } } }),
    'spec.policies.ai',
    'only be set on a backend of type ai',
  ],
  [
    'mcp policies on a static backend',
    backend({ static: host, policies: { mcp: { authorization: { policy: { matchExpressions: ['true'] } } } } }),
    'spec.policies.mcp',
    'only be set on a backend of type mcp',
  ],

  ['an empty backend section', backendPolicy({}), at, 'at least one of the fields'],
  [
    'every connection section',
    backendPolicy({
      tcp: { keepalive: {}, connectTimeout: '1s' },
      tls: {},
      http: { version: 'HTTP2', requestTimeout: '1ms' },
      tunnel: { backendRef: proxyBackend },
      transformation: { request: { remove: ['x'] } },
      auth: { passthrough: {} },
      health: {},
    }),
  ],
  ['connectTimeout 99ms', backendPolicy({ tcp: { connectTimeout: '99ms' } }), `${at}.tcp.connectTimeout`, 'must be at least 100ms'],
  ['backend keepalive with 65 retries', backendPolicy({ tcp: { keepalive: { retries: 65 } } }), `${at}.tcp.keepalive.retries`, BIG],
  ['HTTP version 3', backendPolicy({ http: { version: 'HTTP3' } }), `${at}.http.version`, UNSUPPORTED],
  ['requestTimeout 0ms', backendPolicy({ http: { requestTimeout: '0ms' } }), `${at}.http.requestTimeout`, 'must be at least 1ms'],
  ['a tunnel without backendRef', backendPolicy({ tunnel: {} }), `${at}.tunnel.backendRef`, REQUIRED],
  ['a tunnel to a Service without port', backendPolicy({ tunnel: { backendRef: { name: 's' } } }), `${at}.tunnel.backendRef.port`, 'must have port'],
  ['a tunnel to a Service', backendPolicy({ tunnel: { backendRef: service } })],
  ['an empty backend transformation', backendPolicy({ transformation: {} }), `${at}.transformation`, 'at least one of the fields'],

  [
    'TLS with everything',
    tls({ mtlsCertificateRef: mtls, caCertificateRefs: mtls, sni: 'a.example.com', verifySubjectAltNames: ['a.example.com'], alpnProtocols: ['h2'] }),
  ],
  ['TLS without verification', tls({ insecureSkipVerify: 'All' })],
  ['TLS without name verification', tls({ insecureSkipVerify: 'Hostname' })],
  ['TLS with an unknown insecureSkipVerify', tls({ insecureSkipVerify: 'true' }), `${at}.tls.insecureSkipVerify`, UNSUPPORTED],
  [
    'TLS with names and insecureSkipVerify',
    tls({ insecureSkipVerify: 'All', verifySubjectAltNames: ['a'] }),
    `${at}.tls`,
    'at most one of the fields in [verifySubjectAltNames insecureSkipVerify]',
  ],
  ['TLS with two client certificates', tls({ mtlsCertificateRef: repeat(2, (i) => ({ name: `s${i}` })) }), `${at}.tls.mtlsCertificateRef`, MANY],
  ['TLS with two CAs', tls({ caCertificateRefs: repeat(2, (i) => ({ name: `c${i}` })) }), `${at}.tls.caCertificateRefs`, MANY],
  ['TLS with an upper-case SNI', tls({ sni: 'A.example.com' }), `${at}.tls.sni`, PATTERN],
  ['TLS with a wildcard SNI', tls({ sni: '*.example.com' }), `${at}.tls.sni`, PATTERN],
  ['TLS with an empty SNI', tls({ sni: '' }), `${at}.tls.sni`, SHORT],
  ['TLS with an SNI of 254 characters', tls({ sni: text(254) }), `${at}.tls.sni`, LONG],
  ['TLS with no names', tls({ verifySubjectAltNames: [] }), `${at}.tls.verifySubjectAltNames`, FEW],
  ['TLS with 17 names', tls({ verifySubjectAltNames: repeat(17, (i) => `n${i}`) }), `${at}.tls.verifySubjectAltNames`, MANY],
  ['TLS with 17 ALPN protocols', tls({ alpnProtocols: repeat(17, (i) => `p${i}`) }), `${at}.tls.alpnProtocols`, MANY],

  ['auth by key', auth({ key: text(2048) })],
  ['auth by Secret', auth({ secretRef: { name: 's' } })],
  ['auth cloudA with ambient credentials', auth({ cloudA: {} })],
  ['auth cloudA by Secret', auth({ cloudA: { secretRef: { name: 's' } } })],
  ['auth cloudB by Secret', auth({ cloudB: { secretRef: { name: 's' } } })],
  ['auth cloudB by identity', auth({ cloudB: { managedIdentity: identity } })],
  ['auth cloudC', auth({ cloudC: {} })],
  ['auth oauth with token exchange', auth({ oauth: { ...exchange, secretRef: { name: 's' }, clientAuthentication: 'Body', subjectTokenType: 'JWT' } })],
  ['auth oauth with a JWT bearer', auth({ oauth: { grantType: 'JWTBearer', tokenEndpoint, subjectToken: 'jwt.rawToken', parameters: { x: 'y' } } })],
  ['auth oauth with client credentials', auth({ oauth: { ...own, scopes: ['a:b', 'c'], audiences: ['a'], resources: ['https://r'] } })],
  ['auth oauth without a grant', auth({ oauth: { tokenEndpoint } }), `${at}.auth.oauth.grantType`, REQUIRED],
  ['auth oauth with another grant', auth({ oauth: { ...exchange, grantType: 'Password' } }), `${at}.auth.oauth.grantType`, UNSUPPORTED],
  ['auth oauth without an endpoint', auth({ oauth: { grantType: 'TokenExchange' } }), `${at}.auth.oauth.tokenEndpoint`, REQUIRED],
  [
    'auth oauth with a URL',
    auth({ oauth: { ...exchange, tokenEndpoint: { ...tokenEndpoint, path: 'https://a/' } } }),
    `${at}.auth.oauth.tokenEndpoint.path`,
    PATTERN,
  ],
  ['auth oauth with two scopes in one', auth({ oauth: { ...exchange, scopes: ['a b'] } }), `${at}.auth.oauth.scopes[0]`, PATTERN],
  [
    'auth oauth of an unknown client',
    auth({ oauth: { grantType: 'ClientCredentials', tokenEndpoint } }),
    `${at}.auth.oauth.secretRef`,
    'secretRef is required',
  ],
  ['auth oauth of the gateway with a subject', auth({ oauth: { ...own, subjectToken: '"x"' } }), `${at}.auth.oauth.subjectToken`, 'may not be set'],
  [
    'auth oauth of the gateway with a subject type',
    auth({ oauth: { ...own, subjectTokenType: 'JWT' } }),
    `${at}.auth.oauth.subjectTokenType`,
    'only be set with',
  ],
  [
    'auth oauth with client authentication alone',
    auth({ oauth: { ...exchange, clientAuthentication: 'Body' } }),
    `${at}.auth.oauth.clientAuthentication`,
    'needs secretRef',
  ],
  [
    'auth oauth with a parameter of another field',
    auth({ oauth: { ...exchange, parameters: { audience: 'a' } } }),
    `${at}.auth.oauth.parameters`,
    'may not contain those that other fields set',
  ],
  ['auth cloudC with audience', auth({ cloudC: { type: 'IdToken', audience: 'a' } })],
  ['auth of nothing', auth({}), `${at}.auth`, kindsOfAuth],
  ['auth of two kinds', auth({ key: 'k', passthrough: {} }), `${at}.auth`, kindsOfAuth],
  ['auth by a key of 2049 characters', auth({ key: text(2049) }), `${at}.auth.key`, LONG],
  ['auth cloudB of nothing', auth({ cloudB: {} }), `${at}.auth.cloudB`, one('secretRef', 'managedIdentity')],
  ['auth cloudB of both', auth({ cloudB: { secretRef: { name: 's' }, managedIdentity: identity } }), `${at}.auth.cloudB`, one('secretRef', 'managedIdentity')],
  ...Object.keys(identity).map((field): Row => [
    `auth cloudB without ${field}`,
    auth({ cloudB: { managedIdentity: { ...identity, [field]: undefined } } }),
    `${at}.auth.cloudB.managedIdentity.${field}`,
    REQUIRED,
  ]),
  [
    'auth cloudC audience with AccessToken',
    auth({ cloudC: { type: 'AccessToken', audience: 'a' } }),
    `${at}.auth.cloudC.audience`,
    'only be set when type is IdToken',
  ],
  ['auth cloudC audience with the default type', auth({ cloudC: { audience: 'a' } }), `${at}.auth.cloudC.audience`, 'only be set when type is IdToken'],
  ['auth cloudC of unknown type', auth({ cloudC: { type: 'Jwt' } }), `${at}.auth.cloudC.type`, UNSUPPORTED],

  [
    'health with everything',
    backendPolicy({
      health: { unhealthyCondition: 'response.code >= 500', eviction: { duration: '1s', restoreHealth: 0, consecutiveFailures: 0, healthThreshold: 100 } },
    }),
  ],
  ['eviction for 1s', eviction({ duration: '1s' })],
  ['eviction for 999ms', eviction({ duration: '999ms' }), `${at}.health.eviction.duration`, 'must be at least 1s'],
  ['eviction for 1.5s', eviction({ duration: '1.5s' }), `${at}.health.eviction.duration`, PATTERN],
  ['restoreHealth -1', eviction({ restoreHealth: -1 }), `${at}.health.eviction.restoreHealth`, SMALL],
  ['restoreHealth 101', eviction({ restoreHealth: 101 }), `${at}.health.eviction.restoreHealth`, BIG],
  ['consecutiveFailures -1', eviction({ consecutiveFailures: -1 }), `${at}.health.eviction.consecutiveFailures`, SMALL],
  ['healthThreshold 101', eviction({ healthThreshold: 101 }), `${at}.health.eviction.healthThreshold`, BIG],
]

const overlay = { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } }, spec: { any: { thing: [1, null, 'x'] } } }

export const parametersRows: Row[] = [
  ['empty parameters', parameters({})],
  [
    'every overlay',
    parameters({ deployment: overlay, service: overlay, serviceAccount: overlay, podDisruptionBudget: overlay, horizontalPodAutoscaler: overlay }),
  ],
  ['logging', parameters({ logging: { level: 'info,upstream=debug', format: 'json' } })],
  ['logging in an unknown format', parameters({ logging: { format: 'xml' } }), 'spec.logging.format', UNSUPPORTED],
  ['any rawConfig', parameters({ rawConfig: { binds: [{ port: 80, anything: { goes: true } }] } })],
  ['rawConfig as text', parameters({ rawConfig: 'binds: []' }), 'spec.rawConfig', 'must be of type object'],
  ['an image with empty parts', parameters({ image: { registry: '', repository: 'r', tag: '', digest: 'sha256:0', pullPolicy: 'Whatever' } })],
  [
    'env with values of all sources',
    parameters({
      env: [
        { name: 'A', value: 'v' },
        { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
        { name: 'C', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } },
        { name: 'D', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'E', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
      ],
    }),
  ],
  ['env without name', parameters({ env: [{ value: 'v' }] }), 'spec.env[0].name', REQUIRED],
  [
    'env from a Secret without key',
    parameters({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's' } } }] }),
    'spec.env[0].valueFrom.secretKeyRef.key',
    REQUIRED,
  ],
  ['resources', parameters({ resources: { limits: { cpu: 1, memory: '1Gi' }, requests: { cpu: '100m' }, claims: [{ name: 'gpu' }] } })],
  ['a claim without name', parameters({ resources: { claims: [{ request: 'r' }] } }), 'spec.resources.claims[0].name', REQUIRED],
  ['one claim twice', parameters({ resources: { claims: [{ name: 'gpu' }, { name: 'gpu' }] } }), 'spec.resources.claims[1]', 'Duplicate value'],
  ['shutdown', parameters({ shutdown: { min: 0, max: 31536000 } })],
  ['shutdown with min equal to max', parameters({ shutdown: { min: 5, max: 5 } })],
  ['shutdown with min above max', parameters({ shutdown: { min: 6, max: 5 } }), 'spec.shutdown', 'min must be <= max'],
  ['shutdown without min', parameters({ shutdown: { max: 5 } }), 'spec.shutdown.min', REQUIRED],
  ['shutdown without max', parameters({ shutdown: { min: 5 } }), 'spec.shutdown.max', REQUIRED],
  ['a negative shutdown.min', parameters({ shutdown: { min: -1, max: 5 } }), 'spec.shutdown.min', SMALL],
  ['shutdown.max beyond a year', parameters({ shutdown: { min: 1, max: 31536001 } }), 'spec.shutdown.max', BIG],
  ['mesh', parameters({ mesh: { caAddress: 'https://ca:15012', trustDomain: 'td' } })],
  ['an overlay with a name', parameters({ deployment: { metadata: { name: 'x' } } }), '', 'unknown field "spec.deployment.metadata.name"'],
  ['an overlay spec as a list', parameters({ service: { spec: [] } }), 'spec.service.spec', 'must be of type object'],
  [
    'an overlay with a number as label',
    parameters({ service: { metadata: { labels: { a: 1 } } } }),
    'spec.service.metadata.labels.a',
    'must be of type string',
  ],
  ['an overlay of a ConfigMap', parameters({ configMap: overlay }), '', 'unknown field "spec.configMap"'],
]
