import { describe, expect, test } from '@jest/globals'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readChunk } from '../source/document.ts'
import type { HTTPRoute, KubeObject } from '../source/objects.ts'
import { createReader } from '../source/reader.ts'
import { createSnapshot } from '../source/snapshot.ts'
import type { TranslateOptions } from './common/context.ts'
import { compileHttpMatches } from './common/matches.ts'
import { parseAddress } from './backend/service.ts'
import { translate } from './translate.ts'
import type { Condition, Translation } from '../model/translation.ts'

const objectsOf = (manifests: string): KubeObject[] => manifests.split('\n---\n').flatMap((text) => readChunk(text).items.flatMap(({ object }) => object ?? []))
const base = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: proxy}
spec: {controllerName: proxy.dev/proxy}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: proxy, listeners: [{name: http, port: 80, protocol: HTTP}]}`
const policy = (body: string): string => `apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  ${body}`

const messageOf = (translation: Translation, kind: string, key: string): unknown =>
  translation.gateways.get('default/gw')?.find((message) => message.kind === kind && message.key === key)?.message
const ancestorsOf = (translation: Translation): string[][] => {
  const status = translation.statuses.find(({ kind }) => kind === 'ProxyPolicy')?.status as { ancestors: { conditions: Condition[] }[] }
  return status.ancestors.map(({ conditions }) => conditions.map(({ type, status: holds, reason }) => `${type}=${holds} ${reason}`))
}

test.each(['cloudGuardrails', 'bedrockGuardrails'])(
  'the guard %s with invalid connection policies has no credentials, and the status names the field as it is written',
  (name) => {
    const manifest = `apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: llm}
spec:
  ai: {provider: {openai: {}}}
  policies: {ai: {promptGuard: {request: [{${name}: {identifier: i, version: "1", region: r}}]}}}`
    const [backend] = objectsOf(manifest)
    // The directory source would reject this; an API server does not see it under the neutral name.
    const guard = (backend as unknown as { spec: { policies: { ai: { promptGuard: { request: Record<string, object>[] } } } } }).spec.policies.ai.promptGuard
      .request[0]
    Object.assign(guard?.[name] ?? {}, { policies: { auth: { awz: {} } } })
    const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: llm}]}]}`
    const translation = translate(createSnapshot([...objectsOf(`${base}\n---\n${route}`), ...(backend === undefined ? [] : [backend])]), {
      checkExpression: () => undefined,
    })
    expect(JSON.stringify(messageOf(translation, 'backend', 'default/llm'))).toContain('"policies":{"auth":{"secretRef":{"invalid":')
    expect(JSON.stringify(translation.statuses.find(({ kind }) => kind === 'ProxyBackend'))).toMatch(
      new RegExp(`promptGuard\\.request\\.0\\.${name}\\.policies\\.auth.*awz`),
    )
  },
)

test('guards of tools that the API server did not check reject everything if they are not valid, and the status names the field', () => {
  const manifest = `apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: tools}
spec:
  mcp: {targets: [{name: a, static: {host: tools.example, port: 80}}]}
  policies: {mcp: {toolGuards: {input: [{regex: {builtins: [Email]}}]}}}`
  const [backend] = objectsOf(manifest)
  const guards = (backend as unknown as { spec: { policies: { mcp: { toolGuards: { input: object[] } } } } }).spec.policies.mcp.toolGuards
  const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: tools}]}]}`
  const run = (): Translation =>
    translate(createSnapshot([...objectsOf(`${base}\n---\n${route}`), ...(backend === undefined ? [] : [backend])]), { checkExpression: () => undefined })
  expect(JSON.stringify(messageOf(run(), 'backend', 'default/tools'))).toContain('"toolGuards":{"input":[{"regex":{"builtins":["Email"]')
  guards.input = [{ regex: { builtins: ['Mail'] } }]
  const translation = run()
  expect(JSON.stringify(messageOf(translation, 'backend', 'default/tools'))).toContain(
    '"toolGuards":{"input":[{"regex":{"matches":["("]}}],"output":[{"regex":{"matches":["("]}}]}',
  )
  expect(JSON.stringify(translation.statuses.find(({ kind }) => kind === 'ProxyBackend'))).toMatch(/mcp\.toolGuards\.input\.0\.regex\.builtins\.0.*PX1312/)
})

test.each([
  [{ loadBalancer: { type: 'ConsistentHash', consistentHash: { type: 'Header' } } }, /loadBalancer\.consistentHash\.name.*name is required.*PX1312/],
  [{ loadBalancer: { type: 'Maglev' } }, /loadBalancer\.type.*PX1312/],
])('a section of a ProxyBackend that the API server did not check has no effect if it is not valid, and the status names the field: %j', (section, message) => {
  const [backend] = objectsOf('apiVersion: proxy.dev/v1alpha1\nkind: ProxyBackend\nmetadata: {name: api}\nspec: {static: {host: api.example.com, port: 80}}')
  if (backend !== undefined) Object.assign((backend as unknown as { spec: object }).spec, { policies: { ...section, auth: { key: 'k' } } })
  const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: api}]}]}`
  const translation = translate(createSnapshot([...objectsOf(`${base}\n---\n${route}`), ...(backend === undefined ? [] : [backend])]), {
    checkExpression: () => undefined,
  })
  expect(JSON.stringify(messageOf(translation, 'backend', 'default/api'))).toContain('"policies":{"auth":{"key":"k"}}')
  expect(JSON.stringify(translation.statuses.find(({ kind }) => kind === 'ProxyBackend'))).toMatch(message)
})

test('credentials of a ProxyBackend that are not valid become unusable ones, and a Secret must have their entries', () => {
  const manifests = `${base}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: api}]}]}
---
apiVersion: v1
kind: Secret
metadata: {name: client}
stringData: {clientId: c}
---
apiVersion: v1
kind: Secret
metadata: {name: broken}
stringData: {key: c}`
  const tokenEndpoint = { backendRef: { group: 'proxy.dev', kind: 'ProxyBackend', name: 'api' }, path: '/token' }
  // The manifest of the kind does not describe the field, so that the API server admits anything in it.
  const run = (auth: object): { readonly backend: string; readonly status: string } => {
    const [backend] = objectsOf('apiVersion: proxy.dev/v1alpha1\nkind: ProxyBackend\nmetadata: {name: api}\nspec: {static: {host: api.example.com, port: 80}}')
    if (backend !== undefined) Object.assign((backend as unknown as { spec: object }).spec, { policies: { auth } })
    const translation = translate(createSnapshot([...objectsOf(manifests), ...(backend === undefined ? [] : [backend])]), { checkExpression: () => undefined })
    const status = translation.statuses.find(({ kind }) => kind === 'ProxyBackend')
    return { backend: JSON.stringify(messageOf(translation, 'backend', 'default/api')), status: JSON.stringify(status) }
  }
  const good = run({ oauth: { grantType: 'TokenExchange', tokenEndpoint, scopes: ['a'] } })
  expect(good.backend).toContain(
    '"oauth":{"grantType":"TokenExchange","tokenEndpoint":{"backendRef":{"backend":"default/api"},"path":"/token"},"scopes":["a"]}',
  )
  expect(good.status).not.toContain('PX13')
  const bad = run({ oauth: { grantType: 'Password', tokenEndpoint } })
  expect(bad.status).toMatch(/auth\.oauth\.grantType.*PX1312/)
  expect(bad.backend).toMatch(/"tokenEndpoint":\{"backendRef":\{"invalid".*"secretRef":\{"invalid":/)
  expect(run({ oauth: { grantType: 'ClientCredentials', tokenEndpoint, secretRef: { name: 'client' } } }).status).toMatch(/client has no clientSecret.*PX1304/)
  const signing = { issuer: 'https://gateway', audiences: ['api'], secretRef: { name: 'client' } }
  expect(run({ jwtSign: signing }).status).toMatch(/client has no key.*PX1304/)
  expect(run({ jwtSign: { ...signing, secretRef: { name: 'broken' } } }).status).toMatch(
    /entry key of Secret default\/broken holds no unencrypted private key in PEM.*PX1356/,
  )
  const forged = run({ jwtSign: { ...signing, claims: { exp: '9999999999' } } })
  expect(forged.status).toMatch(/auth\.jwtSign\.claims.*claims may not contain.*PX1312/)
  expect(forged.backend).toMatch(/"jwtSign":\{"issuer":"-","audiences":\["-"\],"secretRef":\{"invalid":/)
})

test.each([
  ['of a ConfigMap are part of the config', '{"a":{}}', '{"action":"Hold","pins":"{\\"a\\":{}}"}', undefined],
  ['that do not exist approve no tool', undefined, '{"action":"Hold","invalid":"ConfigMap default/pins not found; no tool is approved"}', 'not found'],
  [
    'that are not usable approve no tool',
    '[]',
    '"invalid":"pins.json of ConfigMap default/pins is not a JSON object of targets; no tool is approved"}',
    'is not a JSON object',
  ],
])('pins of MCP tools %s', (_, pins, expected, problem) => {
  const manifests = `apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: tools}
spec:
  mcp:
    toolPins: {configMapRef: {name: pins, key: pins.json}, action: Hold}
    targets: [{name: a, static: {host: tools.example, port: 80}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: tools}]}]}`
  const map = pins === undefined ? '' : `\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: pins}\ndata: {pins.json: '${pins}'}`
  const translation = translate(createSnapshot(objectsOf(`${base}\n---\n${manifests}${map}`)), { checkExpression: () => undefined })
  expect(JSON.stringify(messageOf(translation, 'backend', 'default/tools'))).toContain(expected)
  const status = JSON.stringify(translation.statuses.find(({ kind }) => kind === 'ProxyBackend'))
  if (problem === undefined) expect(status).toContain('"reason":"Accepted"')
  else expect(status).toMatch(new RegExp(`PartiallyValid.*mcp\\.toolPins\\.configMapRef.*${problem}.*PX1333`))
})

describe('expressions that do not parse (operator.md §10 case 56)', () => {
  const options: TranslateOptions = { checkExpression: (text) => (text.includes('(((') ? `no end in ${text}` : undefined) }
  test.each<[sentence: string, body: string, traffic: object | undefined, conditions: string[]]>([
    [
      'one bad field of two stays and fails where it stands, the other is in force',
      `traffic: {transformation: {request: {body: '((('}}, timeouts: {request: 1s}}`,
      { transformation: { request: { body: '(((' } }, timeouts: { request: '1s' }, phase: 'PostRouting' },
      ['Accepted=True PartiallyValid', 'Attached=True Attached'],
    ],
    [
      'only a bad field: nothing is attached',
      `traffic: {transformation: {request: {body: '((('}}}`,
      undefined,
      ['Accepted=False Invalid', 'Attached=False Pending'],
    ],
    [
      'one bad header of two stays and is removed, the other is in force',
      `traffic: {transformation: {request: {set: [{name: x-bad, value: '((('}, {name: x-good, value: '"1"'}]}}}`,
      {
        transformation: {
          request: {
            set: [
              { name: 'x-bad', value: '(((' },
              { name: 'x-good', value: '"1"' },
            ],
          },
        },
        phase: 'PostRouting',
      },
      ['Accepted=True PartiallyValid', 'Attached=True Attached'],
    ],
    [
      'a bad header beside headers to remove stays',
      `traffic: {transformation: {request: {set: [{name: x-bad, value: '((('}], remove: [x-a]}}}`,
      { transformation: { request: { set: [{ name: 'x-bad', value: '(((' }], remove: ['x-a'] } }, phase: 'PostRouting' },
      ['Accepted=True PartiallyValid', 'Attached=True Attached'],
    ],
    [
      'a bad descriptor beside a good one stays',
      `traffic: {rateLimit: {global: {domain: d, backendRef: {name: nope, port: 80}, descriptors: [{entries: [{name: a, expression: '((('}, {name: b, expression: '"x"'}]}]}}}`,
      expect.objectContaining({ rateLimit: { global: expect.objectContaining({ descriptors: [expect.anything()] }) } }),
      ['Accepted=True PartiallyValid', 'Attached=True Attached'],
    ],
    [
      'a rate limit with a bad key stays',
      `traffic: {rateLimit: {local: [{requests: 1, unit: Hours, key: '((('}]}}`,
      expect.objectContaining({ rateLimit: { local: [{ requests: 1, unit: 'Hours', key: '(((' }] } }),
      ['Accepted=True PartiallyValid', 'Attached=True Attached'],
    ],
    [
      'only bad headers: nothing is attached',
      `traffic: {transformation: {response: {set: [{name: x-bad, value: '((('}, {name: x-worse, value: '((('}]}}}`,
      undefined,
      ['Accepted=False Invalid', 'Attached=False Pending'],
    ],
    [
      'a security field stays and fails closed',
      `traffic: {authorization: {policy: {matchExpressions: ['(((', 'true']}}}`,
      { authorization: { policy: { matchExpressions: ['(((', 'true'] }, action: 'Allow' }, phase: 'PostRouting' },
      ['Accepted=True PartiallyValid', 'Attached=True Attached'],
    ],
  ])('%s', (_, body, traffic, conditions) => {
    const translation = translate(createSnapshot(objectsOf(`${base}\n---\n${policy(body)}`)), options)
    const message = messageOf(translation, 'policy', 'traffic/default/p:0') as { traffic: object } | undefined
    expect(message?.traffic).toEqual(traffic)
    expect(ancestorsOf(translation)).toEqual([conditions])
  })
})

test('tracing with a bad attribute stays on, and the status names the attribute', () => {
  const body = `frontend: {tracing: {backendRef: {name: otel, port: 4317}, attributes: {add: [{name: a, expression: '((('}, {name: b, expression: '"x"'}]}}}`
  const options: TranslateOptions = { checkExpression: (text) => (text.includes('(((') ? 'no end' : undefined) }
  const translation = translate(createSnapshot(objectsOf(`${base}\n---\n${policy(body)}`)), options)
  const message = messageOf(translation, 'policy', 'frontend/default/p:0') as { frontend: object } | undefined
  expect(message?.frontend).toMatchObject({
    tracing: {
      attributes: {
        add: [
          { name: 'a', expression: '(((' },
          { name: 'b', expression: '"x"' },
        ],
      },
    },
  })
  expect(JSON.stringify(translation.statuses)).toContain('frontend.tracing.attributes.add.0.expression: no end in')
})

describe('values of a newer API than ours', () => {
  test('a rule whose only match has an unknown type is dropped, it does not match everything', () => {
    const [route] = objectsOf(
      'apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {parentRefs: [{name: gw}], rules: [{}]}',
    ) as [HTTPRoute]
    const newer: HTTPRoute = { ...route, spec: { ...route.spec, rules: [{ matches: [{ path: { type: 'Glob', value: '/*' } }] }] } }
    const translation = translate(createSnapshot([...objectsOf(base), newer]))
    expect(messageOf(translation, 'route', 'default/r.00')).toBeUndefined()
    const status = translation.statuses.find(({ kind }) => kind === 'HTTPRoute')?.status
    expect(status).toMatchObject({ parents: [{ conditions: [{ type: 'Accepted', status: 'False', reason: 'UnsupportedValue' }, {}] }] })
  })

  test('an unknown match type is a problem with a fix', () => {
    expect(compileHttpMatches([{ path: { type: 'Glob', value: '/*' } }]).problems).toEqual([
      'path match type Glob is not supported; use Exact, PathPrefix, RegularExpression',
    ])
  })
})

test('a route has entries for as many default Gateways as its status has room for', () => {
  const gateways = Array.from({ length: 33 }, (_, index) =>
    [
      `apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: default-${index}}`,
      'spec: {gatewayClassName: proxy, defaultScope: All, listeners: [{name: http, port: 80, protocol: HTTP}]}',
    ].join('\n'),
  )
  const route = 'apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {useDefaultGateways: All, rules: [{}]}'
  const { statuses } = translate(createSnapshot(objectsOf([base, ...gateways, route].join('\n---\n'))))
  const status = statuses.find(({ kind }) => kind === 'HTTPRoute')?.status as { parents: object[] }
  expect(status.parents).toHaveLength(32)
})

describe('the order of objects does not matter', () => {
  const root = join(import.meta.dirname, 'testdata')
  test.each(readdirSync(root))('%s', async (name) => {
    const { objects } = await createReader(join(root, name, 'in.yaml')).load()
    expect(translate(createSnapshot(objects.toReversed()))).toEqual(translate(createSnapshot(objects)))
  })
})

describe('addresses of the endpoints annotation', () => {
  test.each<[string, object | undefined]>([
    ['10.0.0.1', { address: '10.0.0.1', port: 80 }],
    ['10.0.0.1:3000', { address: '10.0.0.1', port: 3000 }],
    ['localhost:3000', { address: 'localhost', port: 3000 }],
    ['::1', { address: '::1', port: 80 }],
    ['[::1]:3000', { address: '::1', port: 3000 }],
    ['[::1]', { address: '::1', port: 80 }],
    ['10.0.0.1:0', undefined],
    ['10.0.0.1:70000', undefined],
    ['http://a', undefined],
    ['', undefined],
  ])('%s', (text, expected) => expect(parseAddress(text, 80)).toEqual(expected))
})

describe('a Secret of cloudB', () => {
  const objects = (data: string): string => `${base}
---
apiVersion: v1
kind: Secret
metadata: {name: azure}
stringData: ${data}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: b}
spec: {static: {host: a.example, port: 80}, policies: {auth: {cloudB: {secretRef: {name: azure}}}}}`

  test.each<[string, string, string]>([
    ['with the names of part 2', '{clientId: a, tenantId: b, clientSecret: c}', 'Backend successfully accepted'],
    ['with the names of other gateways (llm.md §1.6)', '{clientID: a, tenantID: b, clientSecret: c}', 'Backend successfully accepted'],
    ['without an entry', '{clientID: a, clientSecret: c}', 'Secret default/azure has no tenantId'],
  ])('%s', (_, data, message) => {
    const { statuses } = translate(createSnapshot(objectsOf(objects(data))))
    const status = statuses.find(({ kind }) => kind === 'ProxyBackend')?.status as { conditions: Condition[] }
    expect(status.conditions[0]?.message).toContain(message)
  })
})

describe('an ExternalName Service whose address is refused', () => {
  const routed = (kind: 'HTTPRoute' | 'TCPRoute', externalName: string): string =>
    `${base.replace(']}', ', {name: tcp, port: 81, protocol: TCP}]}')}
---
apiVersion: v1
kind: Service
metadata: {name: out}
spec: {type: ExternalName, externalName: "${externalName}"}
---
apiVersion: gateway.networking.k8s.io/${kind === 'HTTPRoute' ? 'v1' : 'v1alpha2'}
kind: ${kind}
metadata: {name: r}
spec: {parentRefs: [{name: gw, sectionName: ${kind === 'HTTPRoute' ? 'http' : 'tcp'}}], rules: [{backendRefs: [{name: out, port: 8080}]}]}`
  const partialOf = (kind: 'HTTPRoute' | 'TCPRoute', externalName: string, more = ''): string | undefined => {
    const { statuses } = translate(createSnapshot(objectsOf(`${routed(kind, externalName)}${more}`)), { checkExpression: () => undefined })
    const status = statuses.find((one) => one.kind === kind)?.status as { parents: { conditions: Condition[] }[] }
    return status.parents[0]?.conditions.find(({ type }) => type === 'PartiallyInvalid')?.message
  }

  test.each([
    ['HTTPRoute', 'localhost'],
    ['HTTPRoute', '127.1'],
    ['HTTPRoute', '169.254.169.254'],
    ['HTTPRoute', '::ffff:127.0.0.1'],
    ['TCPRoute', '0.0.0.0'],
  ] as const)('is named in the status of a %s: %s', (kind, address) => {
    const message = partialOf(kind, address) ?? ''
    expect(message).toContain(`externalName of Service default/out: requests to ${address}:8080 fail with 503, because it is a`)
    expect(message).toContain('spec.upstreams.addresses in the ProxyParameters of the Gateway')
    expect(message).toMatch(/\[PX1361\]$/)
  })

  test.each(['example.com', '10.0.0.1'])('is not named if it is not refused: %s', (address) => expect(partialOf('HTTPRoute', address)).toBeUndefined())

  test('is not named if the ProxyParameters of the Gateway permit it', () => {
    const parameters = `
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyParameters
metadata: {name: p}
spec: {upstreams: {addresses: [127.0.0.0/8]}}`
    const permitted = routed('HTTPRoute', '127.0.0.1').replace(
      'gatewayClassName: proxy,',
      'gatewayClassName: proxy, infrastructure: {parametersRef: {group: proxy.dev, kind: ProxyParameters, name: p}},',
    )
    const { statuses } = translate(createSnapshot(objectsOf(`${permitted}${parameters}`)), { checkExpression: () => undefined })
    expect(JSON.stringify(statuses.find(({ kind }) => kind === 'HTTPRoute'))).not.toContain('PX1361')
  })
})
