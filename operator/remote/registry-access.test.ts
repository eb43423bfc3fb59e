import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { makeAuthority, makeCertificate } from '../../e2e/harness/certificates.ts'
import { createPluginImageFetch } from './plugin-image.ts'
import { createRegistryAccess } from './registry-access.ts'

let directory: string
const cleanups: (() => unknown)[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'registry-'))
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  await rm(directory, { recursive: true })
})

const write = async (name: string, text: string): Promise<string> => {
  await writeFile(join(directory, name), text)
  return join(directory, name)
}
const base64 = (text: string): string => Buffer.from(text).toString('base64')

async function listen(server: Server): Promise<number> {
  cleanups.push(() => new Promise((resolve) => server.close(resolve)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const digestOf = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`
const CODE = 'export default {}\n'
const layers = [{ mediaType: 'text/plain', digest: digestOf(CODE), annotations: { 'org.opencontainers.image.title': 'index.ts' } }]
const MANIFEST = JSON.stringify({ schemaVersion: 2, layers })
/** Responds as a registry that has the file `index.ts`. */
const respond: RequestListener = ({ url = '' }, response) => void response.end(url.includes('/manifests/') ? MANIFEST : CODE)

/** Fetches `index.ts` from a registry of this machine; the message of the error, if it fails. */
async function pull(port: number, files: Parameters<typeof createRegistryAccess>[0]): Promise<string> {
  const image = `127.0.0.1:${port}/team/app@${digestOf(MANIFEST)}`
  const fetch = createPluginImageFetch({ isLoopbackAllowed: true, files })
  return fetch({ id: 'id', url: { host: image, port: 80, path: '/index.ts' }, cacheMs: 1 }, 0, new AbortController().signal).catch(
    (error: unknown) => (error as Error).message,
  )
}

describe('credentials for registries', () => {
  test.each([
    ['registry.example/team/app', 'host'],
    ['registry.example/platform/app', 'longer'],
    ['registry.example/platforms/app', 'host'],
    ['registry.example:5000/app', undefined],
    ['other.example:5000/app', 'port'],
    ['a.cloud.example/app', 'label'],
    ['a.b.cloud.example/app', undefined],
    ['docker.io/library/node', 'hub'],
    ['evil-registry.example/app', undefined],
  ])('of %s are those of the entry with the longest name that matches', async (repository, user) => {
    const names = {
      'https://registry.example': 'host',
      'registry.example/platform': 'longer',
      'other.example:5000': 'port',
      '*.cloud.example': 'label',
      'https://index.docker.io/v1/': 'hub',
    }
    const auths = Object.fromEntries(Object.entries(names).map(([name, each]) => [name, { auth: base64(`${each}:secret`) }]))
    const { authorize } = await createRegistryAccess({ config: await write('config.json', JSON.stringify({ auths })) })()
    expect(authorize(repository)).toBe(user === undefined ? undefined : `Basic ${base64(`${user}:secret`)}`)
  })

  test('can be user name and password, and an entry without them is an error of its registry only', async () => {
    const auths = { 'a.example': { username: 'u', password: 'p' }, 'b.example': {} }
    const { authorize } = await createRegistryAccess({ config: await write('config.json', JSON.stringify({ auths })) })()
    expect(authorize('a.example/x')).toBe(`Basic ${base64('u:p')}`)
    expect(authorize('c.example/x')).toBeUndefined()
    expect(() => authorize('b.example/x')).toThrow(/config\.json: auths\["b\.example"\] needs auth, or username and password$/)
  })

  test.each([
    ['{"auths": secret', /config\.json is no JSON object with auths; write it as docker login does$/],
    ['[]', /is no JSON object with auths/],
  ])('are not quoted by the error of a file that cannot be read', async (text, expected) => {
    await expect(createRegistryAccess({ config: await write('config.json', text) })()).rejects.toThrow(expected)
    await expect(createRegistryAccess({ config: join(directory, 'none') })()).rejects.toThrow(/none cannot be read: ENOENT$/)
  })
})

describe('the fetch of an image', () => {
  test('sends credentials when the registry asks for them, and names a denial', async () => {
    const expected = `Basic ${base64('user:password')}`
    const seen: (string | undefined)[] = []
    const port = await listen(
      createServer((request, response) => {
        seen.push(request.headers.authorization)
        if (request.headers.authorization === expected) respond(request, response)
        else response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
      }),
    )
    const config = (password: string): Promise<string> =>
      write('config.json', JSON.stringify({ auths: { [`127.0.0.1:${port}`]: { auth: base64(`user:${password}`) } } }))
    expect(await pull(port, {})).toBe(`answered 401; the operator has no credentials for 127.0.0.1:${port}/team/app`)
    expect(await pull(port, { config: await config('wrong') })).toBe('answered 401; the registry does not accept the credentials of the operator')
    seen.length = 0
    expect(await pull(port, { config: await config('password') })).toBe(CODE)
    expect(seen).toEqual([undefined, expected, expected])
  })

  test('exchanges credentials for a token', async () => {
    const port = await listen(
      createServer((request, response) => {
        const { url = '', headers } = request
        if (url.startsWith('/token'))
          return void response.end(JSON.stringify({ token: headers.authorization === `Basic ${base64('u:p')}` ? 'own' : 'anonymous' }))
        if (headers.authorization === 'Bearer own') return respond(request, response)
        const challenge = `Bearer realm="http://${headers.host}/token",service="r"`
        response.writeHead(401, { 'www-authenticate': challenge }).end()
      }),
    )
    const config = await write('config.json', JSON.stringify({ auths: { [`127.0.0.1:${port}/team`]: { auth: base64('u:p') } } }))
    expect([await pull(port, { config }), await pull(port, {})]).toEqual([CODE, `answered 401; the operator has no credentials for 127.0.0.1:${port}/team/app`])
  })

  test('gives credentials to no host that the registry redirects to', async () => {
    const seen: (string | undefined)[] = []
    const thief = await listen(
      createServer(({ headers }, response) => {
        seen.push(headers.authorization)
        response.writeHead(401, { 'www-authenticate': headers.authorization ?? `Bearer realm="http://${headers.host}/token"` }).end()
      }),
    )
    const port = await listen(createServer((_, response) => void response.writeHead(307, { location: `http://localhost:${thief}/x` }).end()))
    const config = await write('config.json', JSON.stringify({ auths: { [`127.0.0.1:${port}`]: { auth: base64('u:p') } } }))
    expect(await pull(port, { config })).toMatch(/^answered 401/)
    expect(seen).toEqual([undefined])
  })

  test('trusts a private CA of the file in addition to those of the system, and reads a new file without a restart', async () => {
    const authority = makeAuthority('private')
    const { certificate: cert, privateKey: key } = makeCertificate({ name: 'store', hosts: ['127.0.0.1'], issuer: authority })
    const store = await listen(createTlsServer({ cert, key }, respond))
    // Loopback is reached in plaintext; the store is not.
    const port = await listen(createServer(({ url }, response) => void response.writeHead(307, { location: `https://127.0.0.1:${store}${url}` }).end()))
    const untrusted = `the CA of the certificate of 127.0.0.1:${store} is not trusted`
    expect(await pull(port, {})).toBe(untrusted)
    const ca = await write('ca.crt', makeAuthority('other').certificate)
    const fetch = createPluginImageFetch({ isLoopbackAllowed: true, files: { ca } })
    const image = `127.0.0.1:${port}/team/app@${digestOf(MANIFEST)}`
    const read = (): Promise<string> => fetch({ id: 'id', url: { host: image, port: 80, path: '/index.ts' }, cacheMs: 1 }, 0, new AbortController().signal)
    await expect(read()).rejects.toThrow(untrusted)
    await write('ca.crt', `# two\n${makeAuthority('another').certificate}${authority.certificate}`)
    expect(await read()).toBe(CODE)
  })

  test.each([
    ['text', /ca\.crt has no certificate; write CA certificates in PEM$/],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', /ca\.crt: certificate 1 is not valid$/],
  ])('reports a file of CAs that holds none: %j', async (text, expected) => {
    const port = await listen(createServer(respond))
    expect(await pull(port, { ca: await write('ca.crt', text) })).toMatch(expected)
  })
})
