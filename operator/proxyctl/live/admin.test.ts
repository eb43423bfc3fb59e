import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { collections, startFakeApi, type FakeApi } from '../../kube/testing.ts'
import { listTargets, locate, readToken, tokenOf } from './admin.ts'
import { main } from '../proxyctl.ts'

const TOKEN = 'b2'.repeat(32)

describe('the token of a Gateway', () => {
  const { secrets } = collections
  let api: FakeApi
  beforeEach(async () => {
    api = await startFakeApi({ install: [secrets] })
  })
  afterEach(() => api.close())
  const read = (gateway = 'web') => readToken(api.connection, 'shop', gateway)
  const put = (name: string, data: Record<string, string>): void => void api.put(secrets, { metadata: { name, namespace: 'shop' }, data })

  test('is that of its Secret', async () => {
    put('web-admin-token', { token: Buffer.from(`${TOKEN}\n`).toString('base64') })
    expect(await read()).toMatchObject({ isSet: true, headers: { authorization: `Bearer ${TOKEN}` } })
  })

  test('of a long name is that of the Secret that the operator makes', async () => {
    await read('b'.repeat(80))
    expect(api.requests.at(-1)).toMatch(/^GET \/api\/v1\/namespaces\/shop\/secrets\/b{50}-[0-9a-f]{12}$/)
  })

  test('is not sent where there is no Secret, as of an older operator', async () => {
    expect(await read()).toEqual({ isSet: false, headers: {}, fix: 'there is no Secret shop/web-admin-token; add it, or set ADMIN_TOKEN to the token' })
  })

  test('is not sent if the user may not read it, and the fix names Secret and verb', async () => {
    api.fail('GET', secrets, 403)
    expect(await read()).toEqual({
      isSet: false,
      headers: {},
      fix: 'the user of the kubeconfig may not read Secret shop/web-admin-token: verb get is missing; add it, or set ADMIN_TOKEN to the token',
    })
  })

  test('is empty: the fix names the entry', async () => {
    put('web-admin-token', { other: '' })
    expect(await read()).toMatchObject({ isSet: false, headers: {}, fix: expect.stringContaining('Secret shop/web-admin-token has no entry token') })
  })

  test('other errors of the API server are reported', async () => {
    api.fail('GET', secrets, 500)
    await expect(read()).rejects.toMatchObject({ status: 500 })
  })
})

describe('a data plane that needs a token', () => {
  let server: Server
  let address: string
  beforeAll(async () => {
    server = createServer(({ headers }, response) => {
      const isGranted = headers.authorization === `Bearer ${TOKEN}`
      response.writeHead(isGranted ? 200 : 401).end(isGranted ? 'current log level is info\n' : 'no token\n')
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => new Promise((resolve) => void server.close(resolve)))
  const run = async (env: Record<string, string>) => {
    let [stdout, stderr] = ['', '']
    const terminal = { env, isTerminal: false, readInput: () => Promise.resolve('') }
    const code = await main(['log', 'level', '--admin', address], { ...terminal, write: (text) => (stdout += text), writeError: (text) => (stderr += text) })
    return { code, stdout, stderr }
  }

  test('receives that of ADMIN_TOKEN', async () => {
    expect(await run({ ADMIN_TOKEN: ` ${TOKEN}\n` })).toMatchObject({ code: 0, stderr: '' })
  })

  test.each([
    ['no', {}, 'set ADMIN_TOKEN to its token'],
    ['another', { ADMIN_TOKEN: 'c3'.repeat(32) }, 'ADMIN_TOKEN is set, and is not its token: correct it, or unset it to read the token from the cluster'],
  ])('refuses a request with %s token, and the message says what to do', async (_, env: Record<string, string>, fix) => {
    expect(await run(env)).toEqual({ code: 1, stdout: '', stderr: `proxyctl: ${address} refused the request without its token: ${fix} [PX6004]\n` })
  })

  test('is a target of the console with the token only', async () => {
    const request = async (env: Record<string, string>) => {
      const [target] = await listTargets(await locate({ options: { admin: address }, env }))
      return target?.request({ method: 'GET', path: '/api/v1/stats', headers: { authorization: 'Bearer of-a-page' }, signal: AbortSignal.timeout(5000) })
    }
    const response = await request({ ADMIN_TOKEN: TOKEN })
    expect(response?.statusCode).toBe(200)
    response?.resume()
    await expect(request({})).rejects.toThrow(`${address} refused the request without its token: ${tokenOf({}).fix}`)
  })
})
