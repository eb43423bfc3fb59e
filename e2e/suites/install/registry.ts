import { execFileSync } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { findEngine } from '../../../images/engine.ts'
import { makeAuthority, makeCertificate } from '../../harness/certificates.ts'
import { apply, kubectl, read, until } from './cluster.ts'
import { BASE, buildImage, loadImage, withDirectory } from './image.ts'

const IMAGE = 'localhost/registry:e2e'
/** Debian's package docker-registry: the registry of CNCF Distribution. */
const PROGRAM = '/usr/bin/docker-registry'
const USER = 'puller'
const PASSWORD = 'registry-password'

/** A registry in a pod, over TLS with a certificate of a private CA, for one user. */
export interface ClusterRegistry {
  /** Host that pods reach it under. */
  readonly host: string
  /** The private CA in PEM. */
  readonly ca: string
  /** `.dockerconfigjson` with these credentials. */
  readonly credentials: (password?: string) => string
  /** Builds an image with one file, stores it and returns `<host>/<repository>@sha256:<digest>`. */
  push(repository: string, file: string, content: string): Promise<string>
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
}

/** Starts the registry. It ends with the namespace. */
export async function startRegistry(namespace: string): Promise<ClusterRegistry> {
  await withDirectory('registry-', async (directory) => {
    await copyFile(PROGRAM, join(directory, 'registry'))
    await writeFile(join(directory, 'Dockerfile'), `FROM ${BASE}\nCOPY registry /registry\nENTRYPOINT ["/registry", "serve", "/config/config.yml"]\n`)
    await loadImage(IMAGE, directory)
  })
  const host = `registry.${namespace}.svc`
  const authority = makeAuthority('private registry')
  const { certificate, privateKey } = makeCertificate({ name: host, issuer: authority })
  const users = execFileSync('htpasswd', ['-nbB', USER, PASSWORD], { encoding: 'utf8' })
  await apply(namespace, ...manifestsOf({ 'tls.crt': certificate, 'tls.key': privateKey, htpasswd: users }))
  await kubectl('-n', namespace, 'rollout', 'status', 'deployment/registry', '--timeout=300s')
  let address = ''
  await until('the registry has an address', async () => {
    address = String((await read('service', 'registry', namespace))?.status?.loadBalancer?.ingress?.[0]?.ip ?? '')
    return address !== ''
  })
  const send = createSend({ address, host, ca: authority.certificate })
  await until('the registry responds', async () => {
    const { status } = await send('GET', '/v2/').catch(() => ({ status: 0 }))
    return status === 200
  })
  return {
    host,
    ca: authority.certificate,
    credentials: (password = PASSWORD) => JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${USER}:${password}`).toString('base64') } } }),
    push: (repository, file, content) =>
      withDirectory('plugin-', async (directory) => {
        await writeFile(join(directory, file), content)
        await writeFile(join(directory, 'Dockerfile'), `FROM scratch\nCOPY ${file} /${file}\n`)
        const name = 'localhost/plugin:e2e'
        buildImage(name, directory)
        findEngine().saveOci(name, join(directory, 'oci.tar'))
        execFileSync('tar', ['-C', directory, '-xf', join(directory, 'oci.tar')])
        const { manifests } = JSON.parse(await readFile(join(directory, 'index.json'), 'utf8')) as { readonly manifests: readonly [Descriptor] }
        await pushManifest(send, repository, directory, manifests[0])
        return `${host}/${repository}@${manifests[0].digest}`
      }),
  }
}

/** @param secret certificate, key and users */
function manifestsOf(secret: Readonly<Record<string, string>>): object[] {
  const config = {
    version: '0.1',
    storage: { filesystem: { rootdirectory: '/data' } },
    http: { addr: ':5000', tls: { certificate: '/secret/tls.crt', key: '/secret/tls.key' } },
    auth: { htpasswd: { realm: 'registry', path: '/secret/htpasswd' } },
  }
  const labels = { app: 'registry' }
  const volumes = [
    { name: 'config', configMap: { name: 'registry' } },
    { name: 'secret', secret: { secretName: 'registry' } },
    { name: 'data', emptyDir: {} },
  ]
  const container = {
    name: 'registry',
    image: IMAGE,
    readinessProbe: { tcpSocket: { port: 5000 }, periodSeconds: 1 },
    volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
  }
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'registry' }, data: { 'config.yml': JSON.stringify(config) } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'registry' }, stringData: secret },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'registry' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers: [container], volumes } },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'registry' },
      spec: { type: 'LoadBalancer', selector: labels, ports: [{ port: 443, targetPort: 5000 }] },
    },
  ]
}

interface RegistryResponse {
  readonly status: number
  readonly location: string
}
type Send = (method: string, path: string, body?: Buffer, type?: string) => Promise<RegistryResponse>

const createSend =
  ({ address, host, ca }: { readonly address: string; readonly host: string; readonly ca: string }): Send =>
  (method, path, body = Buffer.alloc(0), type = 'application/octet-stream') => {
    const { promise, resolve, reject } = Promise.withResolvers<RegistryResponse>()
    const headers = { host, 'content-type': type, 'content-length': body.length }
    const sent = request({ method, path, host: address, servername: host, ca, auth: `${USER}:${PASSWORD}`, headers, agent: false, timeout: 30_000 })
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no response`)))
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode ?? 0, location: response.headers.location ?? '' }))
    })
    sent.end(body)
    return promise
  }

/** Uploads a manifest of an OCI layout, and everything that it names. */
async function pushManifest(send: Send, repository: string, layout: string, { mediaType, digest }: Descriptor): Promise<void> {
  const readBlob = (name: string): Promise<Buffer> => readFile(join(layout, 'blobs', name.replace(':', '/')))
  const content = await readBlob(digest)
  const {
    manifests = [],
    config,
    layers = [],
  } = JSON.parse(content.toString()) as {
    readonly manifests?: readonly Descriptor[]
    readonly config?: Descriptor
    readonly layers?: readonly Descriptor[]
  }
  for (const manifest of manifests) await pushManifest(send, repository, layout, manifest)
  for (const blob of config === undefined ? layers : [config, ...layers]) {
    const { location } = expectStatus(202, await send('POST', `/v2/${repository}/blobs/uploads/`))
    const upload = new URL(location, 'https://registry')
    upload.searchParams.set('digest', blob.digest)
    expectStatus(201, await send('PUT', `${upload.pathname}${upload.search}`, await readBlob(blob.digest)))
  }
  expectStatus(201, await send('PUT', `/v2/${repository}/manifests/${digest}`, content, mediaType))
}

function expectStatus(expected: number, response: RegistryResponse): RegistryResponse {
  if (response.status !== expected) throw new Error(`the registry responded with ${response.status} instead of ${expected}`)
  return response
}
