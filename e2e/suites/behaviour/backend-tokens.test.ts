import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { send } from '../../harness/client.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { startGateway } from '../../harness/program/gateway.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { modes, type Mode } from './environment.ts'

interface Running {
  readonly port: number
  readonly stop: () => Promise<void>
  readonly log: () => string
}

const grant = { grantType: 'TokenExchange', audiences: ['orders'], clientAuthentication: 'Basic' }

/** The data plane in front of `upstream`, with tokens of the server at port `idp` of 127.0.0.1. */
async function start(mode: Mode, upstream: number, idp: number): Promise<Running> {
  const path = '/token'
  if (mode === 'config stream') {
    const oauth = { ...grant, tokenEndpoint: { backendRef: { name: 'idp', port: 80 }, path }, secretRef: { name: 'client' } }
    const gateway = await startGateway({
      services: { idp },
      manifests: () => [
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'client' }, stringData: { clientId: 'gateway', clientSecret: 's3cret' } },
        {
          apiVersion: 'proxy.dev/v1alpha1',
          kind: 'ProxyBackend',
          metadata: { name: 'api' },
          spec: { static: { host: '127.0.0.1', port: upstream }, policies: { auth: { oauth } } },
        },
        {
          apiVersion: 'gateway.networking.k8s.io/v1',
          kind: 'HTTPRoute',
          metadata: { name: 'api' },
          spec: { parentRefs: [{ name: 'gw' }], rules: [{ backendRefs: [{ group: 'proxy.dev', kind: 'ProxyBackend', name: 'api' }] }] },
        },
      ],
    })
    return {
      port: gateway.port,
      stop: () => gateway.stop(),
      log: () => [...gateway.dataplane.program.lines, ...gateway.operator.program.lines].map(({ text }) => text).join('\n'),
    }
  }
  const directory = await mkdtemp(join(tmpdir(), 'tokens-'))
  const port = await findFreePort()
  const file = join(directory, 'config.yaml')
  const oauth = { ...grant, tokenEndpoint: { backendRef: { address: `127.0.0.1:${idp}` }, path }, secretRef: { secret: 'client' } }
  const config = {
    secrets: [{ key: 'client', type: 'opaque', data: { clientId: 'gateway', clientSecret: 's3cret' } }],
    binds: [{ port, listeners: [{ routes: [{ backends: [{ host: `127.0.0.1:${upstream}`, policies: { auth: { oauth } } }] }] }] }],
  }
  await writeFile(file, stringify(config))
  const dataplane = await startDataplane({ config: { file } })
  const stop = async (): Promise<void> => {
    await dataplane.stop()
    await rm(directory, { recursive: true })
  }
  return { port, stop, log: () => dataplane.program.lines.map(({ text }) => text).join('\n') }
}

describe.each(modes)('tokens for a backend with a %s', (mode) => {
  let upstream: EchoServer
  let idp: Server
  let running: Running
  let status = 200

  beforeAll(async () => {
    upstream = await startEcho({ name: 'api' })
    idp = createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += String(chunk)))
      request.on('end', () => {
        const isClient = request.headers.authorization === `Basic ${Buffer.from('gateway:s3cret').toString('base64')}`
        const form = new URLSearchParams(text)
        if (status !== 200 || !isClient || form.get('audience') !== 'orders')
          return void response.writeHead(status === 200 ? 401 : status).end('the secret text')
        response.end(JSON.stringify({ access_token: `for-${form.get('subject_token')}`, token_type: 'Bearer', expires_in: 300 }))
      })
    })
    await new Promise<void>((resolve) => idp.listen(0, '127.0.0.1', resolve))
    running = await start(mode, upstream.port, (idp.address() as AddressInfo).port)
  })
  afterAll(async () => {
    await running?.stop()
    await upstream?.close()
    idp?.closeAllConnections()
    await new Promise((resolve) => idp.close(resolve))
  })

  const get = (headers: Record<string, string> = {}) => send({ port: running.port, headers })

  test('replace the token of the client', async () => {
    const response = await get({ authorization: 'Bearer ann' })
    expect([response.status, response.json().headers['authorization']]).toEqual([200, 'Bearer for-ann'])
  })

  test('are not requested for clients without a token, who get 401', async () => {
    const response = await get()
    expect([response.status, response.body, response.headers['www-authenticate']]).toEqual([
      401,
      'backend authentication failed: the request has no token',
      'Bearer',
    ])
  })

  test('fail with 502 if their server fails, without its text, and are in no log', async () => {
    status = 500
    const response = await get({ authorization: 'Bearer bob' })
    expect([response.status, response.body]).toEqual([502, 'backend authentication failed: no token could be obtained'])
    status = 200
    expect((await get({ authorization: 'Bearer ann' })).status).toBe(200)
    expect(running.log()).not.toMatch(/for-ann|s3cret|secret text|Bearer (ann|bob)/)
    expect(upstream.requests.map(({ headers }) => headers['authorization'])).toEqual(['Bearer for-ann', 'Bearer for-ann'])
  })
})
