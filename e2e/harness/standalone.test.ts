import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { send } from './client.ts'
import { findFreePort, isPortFree } from './program/ports.ts'
import { startProgram, type Program } from './program/program.ts'
import { isTrueWithin, waitUntil } from './wait.ts'

// Each test starts two programs, which takes longer on a loaded machine.
jest.setTimeout(300_000)

const STANDALONE = fileURLToPath(new URL('standalone.ts', import.meta.url))

describe('make run', () => {
  let directory: string
  const programs: Program[] = []
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'standalone-'))
  })
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.stop()
    await rm(directory, { recursive: true, force: true })
  })

  const start = (...args: string[]) => {
    const program = startProgram({ name: 'standalone', args: [STANDALONE, ...args] })
    programs.push(program)
    return program
  }
  const errorsOf = (program: Program) => program.lines.filter((line) => line.stream === 'stderr' && line.text.startsWith('error:')).map((line) => line.text)

  const writeConfig = (text: string): string => {
    const file = join(directory, 'config.yaml')
    writeFileSync(file, text)
    return file
  }

  const writeManifests = async (listenerPort: number, upstreamPort: number, listener = '') => {
    await writeFile(
      join(directory, 'all.yaml'),
      `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: one }
spec:
  gatewayClassName: proxy
  listeners: [{ name: http, port: ${listenerPort}, protocol: HTTP }${listener}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: one }
spec:
  parentRefs: [{ name: one }]
  rules: [{ backendRefs: [{ name: one, port: 80 }] }]
---
apiVersion: v1
kind: Service
metadata: { name: one, annotations: { proxy.dev/endpoints: "127.0.0.1:${upstreamPort}" } }
spec: { ports: [{ port: 80 }] }
`,
    )
    await writeFile(
      join(directory, 'run.ts'),
      `export default { upstreams: [{ name: 'one', port: ${upstreamPort} }], commands: [{ title: 'request', command: 'curl {dir}', prints: /x/ }] }\n`,
    )
  }

  test.each([
    ['no directory is given', () => [], /usage/],
    ['the directory does not exist', () => [join(directory, 'none')], /no such directory: .*none/],
    ['the directory is a file', () => [STANDALONE], /is a file; run it with CONFIG=/],
    ['the config file does not exist', () => ['--config', join(directory, 'none.yaml')], /no such file: .*none\.yaml/],
    ['the config file is a directory', () => ['--config', directory], /is a directory; run it with DIR=/],
    ['the directory holds no Gateway', () => [directory], /holds no Gateway/],
    ['the config file is empty', () => ['--config', writeConfig('')], /has no port to listen on; add models, mcp or binds/],
    [
      'a port of the config file does not exist',
      () => ['--config', writeConfig('binds: [{ port: 808000, listeners: [] }]')],
      /binds\[0\]\.port: must be <= 65535/,
    ],
    ['the config file is a manifest', () => ['--config', writeConfig('apiVersion: v1\nkind: Service\n')], /is a Kubernetes manifest of kind Service/],
  ])('prints one line and exits with 1 when %s', async (_sentence, args, message) => {
    const program = start(...args())
    expect(await program.exited).toEqual({ code: 1, signal: null })
    expect(errorsOf(program)).toEqual([expect.stringMatching(message)])
  })

  test('serves the short forms of a config file, and reports an error and its solution once each', async () => {
    const [llm, mcp] = [await findFreePort(), await findFreePort()]
    const text = `llm: { port: ${llm}, models: { m: { openai: { apiKey: \${STANDALONE_KEY} } } } }\nmcp: { port: ${mcp}, a: { url: http://127.0.0.1:1 } }\n`
    const file = writeConfig(text)
    const program = startProgram({ name: 'standalone', args: [STANDALONE, '--config', file], env: { STANDALONE_KEY: 'k' } })
    programs.push(program)
    await program.waitForLine(/Ctrl-C/)
    const said = program.lines.map((line) => line.text)
    expect(said).toEqual(expect.arrayContaining([`listening  127.0.0.1:${llm}`, `listening  127.0.0.1:${mcp}`]))
    expect(await (await fetch(`http://127.0.0.1:${llm}/v1/models`)).json()).toMatchObject({ data: [{ id: 'm' }] })
    writeConfig(text.replace('openai', 'opnai'))
    await program.waitForLine(/config file not usable.*:1:\d+: llm\.models\.m\.opnai: unknown field; did you mean openai/)
    writeConfig(text)
    await program.waitForLine(/problem solved.*llm\.models\.m\.opnai/)
    expect(program.lines.filter((line) => line.text.includes('config file not usable'))).toHaveLength(1)
  })

  test('prints every problem of a config file with its position', async () => {
    const program = start(
      '--config',
      writeConfig('llm:\n  models:\n    a: { openai: { apiKey: ${STANDALONE_A} } }\n    b: { openai: { apiKey: ${STANDALONE_B} } }\n'),
    )
    expect(await program.exited).toEqual({ code: 1, signal: null })
    expect(errorsOf(program)).toEqual([
      expect.stringMatching(/config\.yaml:3:28: llm\.models\.a\.openai\.apiKey: the environment variable STANDALONE_A is not set/),
      expect.stringMatching(/config\.yaml:4:28: .* STANDALONE_B is not set/),
    ])
  })

  test('serves management ports at the addresses of the environment', async () => {
    const [listenerPort, upstreamPort, statsPort] = [await findFreePort(), await findFreePort(), await findFreePort()]
    await writeManifests(listenerPort, upstreamPort)
    const program = startProgram({ name: 'standalone', args: [STANDALONE, directory], env: { STATS_ADDR: `127.0.0.1:${statsPort}` } })
    programs.push(program)
    await program.waitForLine(/Ctrl-C/)
    expect((await fetch(`http://127.0.0.1:${statsPort}/metrics`)).status).toBe(200)
  })

  test('reports the listener whose port is taken', async () => {
    const taken = createServer().listen(0)
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    await writeManifests(port, await findFreePort())
    const program = start(directory)
    expect(await program.exited).toEqual({ code: 1, signal: null })
    expect(errorsOf(program)).toEqual([expect.stringContaining(`port ${port} of listener http of Gateway default/one is in use`)])
    taken.close()
  })

  test('reports an unusable certificate, and the other listeners work', async () => {
    const [port, upstreamPort, tlsPort] = [await findFreePort(), await findFreePort(), await findFreePort()]
    await writeManifests(port, upstreamPort, `, { name: https, port: ${tlsPort}, protocol: HTTPS, tls: { certificateRefs: [{ name: broken }] } }`)
    const data = { 'tls.crt': Buffer.from('no certificate').toString('base64'), 'tls.key': Buffer.from('no key').toString('base64') }
    await writeFile(
      join(directory, 'secret.yaml'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'broken' }, type: 'kubernetes.io/tls', data }),
    )
    const program = start(directory)
    await program.waitForLine(/Ctrl-C/)
    await program.waitForLine(/problem .*InvalidCertificateRef.*broken/)
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    const failed = await new Promise<Error>((resolve, reject) => {
      const socket = connectTls({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false }, () => reject(new Error('the handshake was done')))
      socket.on('error', resolve)
    })
    expect(failed.message).toMatch(/./)
  })

  test('prints a problem with its position, and that it is solved', async () => {
    const [port, upstreamPort] = [await findFreePort(), await findFreePort()]
    await writeManifests(port, upstreamPort)
    const file = join(directory, 'stray.yaml')
    const route = (parent: string) =>
      `apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: stray }\nspec: { parentRefs: [{ name: ${parent} }], rules: [{ matches: [{ path: { value: /stray } }] }] }\n`
    await writeFile(file, route('onne'))
    const program = start(directory)
    await program.waitForLine(
      /^warning +\S*stray\.yaml:4:24: HTTPRoute default\/stray: not in these manifests: Gateway default\/onne; did you mean one\? \[PX1114\]$/,
    )
    await program.waitForLine(/Ctrl-C/)
    await writeFile(file, route('one'))
    await program.waitForLine(/^solved +HTTPRoute default\/stray$/)
    expect(program.lines.filter(({ text }) => /^(?:problem|error) /.test(text))).toEqual([])
  })

  test('a data plane has the settings of the ProxyParameters of its Gateway, and starts again when they change', async () => {
    const [port, upstreamPort] = [await findFreePort(), await findFreePort()]
    await writeManifests(port, upstreamPort)
    const all = join(directory, 'all.yaml')
    const reference = 'infrastructure: { parametersRef: { group: proxy.dev, kind: ProxyParameters, name: p } }'
    await writeFile(all, (await readFile(all, 'utf8')).replace('gatewayClassName: proxy', `gatewayClassName: proxy\n  ${reference}`))
    const parameters = (format: string) =>
      writeFile(
        join(directory, 'parameters.yaml'),
        `apiVersion: proxy.dev/v1alpha1\nkind: ProxyParameters\nmetadata: { name: p }\nspec: { logging: { format: ${format} }, image: { tag: v1 } }\n`,
      )
    await parameters('json')
    const program = start(directory)
    await program.waitForLine(
      /^warning .*parameters\.yaml:4:\d+: ProxyParameters default\/p: image has no effect in a directory: it is about the container \[PX1030\]$/,
    )
    await program.waitForLine(/Ctrl-C/)
    expect((await send({ port })).json().name).toBe('one')
    const isJson = ({ text }: { text: string }): boolean => text.startsWith('{"')
    expect(program.lines.some(isJson)).toBe(true)
    await parameters('text')
    await program.waitForLine(/ProxyParameters of Gateway default\/one changed; its data plane starts again/)
    await program.waitForLine(/\tinfo\tconfig\tconfig applied/)
    await waitUntil('the restarted data plane serves', async () => (await send({ port }).catch(() => undefined))?.status === 200)
  })

  test('prints its addresses, serves, applies edits, and stops all programs on Ctrl-C', async () => {
    const [port, upstreamPort] = [await findFreePort(), await findFreePort()]
    await writeManifests(port, upstreamPort)
    const program = start(directory)
    await program.waitForLine(/Ctrl-C/)
    const said = program.lines.map((line) => line.text).join('\n')
    expect(said).toMatch(new RegExp(`gateway +default/one\n +http +HTTP +port ${port}`))
    expect(said).toMatch(/# request\n {2}curl .*standalone-/)
    expect((await send({ port })).json().name).toBe('one')

    await mkdir(join(directory, 'more'))
    await writeFile(
      join(directory, 'more', 'second.yaml'),
      (await readFile(join(directory, 'all.yaml'), 'utf8')).replaceAll('one', 'two').replace(String(port), String(await findFreePort())),
    )
    await program.waitForLine(/gateway +default\/two/)
    await rm(join(directory, 'more'), { recursive: true })
    await program.waitForLine(/default\/two was deleted/)
    expect((await send({ port })).status).toBe(200)

    const children = await childrenOf(program.pid)
    expect(children.length).toBeGreaterThanOrEqual(2)
    program.signal('SIGINT')
    expect(await program.exited).toEqual({ code: 0, signal: null })
    await waitUntil('the exit of every program', async () => (await Promise.all(children.map(isAlive))).every((alive) => !alive))
    expect(await isTrueWithin(60_000, () => isPortFree(port))).toBe(true)
  })
})

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

async function isAlive(pid: number): Promise<boolean> {
  try {
    return !/^State:\s+Z/m.test(await readFile(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
