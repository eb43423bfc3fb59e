import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { main } from './proxyctl.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxyctl-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

async function run(args: readonly string[], { isTerminal = false, env = {} }: { isTerminal?: boolean; env?: Record<string, string> } = {}) {
  let [stdout, stderr] = ['', '']
  const code = await main(args, { env, isTerminal, write: (text) => (stdout += text), writeError: (text) => (stderr += text) })
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
  test('passes what is right', async () => {
    const file = write('good.yaml', gateway + policy('{timeouts: {request: 1s}}'))
    expect(await run(['lint', file])).toEqual({ code: 0, stderr: '', stdout: `${file}: no error\n` })
  })

  test('names file, line, field and fix of what an API server would refuse', async () => {
    const file = write('bad.yaml', gateway + policy('{timeouts: {reqest: 1s}}'))
    const { code, stdout } = await run(['lint', file])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error +bad\.yaml:\d+ +spec\.traffic\.timeouts\.reqest: unknown field; did you mean request\?$/m)
  })

  test('names what the operator would say in a status', async () => {
    const file = write('dangling.yaml', gateway + route('nothing'))
    const { code, stdout } = await run(['lint', file, '-o', 'json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toEqual({
      errors: 1,
      findings: [{ severity: 'error', where: 'HTTPRoute default/web', message: 'ResolvedRefs: BackendNotFound: Service not found: default/nothing' }],
    })
  })
})

describe('status', () => {
  test('puts the worst first and ends with 1 when there is an error', async () => {
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

  test('a policy that is partly in force is a warning', async () => {
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

  test('shows what was added, changed and removed; the order of fields and the content of secrets are no difference', async () => {
    const from = write('from.json', dump({ a: { key: 'a', x: 1 }, b: { key: 'b' }, same: { p: 1, q: 2 } }, { s: { data: 'x' } }))
    const to = write('to.json', dump({ a: { key: 'a', x: 2 }, c: { key: 'c' }, same: { q: 2, p: 1 } }, { s: { data: 'y' } }))
    expect(await run(['config', 'diff', from, to])).toEqual({
      code: 1,
      stderr: '',
      stdout: 'routes a\n- {"key":"a","x":1}\n+ {"key":"a","x":2}\nroutes b\n- {"key":"b"}\nroutes c\n+ {"key":"c"}\n',
    })
    expect(await run(['config', 'diff', from, from])).toMatchObject({ code: 0, stdout: 'no difference\n' })
  })
})

describe('wrong usage ends with 2, says what is wrong and where help is', () => {
  test.each([
    ['no command', [], 'no command'],
    ['an unknown command', ['frobnicate'], '"frobnicate" is not a command'],
    ['a name of every object', ['constructor'], '"constructor" is not a command'],
    ['an unknown option', ['status', '--colour'], "Unknown option '--colour'"],
    ['an unknown format', ['status', '-o', 'xml'], '"xml" is neither text nor json'],
    ['explain without a namespace', ['explain', 'web'], 'as <namespace>/<name>'],
    ['two data planes', ['log', 'level', '--admin', 'a:1', '--gateway', 'a/b'], 'give one of them'],
    ['an address without a port', ['log', 'level', '--admin', 'localhost'], '"localhost" is not host:port'],
    ['lint of nothing', ['lint'], 'takes one directory'],
    ['a URL that is none', ['trace', 'shop', '--admin', '127.0.0.1:1'], '"shop" is not a URL'],
    ['a timeout that is none', ['trace', '--timeout', 'soon'], '"soon" is not a duration'],
  ])('%s', async (_, args, message) => {
    const { code, stderr } = await run(args)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) })
    expect(stderr).toMatch(/; proxyctl --help shows the usage\n$/)
  })

  test('help is on standard output and no failure', async () => {
    expect(await run(['--help'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^usage: proxyctl/), stderr: '' })
  })
})

describe('what cannot be reached', () => {
  test('a data plane: the address and how to name another', async () => {
    const { code, stderr } = await run(['explain', 'a/b', '--admin', '127.0.0.1:1'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^proxyctl: admin endpoint 127\.0\.0\.1:1: .*ECONNREFUSED.*--gateway/) })
  })

  test('a directory', async () => {
    expect(await run(['lint', join(directory, 'none')])).toMatchObject({ code: 1, stderr: expect.stringContaining('no such file or directory') })
  })
})
