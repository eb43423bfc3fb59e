import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadDirectory } from '../source/directory.ts'
import { translate } from '../translate/translate.ts'
import { checkExpression } from './expression.ts'
import { fieldPathOf, findConditions, findOverlaps, findStrayRoutes, type ObjectFinding } from './findings.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'findings-'))
})
afterAll(() => rm(directory, { recursive: true }))

const gateway = (listeners: string) => `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  gatewayClassName: proxy
  listeners:
${listeners}
`
const HTTP = '    - { name: http, port: 80, protocol: HTTP }'
const service = `---
apiVersion: v1
kind: Service
metadata: { name: app }
spec: { ports: [{ port: 80 }] }
`
const route = (name: string, path: string, parent = 'gw') => `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: ${parent} }]
  rules:
    - matches: [{ path: { type: PathPrefix, value: ${path} } }]
      backendRefs: [{ name: app, port: 80 }]
`
const policy = (target: string, expression: string) => `---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: p }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: ${target} }]
  traffic:
    authorization: { policy: { matchExpressions: ['${expression}'] } }
`

async function check(text: string) {
  await writeFile(join(directory, 'a.yaml'), text)
  const load = await loadDirectory(directory)
  const translation = translate(load.snapshot, { isStandalone: true, checkExpression })
  return { load, translation, conditions: findConditions(load, translation) }
}

const describeFinding = ({ kind, name, message, place }: ObjectFinding): string => `${place?.file}:${place?.line}:${place?.column} ${kind} ${name}: ${message}`

describe('a cause is one finding', () => {
  test('two listeners in conflict, with the conditions of their Gateway, routes and policies', async () => {
    const listeners = `${HTTP}\n    - { name: other, port: 80, protocol: TCP }`
    const text = gateway(listeners) + service + route('a', '/') + route('b', '/b') + policy('HTTPRoute, name: a', 'true')
    const { conditions } = await check(text)
    expect(conditions.length).toBeGreaterThan(8)
    expect(conditions.filter(({ isConsequence }) => !isConsequence).map(describeFinding)).toEqual([
      'a.yaml:7:9 Gateway gw/http: port 80 is also used with another protocol: other (TCP) [PX1014]',
      'a.yaml:8:9 Gateway gw/other: port 80 is also used with another protocol: http (HTTP) [PX1014]',
    ])
  })

  test('listeners of two protocols with one hostname, each of which names the other', async () => {
    const listeners = ['https, port: 443, protocol: HTTPS, tls: { mode: Terminate', 'pass, port: 443, protocol: TLS, tls: { mode: Passthrough'].map(
      (each) => `    - { name: ${each}, options: { a.test/b: c } }, hostname: a.test }`,
    )
    const { conditions } = await check(gateway(listeners.join('\n')))
    expect(conditions.length).toBeGreaterThan(2)
    expect(conditions.filter(({ isConsequence, message }) => !isConsequence && message.includes('taken')).map(describeFinding)).toEqual([
      'a.yaml:7:9 Gateway gw/https: port 443 with hostname a.test is also taken by listener pass [PX1015]',
    ])
  })

  test('a listener of a ListenerSet that the Gateway has taken, with the conditions of the set and its routes', async () => {
    const allowing = gateway(HTTP).replace('  listeners:', '  allowedListeners: { namespaces: { from: Same } }\n  listeners:')
    const set = `---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: { name: set }
spec:
  parentRef: { name: gw }
  listeners:
    - { name: again, port: 80, protocol: HTTP }
`
    const toSet = route('a', '/').replace('{ name: gw }', '{ kind: ListenerSet, name: set }')
    const { conditions } = await check(allowing + set + service + toSet + policy('HTTPRoute, name: a', 'true'))
    expect(conditions.length).toBeGreaterThan(3)
    expect(conditions.filter(({ isConsequence }) => !isConsequence).map(describeFinding)).toEqual([
      'a.yaml:16:9 ListenerSet set/again: port 80 with any hostname is already taken [PX1015]',
    ])
  })

  test('problems of different objects stay apart', async () => {
    const broken = route('b', '/b').replace('port: 80', 'port: 81')
    const { conditions } = await check(gateway(HTTP) + service + route('a', '/').replace('name: app', 'name: nothing') + broken)
    expect(conditions.filter(({ isConsequence }) => !isConsequence).map(({ name, message }) => `${name}: ${message}`)).toEqual([
      'a: Service not found: default/nothing [PX1207]',
      'b: Service default/app has no port 81; its ports are 80 [PX1208]',
    ])
  })
})

test('a message that names a field has the position of the field', async () => {
  const { conditions } = await check(gateway(HTTP) + service + route('a', '/') + policy('HTTPRoute, name: a', 'request.path.startWith("/")'))
  expect(conditions.map(describeFinding)).toEqual([
    'a.yaml:29:51 ProxyPolicy p: traffic.authorization.policy.matchExpressions.0: line 1, column 14: unknown method "startWith"; did you mean "startsWith"? in "request.path.startWith(\\"/\\")" [PX1302]',
  ])
})

test('a route without its Gateway names the one that is probably meant', async () => {
  const { load, translation } = await check(gateway(HTTP) + service + route('a', '/', 'gww') + route('b', '/', 'elsewhere'))
  expect(findStrayRoutes(load, translation).map(describeFinding)).toEqual([
    'a.yaml:18:18 HTTPRoute a: not in these manifests: Gateway default/gww; did you mean gw? [PX1114]',
    'a.yaml:27:18 HTTPRoute b: not in these manifests: Gateway default/elsewhere [PX1114]',
  ])
})

describe('overlapping rules', () => {
  test('the later of two rules with one match is found', async () => {
    const { load, translation } = await check(gateway(HTTP) + service + route('b', '/x') + route('a', '/x'))
    expect(findOverlaps(load, translation).map(describeFinding)).toEqual([
      'a.yaml:29:17 HTTPRoute a: match 0 of rule 0 (PathPrefix /x) never gets a request: rule 0 of HTTPRoute default/b (a.yaml:20) has precedence and matches all of them [PX1115]',
    ])
  })

  test('rules on other paths, hosts or listeners do not overlap', async () => {
    const hosts = (name: string) => route(name, '/x').replace('  rules:', `  hostnames: [${name}.example.com]\n  rules:`)
    const { load, translation } = await check(gateway(HTTP) + service + hosts('a') + hosts('b') + route('c', '/c') + route('d', '/d'))
    expect(findOverlaps(load, translation)).toEqual([])
  })
})

test.each([
  ['traffic.timeouts[0].request: wrong', ['traffic', 'timeouts', 0, 'request']],
  ['failed to translate backend: ai.provider: wrong', ['ai', 'provider']],
  ['Service default/app has no port 81', []],
])('the field of "%s" is found', (message, path) => {
  expect(fieldPathOf(message)).toEqual(path)
})
