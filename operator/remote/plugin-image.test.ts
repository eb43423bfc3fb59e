import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createPluginImageFetch } from './plugin-image.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const OCI = 'application/vnd.oci.image'
const TAR = `${OCI}.layer.v1.tar`
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** A layer that GNU tar wrote. A file with a name for content is a link. */
async function layer(files: Readonly<Record<string, string | { readonly link: string }>>, ...options: string[]): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'layer-'))
  cleanups.push(() => rm(directory, { recursive: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    if (typeof content === 'string') await writeFile(join(directory, name), content)
    else await symlink(content.link, join(directory, name))
  }
  return execFileSync('tar', ['-C', directory, '-c', ...options, '.'], { maxBuffer: 64 * 1024 * 1024 })
}

interface Layer {
  readonly mediaType: string
  readonly bytes: Buffer
  readonly annotations?: object
}

interface RegistryOptions {
  readonly platforms?: boolean
  readonly respond?: (request: IncomingMessage, response: ServerResponse) => boolean
}

/** A registry with one image. `respond` may respond before it does. */
async function startRegistry(layers: readonly Layer[], { platforms = false, respond = () => false }: RegistryOptions = {}) {
  const blobs = new Map<string, Buffer>()
  const store = (bytes: Buffer): string => {
    blobs.set(sha256(bytes), bytes)
    return sha256(bytes)
  }
  const listed = layers.map(({ mediaType, bytes, annotations }) => ({ mediaType, size: bytes.length, digest: store(bytes), annotations }))
  let digest = store(Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json`, layers: listed })))
  if (platforms) {
    const other = store(Buffer.from('{"layers":[]}'))
    const of = (architecture: string, which: string) => ({ mediaType: `${OCI}.manifest.v1+json`, digest: which, platform: { os: 'linux', architecture } })
    digest = store(Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [of('arm64', other), of('amd64', digest)] })))
  }
  const requests: IncomingMessage[] = []
  const server: Server = createServer((request, response) => {
    requests.push(request)
    if (respond(request, response)) return
    const blob = blobs.get(request.url?.split('/').at(-1) ?? '')
    if (blob === undefined) return void response.writeHead(404).end()
    response.end(blob)
  })
  cleanups.push(() => new Promise((resolve) => server.close(resolve)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const fetch = createPluginImageFetch({ isLoopbackAllowed: true })
  const read = (path: string, image = `${host}/team/app@${digest}`): Promise<string> =>
    fetch({ id: 'id', url: { host: image, port: 80, path }, cacheMs: 1 }, 0, new AbortController().signal)
  return { host, digest, requests, read, fails: (path: string) => read(path).catch((error: unknown) => (error as Error).message) }
}

/** `respond` responded. */
const done = (response: ServerResponse | undefined): boolean => response !== undefined

const long = `${'long-'.repeat(30)}/${'name-'.repeat(20)}/index.ts`

describe('the fetch of a plugin from an image', () => {
  test.each(['--format=gnu', '--format=pax', '--format=ustar'])('reads files of layers that GNU tar wrote with %s', async (format) => {
    const names = format === '--format=ustar' ? ['plugins/index.ts'] : ['plugins/index.ts', long]
    const bytes = await layer(Object.fromEntries([...names.map((name) => [name, `// ${name}`]), ['a', 'x'.repeat(5000)], ['z', '']]), format)
    for (const [mediaType, content] of [
      [TAR, bytes],
      [`${TAR}+gzip`, gzipSync(bytes)],
      [`${TAR}+zstd`, zstdCompressSync(bytes)],
      ['application/vnd.docker.image.rootfs.diff.tar.gzip', gzipSync(bytes)],
    ] as const) {
      const { read, fails } = await startRegistry([{ mediaType, bytes: content }])
      for (const name of names) expect([await read(`/${name}`), await read(name)]).toEqual([`// ${name}`, `// ${name}`])
      expect([await read('z'), await fails('plugins/index'), await fails('plugins')]).toEqual([
        '',
        'the image has no file plugins/index',
        'plugins is a directory',
      ])
    }
  })

  test('takes the highest layer that has the file, and none below a removal', async () => {
    const tar = async (files: Parameters<typeof layer>[0]): Promise<Layer> => ({ mediaType: `${TAR}+gzip`, bytes: gzipSync(await layer(files)) })
    const { read, fails } = await startRegistry([
      await tar({ 'a/1.ts': 'old 1', 'a/2.ts': 'old 2', 'b/3.ts': 'old 3', 'c/4.ts': 'old 4', '5.ts': '5', 'c/d/6.ts': '6' }),
      await tar({ 'a/1.ts': 'new 1', 'a/.wh.2.ts': '', 'b/.wh..wh..opq': '', '.wh.c': '', 'c/4.ts': 'new 4' }),
      await tar({ other: '' }),
    ])
    expect([await read('a/1.ts'), await read('5.ts'), await read('c/4.ts')]).toEqual(['new 1', '5', 'new 4'])
    for (const name of ['a/2.ts', 'b/3.ts', 'c/d/6.ts']) expect(await fails(name)).toBe(`the image has no file ${name}`)
  })

  test('reads a file of an artifact and an index of platforms, and does not follow links', async () => {
    const annotations = { 'org.opencontainers.image.title': 'index.ts' }
    const files = await layer({ 'link.ts': { link: '/etc/passwd' } })
    const { read, fails } = await startRegistry(
      [
        { mediaType: TAR, bytes: files },
        { mediaType: 'text/plain', bytes: Buffer.from('the artifact'), annotations },
      ],
      { platforms: true },
    )
    expect([await read('index.ts'), await fails('link.ts')]).toEqual(['the artifact', 'link.ts is a link; links are not followed'])
  })

  test('gets a token for anonymous users, and sends it to no other host', async () => {
    const bytes = gzipSync(await layer({ 'a.ts': 'a' }))
    const store = createServer((request, response) => void response.end(request.headers.authorization === undefined ? bytes : 'leaked'))
    cleanups.push(() => new Promise((resolve) => store.close(resolve)))
    await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve))
    const { host, read, requests } = await startRegistry([{ mediaType: `${TAR}+gzip`, bytes }], {
      respond({ url = '', headers }, response) {
        if (url.startsWith('/token')) return done(response.end('{"token":"abc"}'))
        if (headers.authorization !== 'Bearer abc') {
          const challenge = `Bearer realm="http://${headers.host}/token",service="r",scope="repository:team/app:pull"`
          return done(response.writeHead(401, { 'www-authenticate': challenge }).end())
        }
        if (!url.includes('/blobs/')) return false
        const { port } = store.address() as AddressInfo
        return done(response.writeHead(307, { location: `http://localhost:${port}/x` }).end())
      },
    })
    expect(await read('a.ts')).toBe('a')
    expect(requests.map(({ url = '' }) => url.replace(/sha256:.*/, ''))).toEqual([
      '/v2/team/app/manifests/',
      '/token?service=r&scope=repository%3Ateam%2Fapp%3Apull',
      '/v2/team/app/manifests/',
      '/v2/team/app/blobs/',
    ])
    expect(host).toMatch(/^127/)
  })

  test.each<[sentence: string, respond: (request: IncomingMessage, response: ServerResponse) => boolean, expected: RegExp]>([
    [
      'a blob with other content',
      ({ url = '' }, response) => url.includes('/blobs/') && (response.end('x'), true),
      /^the content of sha256:\w+ has another digest$/,
    ],
    ['a manifest with other content', (_, response) => (response.end('{"layers":[]}'), true), /^the content of sha256:\w+ has another digest$/],
    ['a manifest that is too long', (_, response) => (response.end('x'.repeat(5_000_000)), true), /^an answer is longer than 4194304 bytes$/],
    ['no image', (_, response) => (response.writeHead(404).end(), true), /^127\.0\.0\.1:\d+ answered 404$/],
    [
      'a registry that wants a password',
      (_, response) => (response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end(), true),
      /^answered 401; the operator has no credentials for 127\.0\.0\.1:\d+\/team\/app$/,
    ],
    ['endless redirects', ({ url }, response) => (response.writeHead(302, { location: url }).end(), true), /redirects more than 5 times$/],
    [
      'a redirect to plaintext',
      (_, response) => (response.writeHead(302, { location: 'http://example.com/' }).end(), true),
      /^example\.com is not reached by https$/,
    ],
    [
      'a redirect to a metadata service',
      (_, response) => (response.writeHead(302, { location: 'https://169.254.169.254/' }).end(), true),
      /^169\.254\.169\.254 is a metadata address/,
    ],
  ])('reports %s', async (_, respond, expected) => {
    const { fails } = await startRegistry([{ mediaType: `${TAR}+gzip`, bytes: gzipSync(await layer({ 'a.ts': 'a' })) }], { respond })
    expect(await fails('a.ts')).toMatch(expected)
  })

  test('limits files, and reports layers that are no archives and text that is not UTF-8', async () => {
    const large = await layer({ 'large.ts': 'x'.repeat(1_048_577) })
    const cut = (await layer({ 'a.ts': 'x'.repeat(9000) })).subarray(0, 4096)
    const reasons: string[] = []
    for (const [bytes, path] of [
      [large, 'large.ts'],
      [cut, 'a.ts'],
      [Buffer.alloc(1024, 'x'), 'a.ts'],
    ] as const)
      reasons.push(await (await startRegistry([{ mediaType: TAR, bytes }])).fails(path))
    expect(reasons).toEqual(['large.ts has 1048577 bytes; a source has at most 1048576', 'a layer ends within an entry', 'a layer is no tar archive'])
    const annotations = { 'org.opencontainers.image.title': 'a.ts' }
    const binary = await startRegistry([{ mediaType: 'text/plain', bytes: Buffer.from([0xff, 0xfe]), annotations }])
    expect(await binary.fails('a.ts')).toMatch(/not valid/)
  })

  test('speaks no plaintext and to no loopback address in a cluster', async () => {
    const { host, digest } = await startRegistry([])
    const fetch = createPluginImageFetch({ isLoopbackAllowed: false })
    const source = { id: 'id', url: { host: `${host}/team/app@${digest}`, port: 80, path: '/a.ts' }, cacheMs: 1 }
    await expect(fetch(source, 0, new AbortController().signal)).rejects.toThrow('127.0.0.1 is a loopback address')
  })

  test('fetches nothing again: an image never changes', async () => {
    const fetch = createPluginImageFetch({ isLoopbackAllowed: false })
    expect(await fetch({ id: 'id', url: { host: 'x', port: 80, path: '/a.ts' }, cacheMs: 1 }, 0, new AbortController().signal, 'before')).toBe('before')
  })
})
