import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { makeCertificate } from '../../harness/certificates.ts'
import { send, sendRaw } from '../../harness/client.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { isTrueWithin, waitUntil } from '../../harness/wait.ts'
import { modes, startEnvironment, type Environment } from './environment.ts'

describe.each(modes)('a data plane with a %s', (mode) => {
  let environment: Environment
  beforeAll(async () => {
    // New connections are accepted until the minimum deadline after SIGTERM.
    environment = await startEnvironment(mode, { env: { CONNECTION_MIN_TERMINATION_DEADLINE: '5s', TERMINATION_GRACE_PERIOD_SECONDS: '60' } })
  })
  afterAll(() => environment?.stop())

  test('serves its management ports without revealing keys', async () => {
    expect((await fetch(`http://127.0.0.1:${environment.dataplane.ports.readiness}/healthz/ready`)).status).toBe(200)
    await environment.send('plain.test')
    const metrics = await environment.dataplane.metrics()
    expect(metrics).toMatch(/^proxy_requests_total\{.*status="200".*\} \d/m)
    // The port has several HTTP listeners.
    expect(metrics).toMatch(/^proxy_downstream_connections_total\{.*listener="unknown",protocol="http"\} [1-9]/m)
    const dump = await environment.dataplane.admin('/config_dump')
    const text = await dump.text()
    expect(dump.status).toBe(200)
    expect(text).toContain('plain.test')
    expect(text).not.toMatch(/PRIVATE KEY/)
  })

  test('writes one line of access log per request', async () => {
    await environment.send('plain.test', { path: '/logged?x=1' })
    const line = await environment.dataplane.program.waitForLine(/\/logged/)
    expect(line).toMatch(/\tinfo\trequest .*http\.method=GET .*http\.host=plain\.test .*http\.path=\/logged\?x=1 .*http\.status=200 .*duration=\d+ms/)
  })

  test('counts requests that are not valid HTTP', async () => {
    expect(await sendRaw(environment.ports.HTTP, 'GET /a b HTTP/1.1\r\nhost: plain.test\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
    const sample = /^proxy_downstream_requests_refused_total\{bind="[^"]+",gateway="[^"]+",status="400"\} (\d+)$/m
    expect(Number(sample.exec(await environment.dataplane.metrics())?.[1])).toBeGreaterThan(0)
  })

  test('applies an edit without a failed request', async () => {
    const failures: unknown[] = []
    let isDone = false
    const load = Array.from({ length: 4 }, async () => {
      while (!isDone) {
        await environment.send('plain.test').then(
          (response) => response.status === 200 || failures.push(response.status),
          (error: unknown) => failures.push(error),
        )
      }
    })
    const rule = async () => (await environment.send('plain.test')).headers['x-rule']
    await environment.edit(/value: plain\b/, 'value: edited')
    await waitUntil('the edited header', async () => (await rule()) === 'edited')
    await environment.edit(/value: edited\b/, 'value: plain')
    await waitUntil('the original header', async () => (await rule()) === 'plain')
    isDone = true
    await Promise.all(load)
    expect(failures).toEqual([])
  })

  test('ignores an invalid edit', async () => {
    await environment.edit(/type: Exact, value: '\/only'/, "type: Exactly, value: '/only'")
    await sleep(300)
    expect((await environment.send('only.test', { path: '/only' })).headers['x-rule']).toBe('only')
    await environment.edit(/type: Exactly/, 'type: Exact')
  })

  test('serves a new certificate on new connections and keeps open connections', async () => {
    const tls = { ca: environment.authority.certificate, servername: 'a.secure.test' }
    const connectTls = async () => {
      const socket = connect({ port: environment.ports.TLS, host: '127.0.0.1', ...tls })
      socket.once('close', () => socket.emit('error', new Error('closed by the data plane')))
      await once(socket, 'secureConnect')
      socket.removeAllListeners('close')
      return socket
    }
    const open = await connectTls()
    let received = ''
    open.setEncoding('utf8').on('data', (chunk: string) => (received += chunk))
    const serialOf = async () => {
      const socket = await connectTls()
      const { serialNumber } = socket.getPeerCertificate()
      socket.destroy()
      return serialNumber
    }
    const before = await serialOf()
    await environment.replaceCertificate(makeCertificate({ name: 'renewed', hosts: ['a.secure.test', 'localhost'], issuer: environment.authority }))
    await waitUntil('the new certificate', async () => (await serialOf()) !== before)
    open.write('GET / HTTP/1.1\r\nhost: a.secure.test\r\n\r\n')
    await waitUntil('a response on the open connection', () => received.includes('\r\n\r\n'))
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    open.destroy()
  })

  test('exports when the certificate of a listener expires', async () => {
    const secure = makeCertificate({ name: 'short', hosts: ['a.secure.test'], issuer: environment.authority, validDays: 10 })
    const expiry = new X509Certificate(secure.certificate).validToDate.getTime() / 1000
    await environment.replaceCertificate(secure)
    const sample = new RegExp(`^proxy_certificate_expiry_timestamp_seconds\\{bind="[^"]+",gateway="[^"]+",listener="[^"]+"\\} ${expiry}$`, 'm')
    expect(await isTrueWithin(60_000, async () => sample.test(await environment.dataplane.metrics()))).toBe(true)
  })

  test('exports whether its config stream is connected and when config was applied', async () => {
    const startedAt = Date.now() / 1000
    const read = async (name: string): Promise<string | undefined> => new RegExp(`^${name} (.*)$`, 'm').exec(await environment.dataplane.metrics())?.[1]
    if (mode === 'config file') {
      expect(await read('proxy_config_stream_connected')).toBeUndefined()
      return
    }
    expect(await read('proxy_config_stream_connected')).toBe('1')
    const appliedAt = Number(await read('proxy_config_applied_timestamp_seconds'))
    expect(appliedAt).toBeGreaterThan(startedAt - 3600)
    expect(appliedAt).toBeLessThanOrEqual(Date.now() / 1000)
    await environment.stopOperator()
    await waitUntil('the end of the stream', async () => (await read('proxy_config_stream_connected')) === '0')
  })

  test('exits with code 0 after SIGTERM without losing a request', async () => {
    const inFlight = [
      environment.send('plain.test', { path: '/?delay=7000' }),
      environment.send('plain.test', { path: '/?chunks=70&interval=100', protocol: 'http2' }),
      environment.send('plain.test', { path: '/?chunks=70&interval=100' }),
    ]
    await waitUntil('requests in flight', () => environment.blue.requests.filter((request) => /delay=7000|chunks=70/.test(request.path)).length >= 3)
    environment.dataplane.program.signal('SIGTERM')
    await environment.dataplane.program.waitForLine(/\tdraining /)
    // Before the minimum deadline, new connections are served.
    expect((await environment.send('plain.test')).status).toBe(200)
    expect((await Promise.all(inFlight)).map((response) => response.status)).toEqual([200, 200, 200])
    expect(await environment.dataplane.program.exited).toEqual({ code: 0, signal: null })
  })
})

test('a data plane with several workers exports the expiry of a certificate once, not the sum of all workers', async () => {
  const environment = await startEnvironment('config file', { env: { WORKERS: '2' } })
  try {
    const values = [...(await environment.dataplane.metrics()).matchAll(/^proxy_certificate_expiry_timestamp_seconds\{.*\} (\S+)$/gm)]
    expect(values.length).toBeGreaterThan(0)
    const yearFromNow = Date.now() / 1000 + 366 * 86_400
    expect(values.filter(([, value]) => !(Number(value) < yearFromNow))).toEqual([])
  } finally {
    await environment.stop()
  }
})

describe('a data plane that cannot start', () => {
  const directories: string[] = []
  afterAll(async () => {
    for (const directory of directories) await rm(directory, { recursive: true })
  })
  const write = async (name: string, text: string) => {
    const directory = await mkdtemp(join(tmpdir(), 'behaviour-start-'))
    directories.push(directory)
    await writeFile(join(directory, name), text)
    return join(directory, name)
  }
  const bind = (port: number, listener: string) => `binds: [{ port: ${port}, listeners: [${listener}] }]`
  const route = '{ routes: [{ backends: [{ host: "127.0.0.1:9" }] }] }'

  test.each([
    ['a missing file', async () => '/nowhere/config.yaml', /\/nowhere\/config\.yaml/],
    ['a field that does not exist', async () => write('c.yaml', `${bind(await findFreePort(), route)}\nbackend: []\n`), /backend\b/],
    ['a value of the wrong type', async () => write('c.yaml', 'binds: [{ port: abc, listeners: [] }]'), /binds.*port/],
    [
      'a missing certificate',
      async () => write('c.yaml', bind(await findFreePort(), '{ protocol: HTTPS, tls: { cert: none.crt, key: none.key } }')),
      /none\.(crt|key)/,
    ],
  ])('exits with code 1 and a one-line error for %s', async (_sentence, make, message) => {
    await expect(startDataplane({ config: { file: await make() } })).rejects.toThrow(message)
  })

  test('reports which port is taken', async () => {
    const first = await findFreePort()
    const one = await startDataplane({ config: { file: await write('c.yaml', bind(first, route)) } })
    const second = await write('c.yaml', bind(first, route))
    await expect(startDataplane({ config: { file: second } })).rejects.toThrow(String(first))
    await expect(send({ port: first })).resolves.toMatchObject({ status: 503 })
    await one.stop()
  })
})
