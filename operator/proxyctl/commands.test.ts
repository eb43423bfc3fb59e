import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { collections, startFakeApi } from '../kube/testing.ts'
import { commands } from './commands.ts'
import { createOutput } from './output.ts'
import { main } from './proxyctl.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxyctl-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

async function run(args: readonly string[], { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {}) {
  let [stdout, stderr] = ['', '']
  const code = await main(args, {
    env: { HOME: directory, ...env },
    isTerminal: false,
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
    readInput: () => Promise.resolve(input),
  })
  return { code, stdout, stderr }
}

function write(name: string, text: string): string {
  const file = join(directory, name)
  writeFileSync(file, text)
  return file
}

const manifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec:
  gatewayClassName: proxy
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: gw}]
  hostnames: [shop.example]
  rules:
  - backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: up}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: broken, namespace: shop}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs: [{name: nothing, port: 80}]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: up, namespace: shop}
spec: {static: {host: example.com, port: 80}}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: limits, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {timeouts: {request: 1s}}
`

describe('the help of a command', () => {
  test.each(commands.map((entry) => [entry.name, entry] as const))(
    'shows usage, examples and only the options of %s',
    async (name, { examples, options = [] }) => {
      const { code, stdout } = await run([...name.split(' '), '--help'])
      expect(code).toBe(0)
      expect(stdout.startsWith(`usage: proxyctl ${name}`)).toBe(true)
      for (const [purpose, line] of examples) expect(stdout).toContain(`  # ${purpose}\n  ${line}\n`)
      expect([...stdout.matchAll(/^ +(?:-\w, )?--([\w-]+)/gm)].map(([, option]) => option)).toEqual([...options, 'output', 'help'])
      expect((await run(['help', ...name.split(' ')])).stdout).toBe(stdout)
      expect(stdout.split('\n').filter((text) => text.length > 110 && !text.includes('proxyctl '))).toEqual([])
    },
  )

  test('of the first word lists all commands that begin with it', async () => {
    expect((await run(['config', '--help'])).stdout.match(/^usage: .*/gm)).toEqual([
      'usage: proxyctl config dump [OPTIONS]',
      'usage: proxyctl config diff FROM [TO] [OPTIONS]',
      'usage: proxyctl config expand FILE [OPTIONS]',
      'usage: proxyctl config init [OPTIONS]',
    ])
  })

  test.each([
    ['an unknown command', ['stats'], '"stats" is not a command; did you mean status?'],
    ['an unknown option', ['status', '--namspace', 'x'], "Unknown option '--namspace'; did you mean --namespace?"],
    ['an option of another command', ['lint', '--admin', 'a:1', 'x'], '--admin is not an option of lint, which takes --namespace, --expand, --output, --help'],
    ['half of a command', ['config'], 'config takes dump or diff'],
    ['a wrong second word', ['config', 'dif', 'x'], '"dif" is not one of them; did you mean diff?'],
    ['an unknown kind', ['get', 'rotues'], 'did you mean routes?'],
    ['an unknown shell', ['completion', 'csh'], 'bash, zsh or fish'],
  ])('is named after %s', async (_, args, message) => {
    expect(await run(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
  })
})

describe('version', () => {
  test('prints the own version without a cluster', async () => {
    expect(await run(['version'])).toMatchObject({ code: 0, stdout: `proxyctl  ${packageJson.version}  Node ${process.versions.node}\n` })
    expect(JSON.parse((await run(['version', '-o', 'json'])).stdout)).toEqual({ proxyctl: { version: packageJson.version, node: process.versions.node } })
  })

  test('prints the versions of operator and data planes of the cluster', async () => {
    const api = await startFakeApi({ install: [collections.deployments] })
    try {
      const deploy = (name: string, labels: Record<string, string>, container: object) =>
        api.put(collections.deployments, { metadata: { name, namespace: 'shop', labels }, spec: { template: { spec: { containers: [container] } } } })
      const component = { 'app.kubernetes.io/component': 'controller' }
      deploy('proxy', component, { name: 'controller', image: 'registry:5000/controller:v0.2.0', env: [{ name: 'PROXY_XDS_MODE' }] })
      deploy('ingress', component, { name: 'controller', image: 'ingress:v9' })
      deploy('gw', { 'gateway.networking.k8s.io/gateway-name': 'gw' }, { name: 'proxy', image: 'registry:5000/proxy:v0.1.0@sha256:ab' })
      const env = { KUBECONFIG: write('kubeconfig', api.kubeconfig) }
      const { operators, dataplanes } = JSON.parse((await run(['version', '-o', 'json'], { env })).stdout) as Record<string, unknown>
      expect(operators).toEqual([{ namespace: 'shop', name: 'proxy', version: '0.2.0', image: 'registry:5000/controller:v0.2.0', ready: 0, wanted: 1 }])
      expect(dataplanes).toMatchObject([{ namespace: 'shop', name: 'gw', version: '0.1.0' }])
      expect((await run(['version', '--client'], { env })).stdout.split('\n')).toHaveLength(2)
    } finally {
      await api.close()
    }
  })
})

describe('get', () => {
  test('lists routes with hostnames, Gateways and the first problem', async () => {
    const { code, stdout } = await run(['get', 'routes', '--dir', write('get.yaml', manifests)])
    expect(code).toBe(1)
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ['STATUS', 'KIND', 'NAME', 'ATTACHED TO', 'HOSTNAMES', 'RULES', 'PROBLEM'],
      ['error', 'HTTPRoute', 'shop/broken', 'Gateway shop/gw', '-', '1', 'ResolvedRefs=False BackendNotFound'],
      ['ok', 'HTTPRoute', 'shop/web', 'Gateway shop/gw', 'shop.example', '1'],
    ])
  })

  test('shows the policies in force for one route', async () => {
    const { code, stdout } = await run(['get', 'route', 'shop/web', '--dir', write('get.yaml', manifests), '-o', 'yaml'])
    expect(code).toBe(0)
    const { routes } = parse(stdout) as { routes: { policies: unknown; attachedTo: unknown }[] }
    expect(routes).toHaveLength(1)
    expect(routes[0]?.policies).toEqual([{ rule: '0', listener: 'shop/gw.http', field: 'timeouts', from: ['ProxyPolicy shop/limits on Gateway shop/gw'] }])
    expect((await run(['get', 'route', 'shop/web', '--dir', join(directory, 'get.yaml')])).stdout).toMatch(
      /^0 +shop\/gw\.http +timeouts +ProxyPolicy shop\/limits on Gateway shop\/gw$/m,
    )
  })

  test('lists policies with targets, backends with users, and Gateways with listeners', async () => {
    const file = write('get.yaml', manifests)
    expect((await run(['get', 'policies', '--dir', file, '-o', 'wide'])).stdout).toMatch(
      /^ok +ProxyPolicy +shop\/limits +Gateway shop\/gw +Gateway shop\/gw +traffic\.timeouts$/m,
    )
    expect((await run(['get', 'backends', '--dir', file])).stdout).toMatch(/^ok +ProxyBackend +shop\/up +static +HTTPRoute shop\/web$/m)
    expect((await run(['get', 'gateways', '--dir', file])).stdout).toMatch(/^\w+ +Gateway +shop\/gw +proxy +- +http:8080\/HTTP/m)
  })

  test('names the objects that exist if the named one does not', async () => {
    const { code, stderr } = await run(['get', 'policy', 'shop/nope', '--dir', write('get.yaml', manifests)])
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'proxyctl: there is no ProxyPolicy or BackendTLSPolicy shop/nope; there are shop/limits [PX6008]\n' })
  })

  test('reads a cluster and leaves out objects of other controllers', async () => {
    const { httpRoutes } = collections
    const api = await startFakeApi({ install: [httpRoutes] })
    try {
      const put = (name: string, controllerName: string): void =>
        void api.put(httpRoutes, {
          metadata: { name, namespace: 'shop' },
          spec: { parentRefs: [{ name: 'gw' }] },
          status: {
            parents: [
              {
                controllerName,
                parentRef: { name: 'gw', sectionName: 'http' },
                conditions: [{ type: 'Accepted', status: 'True', reason: 'Accepted', message: '' }],
              },
            ],
          },
        })
      put('own', 'proxy.dev/proxy')
      put('foreign', 'example.com/other')
      const { stdout } = await run(['get', 'routes'], { env: { KUBECONFIG: write('kubeconfig', api.kubeconfig) } })
      expect(stdout).toMatch(/^ok +HTTPRoute +shop\/own +Gateway shop\/gw http +/m)
      expect(stdout).not.toContain('foreign')
    } finally {
      await api.close()
    }
  })
})

describe('explain of a code', () => {
  test('prints title, cause, fix and page', async () => {
    expect((await run(['explain', 'px1207'])).stdout).toMatch(
      /^PX1207: Service not found\n\n.+\n\nFix: .+\n\nSee docs\/reference\/messages\/routes\.md#px1207\n$/,
    )
    expect(JSON.parse((await run(['explain', '[PX1207]', '-o', 'json'])).stdout)).toMatchObject({ code: 'PX1207', title: 'Service not found' })
  })

  test('rejects a code that does not exist', async () => {
    expect(await run(['explain', 'PX9999'])).toMatchObject({
      code: 1,
      stderr: 'proxyctl: there is no message with code PX9999; docs/reference/messages lists all codes [PX6008]\n',
    })
  })
})

describe('lint of standard input', () => {
  test('reports manifests by line', async () => {
    expect(await run(['lint', '-'], { input: manifests.replace('  - backendRefs: [{name: nothing, port: 80}]\n', '') })).toMatchObject({
      code: 0,
      stdout: 'stdin: no error\n',
    })
    const { code, stdout } = await run(['lint', '-'], { input: manifests.replace('{timeouts: ', '{timeout: ') })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error +stdin:\d+:\d+ +spec\.traffic\.timeout: unknown field; did you mean timeouts\?/m)
  })

  test('reports a config file by line', async () => {
    const { code, stdout } = await run(['lint', '-', '-o', 'json'], { input: 'binds:\n- port: 808000\n  listeners: []\n' })
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      { errors: 1, findings: [{ severity: 'error', where: 'stdin:2:3', message: 'binds[0].port: must be <= 65535, is 808000 [PX3007]' }] },
    ])
  })
})

describe('trace -- PROGRAM', () => {
  test('marks the request of curl, prints its output to standard error and the trace to standard output', async () => {
    // Stands in for curl: sends the header that follows --header.
    const program = write(
      'curl',
      `#!${process.execPath}\nfetch(process.argv[4], { headers: { id: process.argv[3] } }).then((r) => r.text()).then((t) => console.log(t))\n`,
    )
    chmodSync(program, 0o755)
    let finish: (id: string | undefined) => void = () => {}
    const server = createServer((incoming, response) => {
      if (incoming.url?.startsWith('/debug/trace') !== true) {
        finish(/^x-proxy-trace-id: (.*)$/.exec(String(incoming.headers['id']))?.[1])
        return response.end('the body')
      }
      const wanted = new URL(incoming.url, 'http://a').searchParams.get('id')
      finish = (id) =>
        setTimeout(() => response.end(JSON.stringify({ method: 'GET', path: '/x', host: 'h', status: id === wanted ? 200 : 500, steps: [] })), 50)
      return undefined
    })
    const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
    try {
      const { code, stdout, stderr } = await run(['trace', '--admin', `127.0.0.1:${port}`, '--', program, `http://127.0.0.1:${port}/x`])
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'GET h/x\n200\n' })
      expect(['', 'the body\n']).toContain(stderr)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('reports a program that does not exist', async () => {
    const server = createServer(() => undefined)
    const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
    try {
      const { code, stderr } = await run(['trace', '--admin', `127.0.0.1:${port}`, '--', 'no-such-program-here'])
      expect({ code, stderr }).toEqual({ code: 1, stderr: 'proxyctl: no-such-program-here: no such program [PX6009]\n' })
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

describe('the completion script of bash', () => {
  test.each([
    ['commands', ['co'], ['console', 'config', 'completion']],
    ['second words', ['config', ''], ['dump', 'diff', 'expand', 'init']],
    ['kinds after an option with a value', ['get', '--admin', 'localhost', 'po'], ['policies']],
    ['formats', ['get', '-o', ''], ['text', 'wide', 'json', 'yaml']],
    ['formats after =', ['get', '--output', '=', 'j'], ['json']],
    ['options of the command', ['status', '--na'], ['--namespace']],
    ['no options of other commands', ['lint', '--ad'], []],
    ['files', ['lint', 'package-l'], ['package-lock.json']],
  ])('offers %s', async (_, words, expected) => {
    const script = write('completion.bash', (await run(['completion', 'bash'])).stdout)
    const line = `source ${script}; COMP_WORDS=(proxyctl "$@"); COMP_CWORD=$#; _proxyctl; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', line, 'bash', ...words])
    expect(stdout.split('\n').filter((word) => word !== '')).toEqual(expected)
  })

  test.each(['zsh', 'fish'])('is matched by one for %s, with every command and option', async (shell) => {
    const { stdout } = await run(['completion', shell])
    for (const { name, options = [] } of commands) for (const word of [...name.split(' '), ...options]) expect(stdout).toContain(word)
  })

  test.each([
    ['zsh', ['-n']],
    ['fish', ['--no-execute']],
  ])('is valid for %s, where that is installed', async (shell, args) => {
    const file = write(`completion.${shell}`, (await run(['completion', shell])).stdout)
    const isInstalled = await promisify(execFile)(shell, ['-c', 'exit 0']).then(
      () => true,
      () => false,
    )
    const check = isInstalled ? await promisify(execFile)(shell, [...args, file]) : { stderr: '' }
    expect(check.stderr).toBe('')
  })
})

describe('progress', () => {
  test('is shown on a terminal while a slow request runs, and removed afterwards', async () => {
    const written: string[] = []
    const drawn = Promise.withResolvers<void>()
    const terminal = { env: {}, isTerminal: false, write: () => {}, readInput: () => Promise.resolve('') }
    const writeError = (text: string): void => {
      written.push(text)
      drawn.resolve()
    }
    const output = await createOutput({ ...terminal, isErrorTerminal: true, writeError }, 'json')
    await output.wait('reading', drawn.promise)
    expect(written[0]).toContain('reading')
    expect(written.at(-1)).toBe('\r\u001b[K')
    written.length = 0
    await (
      await createOutput({ ...terminal, writeError }, 'text')
    ).wait('reading', new Promise((resolve) => request('http://127.0.0.1:1').on('error', resolve).end()))
    expect(written).toEqual([])
  })
})
