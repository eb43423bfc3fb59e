import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { apply, gatewayPods, installProxy, kubectl, read, run, startQuickstart, SYSTEM, until, untilStatus } from './cluster.ts'
import { startLoad } from './load.ts'

const NAMESPACE = 'certificate'
let address: string
let url: string
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'certificate-'))
  await installProxy()
  address = await startQuickstart(NAMESPACE)
  url = `http://${address}/`
})
afterAll(async () => {
  await installProxy()
  await kubectl('-n', SYSTEM, 'delete', 'secret', 'proxy-xds-cert', '--ignore-not-found')
  await kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false')
  await rm(directory, { recursive: true })
})

/** Creates a self-signed certificate for a name, as PEM files. */
async function makeCertificate(name: string): Promise<{ crt: string; key: string }> {
  const files = { crt: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) }
  const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=DNS:${name}`]
  await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-keyout',
    files.key,
    '-out',
    files.crt,
    ...subject,
  ])
  return files
}
async function storeStreamCertificate(): Promise<void> {
  const { crt, key } = await makeCertificate(`proxy.${SYSTEM}.svc`)
  const from = [`--from-file=tls.crt=${crt}`, `--from-file=tls.key=${key}`, `--from-file=ca.crt=${crt}`, '--type=kubernetes.io/tls']
  await apply(SYSTEM, await kubectl('-n', SYSTEM, 'create', 'secret', 'generic', 'proxy-xds-cert', ...from, '--dry-run=client', '-o', 'yaml'))
}
const authority = async (): Promise<string | undefined> => (await read('configmap', 'web-xds-ca', NAMESPACE))?.data?.['ca.crt']
const podNames = async (): Promise<string[]> => (await gatewayPods(NAMESPACE, 'web')).map(({ metadata }) => metadata.name)
/** Changes the route and waits until the data planes have received the change over the stream. */
async function changeRoute(path: string): Promise<void> {
  const rules = [
    { matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [{ name: 'echo', port: 80 }] },
    { backendRefs: [{ name: 'echo', port: 80 }] },
  ]
  await kubectl('-n', NAMESPACE, 'patch', 'httproute', 'echo', '--type=merge', '-p', JSON.stringify({ spec: { rules } }))
  await untilStatus(`${url}${path.slice(1)}`, 200)
}

test('the value xds.tls switches the config stream to TLS with the CA of the Secret, without a failed request', async () => {
  await storeStreamCertificate()
  const [before] = await podNames()
  const load = startLoad(url)
  await installProxy({ controller: { xds: { tls: { enabled: true } } } })
  await until('pods that trust the CA', async () => (await authority()) !== undefined && !(await podNames()).includes(before ?? ''))
  const environment: { name: string; value?: string }[] = (await gatewayPods(NAMESPACE, 'web'))[0]?.spec.containers[0].env
  expect(environment.find(({ name }) => name === 'XDS_ADDRESS')?.value).toBe(`https://proxy.${SYSTEM}.svc.cluster.local:9978`)
  await changeRoute('/tls')
  expect((await load.stop()).failures).toEqual([])
})

test('operator and pods use a new certificate of another CA without a restart of the operator or a failed request', async () => {
  const [pod] = await podNames()
  const before = await authority()
  const operator = await kubectl('-n', SYSTEM, 'get', 'pods', '-o', 'name')
  const load = startLoad(url)
  await storeStreamCertificate()
  await until('pods that trust the new CA', async () => (await authority()) !== before && !(await podNames()).includes(pod ?? ''))
  await changeRoute('/rotated')
  expect((await load.stop()).failures).toEqual([])
  expect(await kubectl('-n', SYSTEM, 'get', 'pods', '-o', 'name')).toBe(operator)
})

test('new connections get the new certificate of a listener, and open connections are kept', async () => {
  const store = async (): Promise<string> => {
    const { crt, key } = await makeCertificate('web.example')
    await apply(NAMESPACE, await kubectl('-n', NAMESPACE, 'create', 'secret', 'tls', 'web', `--cert=${crt}`, `--key=${key}`, '--dry-run=client', '-o', 'yaml'))
    return new X509Certificate(await run('cat', [crt])).fingerprint256
  }
  const open = () => connect({ host: address, port: 443, servername: 'web.example', rejectUnauthorized: false })
  const served = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = open()
      socket.setTimeout(60_000, () => socket.destroy(new Error('no handshake')))
      socket.on('error', reject)
      socket.on('secureConnect', () => {
        resolve(socket.getPeerCertificate().fingerprint256)
        socket.destroy()
      })
    })
  const first = await store()
  const listener = { name: 'https', port: 443, protocol: 'HTTPS', hostname: 'web.example', tls: { certificateRefs: [{ name: 'web' }] } }
  await kubectl('-n', NAMESPACE, 'patch', 'gateway', 'web', '--type=json', '-p', JSON.stringify([{ op: 'add', path: '/spec/listeners/-', value: listener }]))
  await until('the first certificate', async () => (await served()) === first)
  const early = open()
  await new Promise((resolve, reject) => early.once('secureConnect', resolve).once('error', reject))
  const second = await store()
  await until('the second certificate', async () => (await served()) === second)
  early.write('GET / HTTP/1.1\r\nHost: web.example\r\nConnection: close\r\n\r\n')
  const response = await new Promise<string>((resolve) => early.once('data', (chunk: Buffer) => resolve(chunk.toString())))
  expect(response).toMatch(/^HTTP\/1\.1 200 /)
  early.destroy()
})
