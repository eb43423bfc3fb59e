import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { ApiError, connect, type KubeConnection } from './connection.ts'

let server: Server
let answer: (request: IncomingMessage, response: ServerResponse) => void
let directory: string
let connection: KubeConnection

beforeEach(async () => {
  server = createServer((request, response) => answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  directory = await mkdtemp(join(tmpdir(), 'connection-'))
  connection = connect({ kubeconfig: await writeConfig() })
})
afterEach(async () => {
  connection.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await rm(directory, { recursive: true })
})

async function writeConfig(context = 'c'): Promise<string> {
  const file = join(directory, 'config')
  const config = {
    'current-context': context,
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}/prefix/`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token: 'secret-token' } }],
  }
  await writeFile(file, JSON.stringify(config))
  return file
}

test('a request has the token and the path of the server, and returns the object', async () => {
  answer = (request, response) =>
    response.end(JSON.stringify({ url: request.url, authorization: request.headers.authorization, type: request.headers['content-type'] }))
  expect(await connection.request('PATCH', '/api/v1/x?y=1', { body: { a: 1 }, contentType: 'application/merge-patch+json' })).toEqual({
    url: '/prefix/api/v1/x?y=1',
    authorization: 'Bearer secret-token',
    type: 'application/merge-patch+json',
  })
})

test('an error response is an ApiError with status, reason and message, without body and query', async () => {
  answer = (_request, response) => response.writeHead(409).end(JSON.stringify({ kind: 'Status', reason: 'Conflict', message: 'was modified' }))
  const error = await connection.request('PUT', '/api/v1/x?token=q', { body: { data: 'secret' } }).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({ status: 409, reason: 'Conflict', message: 'PUT /api/v1/x: was modified' })
})

test('an error response in plain text is an ApiError', async () => {
  answer = (_request, response) => response.writeHead(502).end('<html>')
  await expect(connection.request('GET', '/x')).rejects.toMatchObject({ status: 502, message: 'GET /x: the API server answered 502' })
})

test('a request without a response in time fails', async () => {
  answer = () => {}
  await expect(connection.request('GET', '/x', { timeoutMs: 50 })).rejects.toThrow('GET /prefix/x')
})

test('a stream yields whole lines and characters, however the chunks are cut', async () => {
  const bytes = Buffer.from('{"a":"é"}\n{"b":1}\n{"c":2}\n')
  answer = (_request, response) => {
    response.write(bytes.subarray(0, 7))
    setTimeout(() => response.end(bytes.subarray(7)), 20)
  }
  const lines: string[] = []
  await connection.stream('/x', (line) => lines.push(line), new AbortController().signal)
  expect(lines).toEqual(['{"a":"é"}', '{"b":1}', '{"c":2}'])
})

test('an aborted stream ends, and a rejected one fails with the reason', async () => {
  answer = (_request, response) => {
    response.write('{}\n')
  }
  const abort = new AbortController()
  await expect(connection.stream('/x', () => abort.abort(), abort.signal)).rejects.toThrow()
  answer = (_request, response) => response.writeHead(410).end('{"reason":"Expired"}')
  await expect(connection.stream('/x', () => {}, new AbortController().signal)).rejects.toMatchObject({ status: 410, reason: 'Expired' })
})

test('a kubeconfig that is missing or names no cluster is an error', async () => {
  expect(() => connect({ kubeconfig: '/no/such/file' })).toThrow(/^KUBECONFIG \/no\/such\/file: .*ENOENT/)
  const file = await writeConfig('other')
  expect(() => connect({ kubeconfig: file })).toThrow('current-context names no cluster')
})

test('the first of several kubeconfigs that names an entry wins, and a missing file is skipped', async () => {
  const usable = await writeConfig('')
  const chooser = join(directory, 'chooser')
  await writeFile(chooser, JSON.stringify({ 'current-context': 'c', users: [{ name: 'u', user: { token: 'first-token' } }] }))
  const last = join(directory, 'last')
  await writeFile(last, JSON.stringify({ 'current-context': 'other', contexts: [{ name: 'c', context: { cluster: 'no', user: 'no' } }] }))
  const merged = connect({ kubeconfig: [join(directory, 'missing'), chooser, usable, '', last].join(delimiter) })
  answer = (request, response) => response.end(JSON.stringify({ url: request.url, authorization: request.headers.authorization }))
  expect(await merged.request('GET', '/x')).toEqual({ url: '/prefix/x', authorization: 'Bearer first-token' })
  merged.close()
  expect(() => connect({ kubeconfig: ['/no/one', '/no/two'].join(delimiter) })).toThrow(/^KUBECONFIG \/no\/one.\/no\/two: .*ENOENT/)
})

test('without kubeconfig and pod, the error names every way to connect', () => {
  const saved = process.env['KUBERNETES_SERVICE_HOST']
  delete process.env['KUBERNETES_SERVICE_HOST']
  try {
    expect(() => connect({})).toThrow(/set KUBECONFIG.*run in a pod.*--dir/)
  } finally {
    if (saved !== undefined) process.env['KUBERNETES_SERVICE_HOST'] = saved
  }
})
