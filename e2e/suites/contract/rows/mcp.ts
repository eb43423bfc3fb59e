import {
  backend,
  backendPolicy,
  BIG,
  DUPLICATE,
  FEW,
  LONG,
  MANY,
  one,
  PATTERN,
  repeat,
  REQUIRED,
  service,
  SHORT,
  SMALL,
  some,
  text,
  UNSUPPORTED,
  type Row,
} from './row.ts'

const fixed = { host: 'h', port: 80 }
const target = (name: string, more: object = { static: fixed }) => ({ name, ...more })
const mcp = (...targets: object[]) => backend({ mcp: { targets } })
const section = (more: object) => backendPolicy({ mcp: more })
const jwks = { jwksPath: '/jwks', backendRef: service }
const authentication = (more: object) => section({ authentication: { jwks, ...more } })
const at = 'spec.mcp.targets'
const authAt = 'spec.backend.mcp.authentication'
const rules = { policy: { matchExpressions: ['mcp.tool.name == "echo"'] } }

const withTools = (tools: object) => mcp(target('a', { static: fixed, tools }))
const override = (more: object) => withTools({ overrides: [{ name: 'x', ...more }] })
const toolsAt = `${at}[0].tools`
const overrideAt = `${toolsAt}.overrides[0]`

const guards = (more: object) => section({ toolGuards: more })
const guardsAt = 'spec.backend.mcp.toolGuards'
const email = { regex: { builtins: ['Email'] } }

const guardRows: Row[] = [
  ['guards of arguments and results', guards({ input: [email], output: [{ regex: { matches: ['x'], action: 'Reject' }, response: { message: 'no' } }] })],
  ['an empty section of tool guards', guards({}), guardsAt, some('input', 'output')],
  ['nine guards of arguments', guards({ input: repeat(9, () => email) }), `${guardsAt}.input`, MANY],
  ['a list of tool guards without entries', guards({ output: [] }), `${guardsAt}.output`, FEW],
]

const pins = (more: object) => backend({ mcp: { targets: [target('a')], toolPins: { configMapRef: { name: 'pins', key: 'pins.json' }, ...more } } })
const pinRows: Row[] = [
  ['pins of tools', pins({ action: 'Hold' })],
  ['pins without an action', pins({}), 'spec.mcp.toolPins.action', REQUIRED],
  ['pins with another action', pins({ action: 'Hide' }), 'spec.mcp.toolPins.action', UNSUPPORTED],
]

const views = (...list: object[]) => backend({ mcp: { targets: [target('a')], views: list } })
const viewRows: Row[] = [
  ['views by path and host', views({ name: 'a', path: '/a', targets: ['a*'], tools: { include: ['x'] } }, { name: 'b', hostname: '*.example.com' })],
  ['a view without path and host', views({ name: 'a' }), 'spec.mcp.views[0]', some('path', 'hostname')],
  ['a view with empty tools', views({ name: 'a', path: '/', tools: {} }), 'spec.mcp.views[0].tools', some('include', 'exclude')],
  ['a view whose path does not begin with a slash', views({ name: 'a', path: 'a' }), 'spec.mcp.views[0].path', PATTERN],
  ['two views with one name', views({ name: 'a', path: '/a' }, { name: 'a', path: '/b' }), 'spec.mcp.views[1]', DUPLICATE],
]

const toolRows: Row[] = [
  [
    'a selection and changes of tools',
    withTools({
      include: ['get_*'],
      exclude: ['*b'],
      overrides: [
        {
          name: 'x',
          rename: 'y.z',
          description: 'd',
          arguments: { a: { b: [1] }, d: 'e' },
          computedArguments: { c: 'jwt.sub' },
        },
      ],
    }),
  ],
  ['tools of a selector', mcp(target('a', { selector: { services: {} }, tools: { include: ['x'] } }))],
  ['an empty tools section', withTools({}), toolsAt, some('include', 'exclude', 'overrides')],
  ['tools with an empty pattern', withTools({ include: [''] }), `${toolsAt}.include[0]`, SHORT],
  ['tools with 129 patterns', withTools({ exclude: repeat(129, (i) => `t${i}`) }), `${toolsAt}.exclude`, MANY],
  ['one pattern twice', withTools({ include: ['x', 'x'] }), `${toolsAt}.include[1]`, DUPLICATE],
  [
    'two overrides of one tool',
    withTools({
      overrides: [
        { name: 'x', rename: 'y' },
        { name: 'x', rename: 'z' },
      ],
    }),
    `${toolsAt}.overrides[1]`,
    DUPLICATE,
  ],
  ['a tool renamed to a name with a blank', override({ rename: 'a b' }), `${overrideAt}.rename`, PATTERN],
  ['a tool renamed to 129 characters', override({ rename: text(129) }), `${overrideAt}.rename`, LONG],
  ['an override without arguments', override({ arguments: {} }), `${overrideAt}.arguments`, 'should have at least 1 properties'],
  ['a computed argument without expression', override({ computedArguments: { a: '' } }), `${overrideAt}.computedArguments.a`, SHORT],
]

const document = { configMapRef: { name: 'm', key: 'k' } }
const withOpenApi = (openapi: object, more: object = { static: fixed }) => mcp(target('a', { ...more, openapi: { ...document, ...openapi } }))
const openApiAt = `${at}[0].openapi`

const openApiRows: Row[] = [
  ['an API at a static host', withOpenApi({ path: '/v1', include: [{ tag: 'a' }], exclude: [{ path: '* /x/**' }], rename: { 'GET /x': 'x' } })],
  ['an API at a Service', withOpenApi({ backendRef: service }, {})],
  ['an API at no place', withOpenApi({}, {}), `${at}[0]`, 'exactly one of static and openapi.backendRef'],
  ['an API at two places', withOpenApi({ backendRef: service }), `${at}[0]`, 'exactly one of static and openapi.backendRef'],
  ['an API with a selector', withOpenApi({}, { selector: { services: {} } }), `${at}[0]`, 'exactly one of static and openapi.backendRef'],
  ['an API with a path of an MCP server', withOpenApi({}, { static: { ...fixed, path: '/mcp' } }), `${at}[0]`, 'set openapi.path'],
  ['an API over SSE', withOpenApi({}, { static: { ...fixed, protocol: 'SSE' } }), `${at}[0]`, 'set openapi.path'],
  ['an API without document', mcp(target('a', { static: fixed, openapi: {} })), openApiAt, '[configMapRef url]'],
  ['an API with two documents', withOpenApi({ url: '/x' }), openApiAt, '[configMapRef url]'],
  ['an API at a URL', mcp(target('a', { static: fixed, openapi: { url: 'https://a.example/x?y', refreshInterval: '10s' } }))],
  ['an API at a URL with credentials', mcp(target('a', { static: fixed, openapi: { url: 'https://a:b@a.example/x' } })), `${openApiAt}.url`, PATTERN],
  [
    'an API that is fetched too often',
    mcp(target('a', { static: fixed, openapi: { url: '/x', refreshInterval: '9s' } })),
    `${openApiAt}.refreshInterval`,
    'at least 10s',
  ],
  ['an API in a ConfigMap with an interval', withOpenApi({ refreshInterval: '1m' }), openApiAt, 'refreshInterval is that of url'],
  ['a gRPC server with reflection', mcp(target('a', { static: fixed, grpc: {} }))],
  ['a gRPC server at a Service', mcp(target('a', { grpc: { ...document, backendRef: service, include: ['a.b.C/*'], exclude: ['*/D'] } }))],
  ['a gRPC server at no place', mcp(target('a', { grpc: {} })), `${at}[0]`, 'exactly one of static and grpc.backendRef'],
  ['a gRPC server at two places', mcp(target('a', { static: fixed, grpc: { backendRef: service } })), `${at}[0]`, 'exactly one of static and grpc.backendRef'],
  ['a gRPC server that is an API', withOpenApi({}, { static: fixed, grpc: {} }), `${at}[0]`, 'neither openapi nor selector'],
  ['a gRPC server with a path', mcp(target('a', { static: { ...fixed, path: '/x' }, grpc: {} })), `${at}[0]`, 'remove them'],
  ['a gRPC server with a wrong pattern', mcp(target('a', { static: fixed, grpc: { include: ['a b'] } })), `${at}[0].grpc.include[0]`, PATTERN],
  ['a command', mcp(target('a', { command: ['a', 'b'], env: { A: 'b' } }))],
  ['a command with a host', mcp(target('a', { command: ['a'], static: fixed })), `${at}[0]`, 'exactly one of'],
  ['a command in an image', mcp(target('a', { command: ['a'], image: 'ghcr.io/a/b:v1' }))],
  ['an image without command', mcp(target('a', { static: fixed, image: 'ghcr.io/a/b:v1' })), `${at}[0]`, 'image needs command'],
  ['an image without a registry', mcp(target('a', { command: ['a'], image: 'a/b:v1' })), `${at}[0].image`, PATTERN],
  ['an environment without command', mcp(target('a', { static: fixed, env: { A: 'b' } })), `${at}[0]`, 'env is that of command'],
  ['an API with a query in its path', withOpenApi({ path: '/v1?x' }), `${openApiAt}.path`, PATTERN],
  ['an API without operations', withOpenApi({ include: [] }), `${openApiAt}.include`, FEW],
  ['an API with an empty match', withOpenApi({ include: [{}] }), `${openApiAt}.include[0]`, some('operationId', 'tag', 'path')],
  ['an API with a path without method', withOpenApi({ include: [{ path: '/x' }] }), `${openApiAt}.include[0].path`, PATTERN],
  ['an API with a tool name of 65', withOpenApi({ rename: { x: text(65) } }), `${openApiAt}.rename.x`, LONG],
  ['an API with a tool name with a dot', withOpenApi({ rename: { x: 'a.b' } }), `${openApiAt}.rename.x`, PATTERN],
]

export const mcpRows: Row[] = [
  ...openApiRows,
  ['a static target', mcp(target('a', { static: { ...fixed, path: '/mcp', protocol: 'SSE', policies: { mcp: { authorization: rules }, tls: {} } } }))],
  [
    'a selector target',
    mcp(target('a', { selector: { services: { matchLabels: { a: 'b' } }, namespaces: { matchExpressions: [{ key: 'k', operator: 'Exists' }] } } })),
  ],
  ['a selector of all namespaces', mcp(target('a', { selector: { namespaces: {} } }))],
  ['32 targets', mcp(...repeat(32, (i) => target(`t${i}`)))],
  ['33 targets', mcp(...repeat(33, (i) => target(`t${i}`))), at, MANY],
  ['no targets', mcp(), at, FEW],
  ['mcp without targets', backend({ mcp: {} }), at, REQUIRED],
  ['one name twice', mcp(target('a'), target('a')), `${at}[1]`, DUPLICATE],
  ['a target without name', mcp({ static: fixed }), `${at}[0].name`, REQUIRED],
  ...['a_b', 'a+b', 'A', '-a', 'a.'].map((name): Row => [`a target named ${name}`, mcp(target(name)), `${at}[0].name`, PATTERN]),
  ['a target named a.b-c', mcp(target('a.b-c'))],
  ['a target name of 254', mcp(target(text(254))), `${at}[0].name`, LONG],
  ['a target of neither kind', mcp(target('a', {})), `${at}[0]`, one('selector', 'static')],
  ['a target of both kinds', mcp(target('a', { static: fixed, selector: { services: {} } })), `${at}[0]`, one('selector', 'static')],
  ['an empty selector', mcp(target('a', { selector: {} })), `${at}[0].selector`, some('namespaces', 'services')],
  [
    'a selector with an unknown operator',
    mcp(target('a', { selector: { services: { matchExpressions: [{ key: 'k', operator: 'Like' }] } } })),
    `${at}[0].selector.services.matchExpressions[0].operator`,
    UNSUPPORTED,
  ],
  ['a static target without host', mcp(target('a', { static: { port: 80 } })), `${at}[0].static.host`, REQUIRED],
  ['a static target without port', mcp(target('a', { static: { host: 'h' } })), `${at}[0].static.port`, REQUIRED],
  ['a static target with port 0', mcp(target('a', { static: { host: 'h', port: 0 } })), `${at}[0].static.port`, SMALL],
  ['a static target with port 65536', mcp(target('a', { static: { host: 'h', port: 65536 } })), `${at}[0].static.port`, BIG],
  ['a static target with a path of 1025', mcp(target('a', { static: { ...fixed, path: text(1025) } })), `${at}[0].static.path`, LONG],
  ['a static target over WebSocket', mcp(target('a', { static: { ...fixed, protocol: 'WebSocket' } })), `${at}[0].static.protocol`, UNSUPPORTED],
  ['a static target with empty policies', mcp(target('a', { static: { ...fixed, policies: {} } })), `${at}[0].static.policies`, 'at least one of the fields'],
  ['a static target with ai policies', mcp(target('a', { static: { ...fixed, policies: { ai: {} } } })), '', 'unknown field'],
  ['stateless sessions', backend({ mcp: { targets: [target('a')], sessionRouting: 'Stateless' } })],
  ['an unknown sessionRouting', backend({ mcp: { targets: [target('a')], sessionRouting: 'Sticky' } }), 'spec.mcp.sessionRouting', UNSUPPORTED],
  ['failureMode FailOpen', backend({ mcp: { targets: [target('a')], failureMode: 'FailOpen' } })],
  ['an unknown failureMode', backend({ mcp: { targets: [target('a')], failureMode: 'Open' } }), 'spec.mcp.failureMode', UNSUPPORTED],
  ...['Conditional', 'Always', 'Never'].map((prefixMode): Row => [`prefixMode ${prefixMode}`, backend({ mcp: { targets: [target('a')], prefixMode } })]),
  ['an unknown prefixMode', backend({ mcp: { targets: [target('a')], prefixMode: 'Sometimes' } }), 'spec.mcp.prefixMode', UNSUPPORTED],
  ['portable names of tools', backend({ mcp: { targets: [target('a')], toolNames: 'Portable' } })],
  ['an unknown toolNames', backend({ mcp: { targets: [target('a')], toolNames: 'Short' } }), 'spec.mcp.toolNames', UNSUPPORTED],
  ['a search of tools', backend({ mcp: { targets: [target('a')], toolSearch: 'Enabled' } })],
  ['an unknown toolSearch', backend({ mcp: { targets: [target('a')], toolSearch: 'On' } }), 'spec.mcp.toolSearch', UNSUPPORTED],
  ...toolRows,
  ...guardRows,
  ...pinRows,
  ...viewRows,
  ['mcp policies on an mcp backend', backend({ mcp: { targets: [target('a')] }, policies: { mcp: { authorization: rules } } })],
  [
    'ai policies on an mcp backend',
    backend({ mcp: { targets: [target('a')] }, policies: { ai: { modelAliases: {} } } }),
    'spec.policies.ai',
    'only be set on a backend of type ai',
  ],

  ['an empty mcp section', section({}), 'spec.backend.mcp', some('authorization', 'authentication', 'toolGuards')],
  ['mcp authorization', section({ authorization: { ...rules, action: 'Deny' } })],
  ['mcp authorization without policy', section({ authorization: {} }), 'spec.backend.mcp.authorization.policy', REQUIRED],
  [
    'mcp authentication with everything',
    authentication({
      resourceMetadata: { scopesSupported: ['a'], resource: 'https://x', deep: { er: 1 } },
      provider: 'IdpKind2',
      issuer: 'https://idp',
      audiences: ['a'],
      mode: 'Permissive',
    }),
  ],
  ['mcp authentication with IdpKind1', authentication({ provider: 'IdpKind1' })],
  ['mcp authentication without jwks', section({ authentication: {} }), `${authAt}.jwks`, REQUIRED],
  ['mcp authentication without jwksPath', section({ authentication: { jwks: { backendRef: service } } }), `${authAt}.jwks.jwksPath`, REQUIRED],
  [
    'mcp authentication caching for 1m',
    section({ authentication: { jwks: { ...jwks, cacheDuration: '1m' } } }),
    `${authAt}.jwks.cacheDuration`,
    'must be at least 5m',
  ],
  ['mcp authentication with inline keys', section({ authentication: { jwks: { inline: '{}' } } }), '', 'unknown field'],
  ['mcp authentication by an unknown provider', authentication({ provider: 'IdpKind3' }), `${authAt}.provider`, UNSUPPORTED],
  ['mcp authentication in an unknown mode', authentication({ mode: 'Off' }), `${authAt}.mode`, UNSUPPORTED],
  ['mcp authentication with no audiences', authentication({ audiences: [] }), `${authAt}.audiences`, FEW],
  ['mcp authentication with 65 audiences', authentication({ audiences: repeat(65, (i) => `a${i}`) }), `${authAt}.audiences`, MANY],
  ['mcp authentication with an issuer of 257', authentication({ issuer: text(257) }), `${authAt}.issuer`, LONG],
]
