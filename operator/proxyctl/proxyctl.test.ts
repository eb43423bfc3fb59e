import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { collections, startFakeApi, type FakeApi } from '../kube/testing.ts'
import { main } from './proxyctl.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxyctl-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

async function run(
  args: readonly string[],
  { isTerminal = false, env = {}, input = '' }: { isTerminal?: boolean; env?: Record<string, string>; input?: string } = {},
) {
  let [stdout, stderr] = ['', '']
  const code = await main(args, {
    env,
    isTerminal,
    readInput: () => Promise.resolve(input),
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
  })
  return { code, stdout, stderr }
}

function write(name: string, text: string): string {
  const file = join(directory, name)
  writeFileSync(file, text)
  return file
}

const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: proxy
  listeners: [{name: http, port: 8080, protocol: HTTP}]
`
const route = (backend: string) => `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs: [{name: ${backend}, port: 80}]
`
const policy = (traffic: string) => `---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: ${traffic}
`

describe('lint', () => {
  test('passes valid manifests', async () => {
    const file = write('good.yaml', gateway + policy('{timeouts: {request: 1s}}'))
    expect(await run(['lint', file])).toEqual({ code: 0, stderr: '', stdout: `${file}: no error\n` })
  })

  test('names file, line, field and fix of a mistake that an API server would reject', async () => {
    const file = write('bad.yaml', gateway + policy('{timeouts: {reqest: 1s}}'))
    const { code, stdout } = await run(['lint', file])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error +\S*bad\.yaml:\d+:\d+ +spec\.traffic\.timeouts\.reqest: unknown field; did you mean request\? \[PX2003\]$/m)
  })

  test('checks a config file as the data plane does', async () => {
    const valid = write('good-config.yaml', 'binds: [{ port: 8080, listeners: [] }]\n')
    expect(await run(['lint', valid])).toEqual({ code: 0, stderr: '', stdout: `${valid}: no error\n` })
    const wrong = write('bad-config.yaml', 'binds:\n- port: 808000\n  listeners: []\n')
    const { code, stdout } = await run(['lint', wrong])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error +\S*bad-config\.yaml:2:3 +binds\[0\]\.port: must be <= 65535, is 808000 \[PX3007\]$/m)
  })

  test('names unknown fields and wrong types in overlays of ProxyParameters', async () => {
    const parameters = 'apiVersion: proxy.dev/v1alpha1\nkind: ProxyParameters\nmetadata: {name: p}\nspec:\n'
    const overlays = '  deployment: {spec: {replicaz: 3}}\n  service: {spec: {ports: 80}}\n'
    const { code, stdout } = await run(['lint', write('overlays.yaml', `${parameters}${overlays}`)])
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^error +\S*overlays\.yaml:5:23 +ProxyParameters default\/p: spec\.deployment\.spec\.replicaz: unknown field, ignored; did you mean replicas\? \[PX1023\]$/m,
    )
    expect(stdout).toMatch(/^error +\S*overlays\.yaml:6:20 +ProxyParameters default\/p: spec\.service\.spec\.ports is 80; give a list/m)
  })

  test('names the ports of a Service that lacks the port of a backendRef', async () => {
    const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: app }\nspec: { ports: [{ port: 80 }] }\n'
    const { code, stdout } = await run(['lint', write('port.yaml', `${gateway}---\n${service}${route('app').replaceAll(/port: \d+/g, 'port: 81')}`)])
    expect(code).toBe(1)
    expect(stdout).toMatch(/ResolvedRefs: BackendNotFound: Service default\/app has no port 81; its ports are 80 \[PX1208\]$/m)
  })

  test('prints the bad conditions of statuses', async () => {
    const file = write('dangling.yaml', gateway + route('nothing'))
    const { code, stdout } = await run(['lint', file, '-o', 'json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toEqual({
      errors: 1,
      findings: [
        {
          severity: 'error',
          where: 'HTTPRoute default/web',
          message: 'ResolvedRefs: BackendNotFound: Service not found: default/nothing [PX1207]',
          file,
          line: expect.any(Number),
          column: expect.any(Number),
        },
      ],
    })
  })
})

test('a path of an LLM backend that no guard covers is a note of lint', async () => {
  const backend = `---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: models}
spec:
  ai: {provider: {providerA: {}}}
  policies:
    ai: {routes: {"*": Passthrough}, promptGuard: {request: [{regex: {builtins: [Ssn]}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: llm}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: models}]}]
`
  const { code, stdout } = await run(['lint', write('unguarded.yaml', `${gateway}${backend}`)])
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^note +ProxyBackend default\/models +ai\.routes: requests for "\*" \(Passthrough\) are not covered by prompt guards/m),
  ])
})

test('a model without a price under a budget is a note of lint, also in config files', async () => {
  const manifests = `---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: models}
spec: {ai: {models: [{name: assistant, to: [{backendRef: {name: openai}, model: mine}]}]}}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: openai}
spec: {ai: {provider: {openai: {}}}}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: limits}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {budgets: [{name: daily, limits: [{usd: "10", window: Day}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: llm}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: models}]}]
`
  const config = `models:\n  assistant: {openai: {model: mine}}\nkeys:\n  alice: {key: "0123456789abcdef0123456789abcdef", budget: {usd: 10}}\n`
  for (const text of [`${gateway}${manifests}`, config]) {
    const { code, stdout } = await run(['lint', write('unpriced.yaml', text)])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^note .*model "mine" has no price and is rejected with 403 under budget "(daily|keys)" .*\[PX1388\]$/m),
    ])
  }
})

test('hosts that data planes do not connect to are errors of lint, and notes if only pods do not', async () => {
  const backend = (name: string, host: string): string =>
    `---\napiVersion: proxy.dev/v1alpha1\nkind: ProxyBackend\nmetadata: {name: ${name}}\nspec: {static: {host: ${host}, port: 80}}\n`
  const to = (name: string): string => route(name).replace(/backendRefs:.*/, `backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: ${name}}]`)
  const file = write('hosts.yaml', `${gateway}${backend('meta', '169.254.169.254')}${backend('here', 'localhost')}---\n${to('meta')}`)
  const { code, stdout } = await run(['lint', file])
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(
      /^error +\S*hosts\.yaml:\d+:\d+ +ProxyBackend default\/meta: Accepted: PartiallyValid: static\.host: requests to 169\.254\.169\.254:80 fail with 503, because it is a metadata address/m,
    ),
  ])
  expect(stdout).toMatch(
    /^note +\S*hosts\.yaml:\d+:\d+ +ProxyBackend default\/here: static\.host: requests to localhost:80 fail with 503, because it is a loopback address, which data planes in pods do not permit; .* \[PX1361\]$/m,
  )
  const parameters = '---\napiVersion: proxy.dev/v1alpha1\nkind: ProxyParameters\nmetadata: {name: p}\nspec: {upstreams: {addresses: [127.0.0.0/8]}}\n'
  expect((await run(['lint', write('permitted.yaml', `${gateway}${backend('here', 'localhost')}${parameters}`)])).stdout).not.toContain('PX1361')
})

test('an ExternalName Service with an address that pods do not connect to is a note of lint', async () => {
  const service = (externalName: string): string =>
    `---\napiVersion: v1\nkind: Service\nmetadata: {name: outside}\nspec: {type: ExternalName, externalName: ${externalName}}\n`
  for (const address of ['169.254.169.254', '127.0.0.1', 'localhost'])
    expect((await run(['lint', write('external.yaml', `${gateway}${service(address)}`)])).stdout).toMatch(
      /^note +\S*external\.yaml:\d+:\d+ +Service default\/outside: externalName: requests to \S+:80 fail with 503, because it is a \w+ address, .*ProxyParameters.* \[PX1361\]$/m,
    )
  for (const address of ['db.example.com', '10.0.0.7'])
    expect((await run(['lint', write('external.yaml', `${gateway}${service(address)}`)])).stdout).not.toContain('PX1361')
})

test('a route without its Gateway is a note of lint and a warning of status', async () => {
  const file = write('stray.yaml', route('nothing'))
  expect((await run(['lint', file])).stdout).toMatch(
    /^note +\S*stray\.yaml:\d+:\d+ +HTTPRoute default\/web: not in these manifests: Gateway default\/gw \[PX1114\]$/m,
  )
  expect((await run(['status', '--dir', file])).stdout).toMatch(/^warning +HTTPRoute +default\/web +not in these manifests: Gateway default\/gw \[PX1114\]$/m)
})

describe('status', () => {
  test('sorts errors first and exits with 1 if there is one', async () => {
    const file = write('status.yaml', gateway + route('nothing') + policy('{timeouts: {request: 1s}}'))
    const { code, stdout } = await run(['status', '--dir', file])
    expect(code).toBe(1)
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3).join(' '))).toEqual([
      'error HTTPRoute default/web',
      'ok Gateway default/gw',
      'ok GatewayClass proxy',
      'ok ProxyPolicy default/p',
      '',
    ])
  })

  test('prints objects that are not valid at all', async () => {
    const file = write('refused.yaml', gateway + policy('{timeouts: {reqest: 1s}}'))
    const { code, stdout } = await run(['status', '--dir', file])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error +manifest +refused\.yaml:\d+ +spec\.traffic\.timeouts\.reqest: unknown field/)
  })

  test('prints a partially valid policy as a warning', async () => {
    const file = write('partly.yaml', gateway + policy("{authorization: {policy: {matchExpressions: ['nonsense == 1']}}}"))
    const { code, stdout } = await run(['status', '--dir', file])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^warning +ProxyPolicy +default\/p +Accepted=True PartiallyValid: .*nonsense/m)
  })

  test.each([
    ['on a terminal', { isTerminal: true }, true],
    ['not in a pipe', {}, false],
    ['not with NO_COLOR', { isTerminal: true, env: { NO_COLOR: '1' } }, false],
  ])('has colours %s', async (_, terminal, hasColours) => {
    const file = write('colour.yaml', gateway)
    expect((await run(['status', '--dir', file], terminal)).stdout.includes('\u001b[')).toBe(hasColours)
  })
})

describe('config diff of files', () => {
  const dump = (routes: object, secrets: object = {}) => JSON.stringify({ version: 1, routes, secrets, config: {} })

  test('shows additions, changes and removals, but no order of fields and no content of secrets', async () => {
    const from = write('from.json', dump({ a: { key: 'a', x: 1 }, b: { key: 'b' }, same: { p: 1, q: 2 } }, { s: { data: 'x' } }))
    const to = write('to.json', dump({ a: { key: 'a', x: 2 }, c: { key: 'c' }, same: { q: 2, p: 1 } }, { s: { data: 'y' } }))
    expect(await run(['config', 'diff', from, to])).toEqual({
      code: 1,
      stderr: '',
      stdout: 'routes a\n- {"key":"a","x":1}\n+ {"key":"a","x":2}\nroutes b\n- {"key":"b"}\nroutes c\n+ {"key":"c"}\n',
    })
    expect(await run(['config', 'diff', from, from])).toMatchObject({ code: 0, stdout: 'no difference\n' })
  })

  test('ignores fields that are derived from others', async () => {
    const from = write('plain.json', JSON.stringify({ version: 1, routes: {} }))
    const to = write('derived.json', JSON.stringify({ version: 2, routes: {}, workloads: [{ address: '127.0.0.1' }] }))
    expect(await run(['config', 'diff', from, to])).toMatchObject({ code: 0, stdout: 'no difference\n' })
  })

  test('of manifests and a data plane ignores creation times, endpoints and other Gateways, and reports the rest', async () => {
    const folder = mkdtempSync(join(directory, 'manifests-'))
    const service = 'apiVersion: v1\nkind: Service\nmetadata: {name: app, annotations: {proxy.dev/endpoints: 10.0.0.1}}\nspec: {ports: [{port: 80}]}\n'
    writeFileSync(join(folder, 'a.yaml'), `${gateway}${route('app')}---\n${service}---${gateway.replace('name: gw', 'name: other')}`)
    type Message = Record<string, unknown>
    const none = await run(['config', 'diff', folder, write('none.json', '{}'), '-n', 'shop', '-o', 'json'])
    const all = (JSON.parse(none.stdout) as { differences: { kind: string; key: string; from: Message }[] }).differences
    expect(all.map(({ kind, key }) => `${kind} ${key}`)).toContain('services shop/app')
    const running: Record<string, Record<string, Message>> = {}
    for (const { kind, key, from } of all) if (!key.endsWith('/other') && !key.includes('/other.')) (running[kind] ??= {})[key] = structuredClone(from)
    for (const message of Object.values(running['routes'] ?? {})) message['creationTimestamp'] = '2026-06-01T00:00:00Z'
    const [port] = (running['services']?.['shop/app']?.['ports'] ?? []) as Message[]
    Object.assign(port ?? {}, { endpoints: [{ address: '10.1.1.1', port: 8080, node: 'n' }] })
    const diff = async () => run(['config', 'diff', folder, write('running.json', JSON.stringify(running)), '-n', 'shop'])
    expect(await diff()).toEqual({ code: 0, stdout: 'no difference\n', stderr: '' })
    for (const message of Object.values(running['routes'] ?? {})) message['timeouts'] = { request: '1s' }
    expect(await diff()).toMatchObject({ code: 1, stdout: expect.stringMatching(/^routes shop\/web\.00\n/) })
  })

  test('rejects a file that is not a dump', async () => {
    const file = write('garbage.json', 'garbage')
    expect(await run(['config', 'diff', file, file])).toMatchObject({ code: 2, stderr: expect.stringContaining('garbage.json: not a dump') })
  })
})

describe('explain of a data plane', () => {
  test('lists matches that get no requests', async () => {
    const shadows = ['match 0 of rule 0 (PathPrefix /) never gets a request: rule 0 of HTTPRoute team/web has precedence and matches all of them [PX1115]']
    const rule = { route: 'HTTPRoute default/web', ruleIndex: 0, listener: 'default/gw.http', shadows, preRouting: {}, postRouting: {} }
    const server = createServer((_, response) => response.end(JSON.stringify({ rules: [rule] })))
    const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
    try {
      const { stdout } = await run(['explain', 'default/web', '--admin', `127.0.0.1:${port}`])
      expect(stdout.split('\n').slice(0, 2)).toEqual(['HTTPRoute default/web, rule 0, on listener default/gw.http', `  ! ${shadows[0]}`])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('marks references of a policy that do not resolve', async () => {
    const authorization = [{ policy: { matchExpressions: ['request.path =='] }, action: 'Allow' }]
    const extAuth = { backendRef: { invalid: 'BACKEND_NOT_FOUND' }, grpc: {} }
    const sources = [{ from: 'ProxyPolicy default/p', target: 'Gateway default/gw' }]
    const fields = { authorization: { value: authorization, sources, overrides: [] }, extAuth: { value: extAuth, sources, overrides: [] } }
    const rule = { route: 'HTTPRoute default/web', ruleIndex: 0, listener: 'default/gw.http', preRouting: {}, postRouting: fields }
    const server = createServer((_, response) => response.end(JSON.stringify({ rules: [rule] })))
    const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
    try {
      const { stdout } = await run(['explain', 'default/web', '--admin', `127.0.0.1:${port}`])
      expect(stdout.match(/! .*/g)?.map((line) => line.trim())).toEqual([
        expect.stringMatching(/^! request\.path == does not compile: line 1, column \d+/),
        '! backendRef does not resolve: the status of the policy says why',
      ])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

describe('wrong usage exits with 2 and names the mistake and the help', () => {
  test.each([
    ['no command', [], 'no command'],
    ['an unknown command', ['frobnicate'], '"frobnicate" is not a command'],
    ['a name of every object', ['constructor'], '"constructor" is not a command'],
    ['an unknown option', ['status', '--colour'], "Unknown option '--colour'"],
    ['an unknown format', ['status', '-o', 'xml'], '"xml" is not one of text, wide, json, yaml'],
    ['explain without a namespace', ['explain', 'web'], 'as <namespace>/<name>'],
    ['two data planes', ['log', 'level', '--admin', 'a:1', '--gateway', 'a/b'], 'give one of them'],
    ['an address without a port', ['log', 'level', '--admin', 'localhost'], '"localhost" is not host:port'],
    ['lint of nothing', ['lint'], 'takes one directory'],
    ['an invalid URL', ['trace', 'shop', '--admin', '127.0.0.1:1'], '"shop" is not a URL'],
    ['an invalid header', ['trace', 'http://127.0.0.1:1/', '--header', 'x', '--admin', '127.0.0.1:1'], '"x" is not \'name: value\''],
    ['an invalid timeout', ['trace', '--timeout', 'soon'], '"soon" is not a duration'],
  ])('%s', async (_, args, message) => {
    const { code, stderr } = await run(args)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) })
    expect(stderr).toMatch(/; proxyctl ([a-z]+ )*--help shows the usage \[PX6001\]\n$/)
  })

  test('help is printed to standard output and is no failure', async () => {
    expect(await run(['--help'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^usage: proxyctl/), stderr: '' })
  })
})

describe('an unreachable target is reported:', () => {
  test('a data plane: the address and how to name another', async () => {
    const { code, stderr } = await run(['explain', 'a/b', '--admin', '127.0.0.1:1'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^proxyctl: admin endpoint 127\.0\.0\.1:1: .*ECONNREFUSED.*--gateway/) })
  })

  test('a URL to trace, or a data plane that the URL does not lead to, at once and not after the wait', async () => {
    const admin = createServer(() => undefined).listen(0, '127.0.0.1')
    const other = createServer((_request, response) => response.end('ok')).listen(0, '127.0.0.1')
    await Promise.all([admin, other].map((server) => new Promise((resolve) => (server.listening ? resolve(0) : server.once('listening', resolve)))))
    const portOf = (server: typeof admin): number => (server.address() as AddressInfo).port
    const trace = (port: number) => run(['trace', `http://127.0.0.1:${port}/x`, '--timeout', '10m', '--admin', `127.0.0.1:${portOf(admin)}`])
    try {
      const [refused, elsewhere] = await Promise.all([trace(1), trace(portOf(other))])
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^proxyctl: http:\/\/127\.0\.0\.1:1\/x: .*ECONNREFUSED/) })
      expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringMatching(/\/x answered 200, but not through 127\.0\.0\.1:\d+: --admin/) })
    } finally {
      for (const server of [admin, other]) {
        server.closeAllConnections()
        server.close()
      }
    }
  })

  test('a directory', async () => {
    for (const command of [['lint'], ['status', '--dir']])
      expect(await run([...command, join(directory, 'none')])).toMatchObject({ code: 1, stderr: expect.stringContaining('none: no such file or directory') })
  })

  test('manifests, in a directory without any', async () => {
    const empty = mkdtempSync(join(directory, 'empty-'))
    expect(await run(['lint', empty])).toMatchObject({ code: 1, stderr: expect.stringContaining('no manifests') })
  })

  test('an API server', async () => {
    const cluster = '{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]'
    const file = write('kubeconfig', `${cluster}, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}], current-context: a}`)
    for (const command of [['status'], ['explain', 'a/b', '--gateway', 'a/b']]) {
      const { code, stderr } = await run([...command, '--kubeconfig', file])
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^proxyctl: the API server of .*kubeconfig cannot be reached: .*ECONNREFUSED/),
      })
    }
  })
})

describe('on a cluster,', () => {
  const { gatewayClasses, gateways, httpRoutes, namespaces, pods } = collections
  let api: FakeApi
  let env: Record<string, string>
  beforeEach(async () => {
    api = await startFakeApi({ install: [gatewayClasses, gateways, httpRoutes, namespaces, pods, collections.deployments] })
    env = { KUBECONFIG: write('fake', api.kubeconfig) }
    api.put(gatewayClasses, { metadata: { name: 'proxy' }, spec: { controllerName: 'proxy.dev/proxy' } })
    api.put(namespaces, { metadata: { name: 'shop' } })
    put('gw')
  })
  afterEach(() => api.close())
  const put = (name: string, gatewayClassName = 'proxy'): void => void api.put(gateways, { metadata: { name, namespace: 'shop' }, spec: { gatewayClassName } })
  const putRoute = (...parents: string[]): void =>
    void api.put(httpRoutes, { metadata: { name: 'web', namespace: 'shop' }, spec: { parentRefs: parents.map((name) => ({ name })) } })
  const noPod = (name: string): string => `proxyctl: Gateway shop/${name} has no running pod; proxyctl status names the cause [PX6006]\n`

  test('a Gateway that does not exist is named with those that do', async () => {
    const missing = 'proxyctl: Gateway shop/nope does not exist; the Gateways of this cluster are shop/gw [PX6008]\n'
    expect(await run(['log', 'level', '--gateway', 'shop/nope'], { env })).toEqual({ code: 1, stdout: '', stderr: missing })
    expect(await run(['log', 'level', '--gateway', 'shop/gw'], { env })).toEqual({ code: 1, stdout: '', stderr: noPod('gw') })
  })

  test('the only Gateway of this controller needs no --gateway, and several are listed', async () => {
    put('foreign', 'other')
    expect((await run(['config', 'dump'], { env })).stderr).toBe(noPod('gw'))
    put('second')
    expect((await run(['config', 'dump'], { env })).stderr).toBe(
      'proxyctl: there are several Gateways, name one with --gateway: shop/gw, shop/second [PX6007]\n',
    )
    expect((await run(['config', 'dump', '-n', 'else'], { env })).stderr).toBe(
      'proxyctl: there is no Gateway of this controller in namespace else; the Gateways of this cluster are shop/gw, shop/second [PX6008]\n',
    )
  })

  test('explain uses the Gateway of the route', async () => {
    put('second')
    putRoute('second')
    expect((await run(['explain', 'shop/web'], { env })).stderr).toBe(noPod('second'))
    putRoute('second', 'gw')
    expect((await run(['explain', 'shop/web'], { env })).stderr).toContain('several Gateways, name one with --gateway: shop/gw, shop/second')
    expect((await run(['explain', 'shop/nope'], { env })).stderr).toBe('proxyctl: route shop/nope does not exist [PX6008]\n')
    putRoute('theirs')
    expect((await run(['explain', 'shop/web'], { env })).stderr).toContain('route shop/web has no parentRef to a Gateway of this controller')
  })

  test('status of a namespace fails if the namespace does not exist or has no resource', async () => {
    expect(await run(['status', '-n', 'nope'], { env })).toEqual({ code: 1, stdout: '', stderr: 'proxyctl: namespace nope does not exist [PX6008]\n' })
    api.put(namespaces, { metadata: { name: 'empty' } })
    expect(await run(['status', '-n', 'empty'], { env })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'proxyctl: no resource of this gateway in namespace empty [PX6008]\n',
    })
    expect(await run(['status', '-n', 'shop'], { env })).toMatchObject({ code: 0, stdout: expect.stringMatching(/^pending +Gateway +shop\/gw/m) })
  })

  test('a kubeconfig in the home directory whose cluster is unreachable leaves the data plane of this machine', async () => {
    const home = mkdtempSync(join(directory, 'home-'))
    mkdirSync(join(home, '.kube'))
    writeFileSync(join(home, '.kube', 'config'), api.kubeconfig.replace(/"server":"[^"]*"/, '"server":"http://127.0.0.1:1"'))
    expect((await run(['log', 'level'], { env: { HOME: home } })).stderr).toMatch(/^proxyctl: admin endpoint 127\.0\.0\.1:15000: /)
    const named = { KUBECONFIG: join(home, '.kube', 'config') }
    expect((await run(['log', 'level'], { env: named })).stderr).toMatch(/^proxyctl: the API server of .* cannot be reached/)
  })
})
