import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import { FEW, gatewayTarget, LONG, MANY, one, PATTERN, policy, repeat, REQUIRED, routeTarget, some, text, type Row } from './row.ts'

const headers = { request: { remove: ['x-a'] } }
const traffic = { headerModifiers: headers }

interface Target {
  group: string
  kind: string
  name: string
  sectionName?: string
}
const target = (group: string, kind: string, sectionName?: string): Target => ({
  group,
  kind,
  name: 'x',
  ...(sectionName === undefined ? {} : { sectionName }),
})

/** Columns of the target matrix (operator.md §4.7). */
const targets: Readonly<Record<string, Target>> = {
  'a Gateway': target(GATEWAY_GROUP, 'Gateway'),
  'a listener of a Gateway': target(GATEWAY_GROUP, 'Gateway', 'http'),
  'an HTTPRoute': target(GATEWAY_GROUP, 'HTTPRoute'),
  'a GRPCRoute': target(GATEWAY_GROUP, 'GRPCRoute'),
  'a rule of an HTTPRoute': target(GATEWAY_GROUP, 'HTTPRoute', 'rule'),
  'a rule of a GRPCRoute': target(GATEWAY_GROUP, 'GRPCRoute', 'rule'),
  'a ListenerSet': target(GATEWAY_GROUP, 'ListenerSet'),
  'a Service': target('', 'Service'),
  'a port of a Service': target('', 'Service', '80'),
  'a ProxyBackend': target(GROUP, 'ProxyBackend'),
  'a part of a ProxyBackend': target(GROUP, 'ProxyBackend', 'sub'),
  'an InferencePool': target('inference.networking.k8s.io', 'InferencePool'),
}

interface Section {
  spec: Record<string, unknown>
  /** Allowed targets. */
  allowed: readonly string[]
  field: string
  gist: string
}
const gateway = ['a Gateway']
const routes = ['an HTTPRoute', 'a GRPCRoute', 'a rule of an HTTPRoute', 'a rule of a GRPCRoute']
const trafficTargets = [...gateway, 'a listener of a Gateway', ...routes, 'a ListenerSet', 'an InferencePool']
const everything = Object.keys(targets)
const frontendSection = (section: unknown): Section => ({ spec: { frontend: section }, allowed: gateway, field: 'spec.frontend', gist: 'frontend' })

/** Rows of the target matrix. */
const sections: Readonly<Record<string, Section>> = {
  'frontend.tcp': frontendSection({ tcp: { keepalive: {} } }),
  'frontend.accessLog': frontendSection({ accessLog: {} }),
  traffic: { spec: { traffic }, allowed: trafficTargets, field: 'spec.traffic', gist: 'traffic can only target' },
  'traffic in PreRouting': {
    spec: { traffic: { phase: 'PreRouting', cors: {} } },
    allowed: ['a Gateway', 'a listener of a Gateway', 'a ListenerSet'],
    field: 'spec.traffic.phase',
    gist: 'PreRouting can only target',
  },
  backend: { spec: { backend: { tcp: {} } }, allowed: everything, field: '', gist: '' },
  'backend.mcp': {
    spec: { backend: { mcp: { authorization: { policy: { matchExpressions: ['true'] } } } } },
    allowed: everything.filter((name) => !['a Service', 'a port of a Service', 'a part of a ProxyBackend'].includes(name)),
    field: 'spec.backend.mcp',
    gist: 'backend.mcp may not target',
  },
  'backend.ai': {
    spec: { backend: { ai: { modelAliases: { fast: 'm' } } } },
    allowed: everything.filter((name) => !['a Service', 'a port of a Service'].includes(name)),
    field: 'spec.backend.ai',
    gist: 'backend.ai may not target a Service',
  },
}

const matrix: Row[] = Object.entries(sections).flatMap(([section, { spec, allowed, field, gist }]) =>
  Object.entries(targets).map(([name, ref]): Row => {
    const object = policy({ targetRefs: [ref], ...spec })
    return allowed.includes(name) ? [`${section} may target ${name}`, object] : [`${section} may not target ${name}`, object, field, gist]
  }),
)

const selector = (group: string, kind: string, more: object = {}) => ({ group, kind, matchLabels: { a: 'b' }, ...more })
const httpRoutes = selector(GATEWAY_GROUP, 'HTTPRoute')
const gateways = selector(GATEWAY_GROUP, 'Gateway')

export const targetRows: Row[] = [
  ...matrix,
  ['targets by selector', policy({ targetSelectors: [httpRoutes], traffic })],
  ['a selector with empty matchLabels', policy({ targetSelectors: [{ ...httpRoutes, matchLabels: {} }], traffic })],
  ['a selector with sectionName', policy({ targetSelectors: [{ ...httpRoutes, sectionName: 'rule' }], traffic })],
  ['16 targets', policy({ targetRefs: repeat(16, (i) => ({ ...routeTarget, name: `r${i}` })), traffic })],
  ['16 selectors', policy({ targetSelectors: repeat(16, () => httpRoutes), traffic })],
  ['all three sections on a Gateway', policy({ targetRefs: [gatewayTarget], traffic, frontend: { accessLog: {} }, backend: { tcp: {} } })],
  [
    'targetRefs and targetSelectors',
    policy({ targetRefs: [routeTarget], targetSelectors: [httpRoutes], traffic }),
    'spec',
    one('targetRefs', 'targetSelectors'),
  ],
  ['no targets', policy({ traffic }), 'spec', one('targetRefs', 'targetSelectors')],
  ['an empty list of targets', policy({ targetRefs: [], traffic }), 'spec.targetRefs', FEW],
  ['an empty list of selectors', policy({ targetSelectors: [], traffic }), 'spec.targetSelectors', FEW],
  ['17 targets', policy({ targetRefs: repeat(17, () => routeTarget), traffic }), 'spec.targetRefs', MANY],
  ['17 selectors', policy({ targetSelectors: repeat(17, () => httpRoutes), traffic }), 'spec.targetSelectors', MANY],
  ['no section', policy({ targetRefs: [routeTarget] }), 'spec', some('traffic', 'frontend', 'backend')],
  ['an unknown section', policy({ targetRefs: [routeTarget], traffic, network: {} }), '', 'unknown field "spec.network"'],
  ['a target without name', policy({ targetRefs: [{ group: GATEWAY_GROUP, kind: 'HTTPRoute' }], traffic }), 'spec.targetRefs[0].name', REQUIRED],
  ['a target without kind', policy({ targetRefs: [{ group: GATEWAY_GROUP, name: 'r' }], traffic }), 'spec.targetRefs[0].kind', REQUIRED],
  ['a target without group', policy({ targetRefs: [{ kind: 'HTTPRoute', name: 'r' }], traffic }), 'spec.targetRefs[0].group', REQUIRED],
  ['a target with a name of 254 characters', policy({ targetRefs: [{ ...routeTarget, name: text(254) }], traffic }), 'spec.targetRefs[0].name', LONG],
  [
    'a target with an upper-case sectionName',
    policy({ targetRefs: [{ ...routeTarget, sectionName: 'Rule' }], traffic }),
    'spec.targetRefs[0].sectionName',
    PATTERN,
  ],
  [
    'a target with an empty sectionName',
    policy({ targetRefs: [{ ...routeTarget, sectionName: '' }], traffic }),
    'spec.targetRefs[0].sectionName',
    'at least 1 chars long',
  ],
  ['a target with port', policy({ targetRefs: [{ ...gatewayTarget, port: 80 }], frontend: { accessLog: {} } }), '', 'unknown field "spec.targetRefs[0].port"'],
  ['a target in another namespace', policy({ targetRefs: [{ ...routeTarget, namespace: 'n' }], traffic }), '', 'unknown field "spec.targetRefs[0].namespace"'],
  ['a TCPRoute', policy({ targetRefs: [target(GATEWAY_GROUP, 'TCPRoute')], backend: { tcp: {} } }), 'spec.targetRefs[0]', 'may only reference'],
  ['a TLSRoute', policy({ targetRefs: [target(GATEWAY_GROUP, 'TLSRoute')], backend: { tcp: {} } }), 'spec.targetRefs[0]', 'may only reference'],
  ['a Gateway of another group', policy({ targetRefs: [target('example.com', 'Gateway')], traffic }), 'spec.targetRefs[0]', 'may only reference'],
  ['a Service of another group', policy({ targetRefs: [target(GROUP, 'Service')], backend: { tcp: {} } }), 'spec.targetRefs[0]', 'may only reference'],
  [
    'a GatewayClass by selector',
    policy({ targetSelectors: [selector(GATEWAY_GROUP, 'GatewayClass')], traffic }),
    'spec.targetSelectors[0]',
    'may only reference',
  ],
  ['targets of two kinds', policy({ targetRefs: [routeTarget, gatewayTarget], traffic }), 'spec.targetRefs', 'only one Kind'],
  ['selectors of two kinds', policy({ targetSelectors: [httpRoutes, gateways], traffic }), 'spec.targetSelectors', 'only one Kind'],
  [
    'a selector without matchLabels',
    policy({ targetSelectors: [{ group: GATEWAY_GROUP, kind: 'HTTPRoute' }], traffic }),
    'spec.targetSelectors[0].matchLabels',
    REQUIRED,
  ],
  ['a selector with matchExpressions', policy({ targetSelectors: [{ ...httpRoutes, matchExpressions: [] }], traffic }), '', 'unknown field'],
  [
    'a selector with a label value of 64 characters',
    policy({ targetSelectors: [selector(GATEWAY_GROUP, 'HTTPRoute', { matchLabels: { a: text(64) } })], traffic }),
    'spec.targetSelectors[0].matchLabels.a',
    LONG,
  ],
  [
    'frontend on routes by selector',
    policy({ targetSelectors: [httpRoutes], frontend: { accessLog: {} } }),
    'spec.frontend',
    'frontend can only target a Gateway',
  ],
  [
    'frontend on listeners by selector',
    policy({ targetSelectors: [{ ...gateways, sectionName: 'http' }], frontend: { accessLog: {} } }),
    'spec.frontend',
    'not a listener',
  ],
  [
    'frontend where only the second target is a listener',
    policy({ targetRefs: [gatewayTarget, { ...gatewayTarget, sectionName: 'http' }], frontend: { accessLog: {} } }),
    'spec.frontend',
    'not a listener',
  ],
  ['traffic on Services by selector', policy({ targetSelectors: [selector('', 'Service')], traffic }), 'spec.traffic', 'traffic can only target'],
  [
    'PreRouting on routes by selector',
    policy({ targetSelectors: [httpRoutes], traffic: { phase: 'PreRouting', cors: {} } }),
    'spec.traffic.phase',
    'PreRouting can only target',
  ],
  [
    'backend.ai on Services by selector',
    policy({ targetSelectors: [selector('', 'Service')], backend: { ai: { modelAliases: {} } } }),
    'spec.backend.ai',
    'may not target a Service',
  ],
  ['a Service port 65535', policy({ targetRefs: [target('', 'Service', '65535')], backend: { tcp: {} } })],
  ['a Service port by name', policy({ targetRefs: [target('', 'Service', 'http')], backend: { tcp: {} } }), 'spec.targetRefs[0].sectionName', 'numeric port'],
  ['a Service port 0', policy({ targetRefs: [target('', 'Service', '0')], backend: { tcp: {} } }), 'spec.targetRefs[0].sectionName', 'numeric port'],
  ['a Service port 65536', policy({ targetRefs: [target('', 'Service', '65536')], backend: { tcp: {} } }), 'spec.targetRefs[0].sectionName', 'numeric port'],
  [
    'a Service port by selector, by name',
    policy({ targetSelectors: [selector('', 'Service', { sectionName: 'http' })], backend: { tcp: {} } }),
    'spec.targetSelectors[0].sectionName',
    'numeric port',
  ],
]
