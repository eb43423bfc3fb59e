import { afterEach, expect, test } from '@jest/globals'
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Backend } from '#gen/config/types.ts'
import { createReader } from '../source/reader.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runDirectoryMode } from '../program/directory.ts'
import type { ReportEvent } from '../program/report.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { createRemotes } from './index.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

/** An identity provider whose answer can be set; undefined: it hangs up. */
async function startProvider(answer?: string) {
  const provider = { answer, requests: 0, port: 0 }
  const server = createServer((_, response) => {
    provider.requests += 1
    if (provider.answer === undefined) response.destroy()
    else response.end(provider.answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => new Promise((resolve) => server.close(resolve)))
  provider.port = (server.address() as AddressInfo).port
  return provider
}

const manifests = (port: number): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: proxy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: idp, annotations: {proxy.dev/endpoints: "127.0.0.1:${port}"}}
spec: {ports: [{port: 80}]}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: jwt}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {jwtAuthentication: {providers: [{issuer: i, jwks: {remote: {jwksPath: /keys, cacheDuration: 5m, backendRef: {name: idp, port: 80}}}}]}}
`

async function writeManifests(text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'jwks-'))
  cleanups.push(() => rm(directory, { recursive: true }))
  await writeFile(join(directory, 'all.yaml'), text)
  return directory
}

async function waitFor(what: string, isThere: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000; tries += 1) {
    if (isThere()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`never came: ${what}`)
}

const setOf = (kid: string): string => JSON.stringify({ keys: [{ ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }), kid }] })

/** Translates again at each change, as both modes do. Gives the last config of the policy, and its Accepted condition. */
function start(snapshot: Snapshot) {
  const errors: string[] = []
  const seen = { keySet: '', status: '', changes: 0 }
  let current = snapshot
  const take = (next: Snapshot): void => {
    current = next
    const { gateways, statuses } = remotes.translate(next, { isStandalone: true })
    const policy = gateways.get('default/gw')?.find(({ kind }) => kind === 'policy')
    seen.keySet = JSON.stringify(policy?.message ?? '')
    seen.status = JSON.stringify(statuses.find(({ kind }) => kind === 'ProxyPolicy')?.status ?? '')
  }
  const onError = (url: string, error: unknown): void => void errors.push(`${url}: ${(error as Error).message}`)
  const remotes = createRemotes({
    isLoopbackAllowed: true,
    onChange() {
      seen.changes += 1
      take(current)
    },
    keySets: { onError },
    documents: { onError },
    pluginImages: { onError },
  })
  cleanups.push(remotes.close)
  take(snapshot)
  return { seen, errors, take }
}

test('a policy is PartiallyValid until its key set arrives, and keeps the last valid one through outage and garbage', async () => {
  const provider = await startProvider(setOf('first'))
  const { snapshot } = await createReader(await writeManifests(manifests(provider.port))).load()
  // A manifest may set five minutes at least, which a test cannot wait for.
  for (const { spec } of snapshot.list('ProxyPolicy'))
    for (const { jwks } of spec.traffic?.jwtAuthentication?.providers ?? []) Object.assign(jwks?.remote ?? {}, { cacheDuration: '1s' })
  const { seen, errors, take } = start(snapshot)
  expect(seen.status).toContain('PartiallyValid')
  expect(seen.keySet).toContain('"remote":{"invalid":')

  await waitFor('the first set', () => seen.keySet.includes('first'))
  expect(seen.status).toContain('"reason":"Valid"')

  provider.answer = setOf('second')
  await waitFor('the rotated set', () => seen.keySet.includes('second'))

  provider.answer = undefined
  await waitFor('the outage', () => errors.length === 1)
  provider.answer = '<html>maintenance</html>'
  await waitFor('the garbage', () => errors.length === 2)
  expect(errors).toEqual(['http://idp.default.svc.cluster.local/keys: socket hang up', 'http://idp.default.svc.cluster.local/keys: the answer is not JSON'])
  expect(seen.keySet).toContain('second')

  take((await createReader(await writeManifests(manifests(provider.port).split('---\n').slice(0, 2).join('---\n'))).load()).snapshot)
  // A request that was under way reaches the provider before this one does.
  await (await fetch(`http://127.0.0.1:${provider.port}`)).text()
  const { requests } = provider
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect([provider.requests, seen.changes]).toEqual([requests, 2])
})

test('a policy does not use old keys after its key set moved to another URL', async () => {
  const provider = await startProvider(setOf('first'))
  const text = manifests(provider.port)
  const { seen, take } = start((await createReader(await writeManifests(text)).load()).snapshot)
  await waitFor('the set', () => seen.keySet.includes('first'))
  const onService = '{group: "", kind: Service, name: idp}'
  const tls = `---\napiVersion: proxy.dev/v1alpha1\nkind: ProxyPolicy\nmetadata: {name: tls}\nspec: {targetRefs: [${onService}], backend: {tls: {sni: a}}}\n`
  take((await createReader(await writeManifests(text + tls)).load()).snapshot)
  expect(seen.keySet).toContain('"remote":{"invalid":')
})

test('directory mode fetches key sets and reports failures', async () => {
  const provider = await startProvider()
  const events: ReportEvent[] = []
  const mode = await runDirectoryMode({
    directory: await writeManifests(manifests(provider.port)),
    listen: '127.0.0.1:0',
    report: (event) => events.push(event),
  })
  cleanups.push(mode.close)
  const isTold = (event: ReportEvent): boolean =>
    event.event === 'error' && /^key set http:\/\/idp\.default\.svc\.cluster\.local\/keys: .*socket hang up; /.test(event.message)
  await waitFor('the error', () => events.some(isTold))
  provider.answer = setOf('first')
  const { requests } = provider
  await waitFor('the next try', () => provider.requests > requests)
})

test('the status gives the reason of a missing key set, of a useless one and of a key that is ignored', async () => {
  const provider = await startProvider('<html>')
  const { snapshot } = await createReader(await writeManifests(manifests(provider.port))).load()
  for (const { spec } of snapshot.list('ProxyPolicy'))
    for (const { jwks } of spec.traffic?.jwtAuthentication?.providers ?? []) Object.assign(jwks?.remote ?? {}, { cacheDuration: '1s' })
  const { seen } = start(snapshot)
  const place = 'traffic.jwtAuthentication.providers.0.jwks.remote: '
  const url = 'idp.default.svc.cluster.local:80/keys'
  await waitFor('the reason', () => seen.status.includes('not JSON'))
  expect(seen.status).toContain(`${place}keyset for \\"${url}\\" isn't available: it has not been fetched yet: the answer is not JSON`)
  expect(seen.keySet).not.toContain('not JSON')

  const bad = '{"kty":"oct","kid":"a"}'
  const cause = 'keys.0 is of type oct; usable are RSA, EC P-256, EC P-384, OKP Ed25519'
  provider.answer = `{"keys":[${bad}]}`
  await waitFor('a useless set', () => seen.keySet.includes('oct'))
  expect(seen.status).toContain(`${place}key set ${url} has no key that verifies signatures (${cause}); all its tokens are rejected [PX1308]`)

  const { publicKey } = generateKeyPairSync('ed25519')
  provider.answer = `{"keys":[${bad},null,${JSON.stringify({ ...publicKey.export({ format: 'jwk' }), kid: 'good' })}]}`
  await waitFor('a usable key', () => seen.keySet.includes('good'))
  expect(seen.status).toContain(
    `${place}key set ${url} has keys that are ignored: ${cause}, keys.1 is not an object; tokens of its other keys are accepted [PX1368]`,
  )
})

const apiManifests = (port: number): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: proxy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: api}]}]}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: api}
spec: {mcp: {targets: [{name: api, static: {host: api.example.com, port: 443}, openapi: {url: 'http://127.0.0.1:${port}/openapi.json'}}]}}
`
const apiOf = (operationId: string): string => JSON.stringify({ openapi: '3.1.0', paths: { '/a': { get: { operationId } } } })

test('a backend is PartiallyValid until its document arrives, and keeps the last usable one through outage and garbage', async () => {
  const provider = await startProvider()
  const { snapshot } = await createReader(await writeManifests(apiManifests(provider.port))).load()
  // A manifest may set ten seconds at least.
  for (const { spec } of snapshot.list('ProxyBackend'))
    for (const { openapi } of spec.mcp?.targets ?? []) Object.assign(openapi ?? {}, { refreshInterval: '1s' })
  const errors: string[] = []
  const seen = { tools: [] as string[], status: '' }
  const take = (): void => {
    const { gateways, statuses } = remotes.translate(snapshot, { isStandalone: true })
    const backend = gateways.get('default/gw')?.find(({ kind }) => kind === 'backend')?.message as Backend | undefined
    seen.tools = backend?.mcp?.targets.flatMap(({ openapi }) => openapi?.tools.map(({ name }) => name) ?? []) ?? []
    seen.status = JSON.stringify(statuses.find(({ kind }) => kind === 'ProxyBackend')?.status ?? '')
  }
  const onError = (url: string, error: unknown): void => void errors.push(`${url}: ${(error as Error).message}`)
  const remotes = createRemotes({ isLoopbackAllowed: true, onChange: take, keySets: { onError }, documents: { onError }, pluginImages: { onError } })
  cleanups.push(remotes.close)
  take()
  await waitFor('the failure', () => seen.status.includes('has not been fetched yet; the target has no tools: '))
  expect(remotes.documentStats().failing).toBe(1)

  provider.answer = apiOf('first')
  await waitFor('the first document', () => seen.tools.includes('first'))
  expect(seen.status).toContain('"reason":"Accepted"')
  expect(remotes.documentStats().failing).toBe(0)

  provider.answer = apiOf('second')
  await waitFor('the second document', () => seen.tools.includes('second'))

  const failed = errors.length
  provider.answer = undefined
  await waitFor('the outage', () => errors.length === failed + 1)
  provider.answer = '<html>maintenance</html>'
  await waitFor('the garbage', () => errors.length === failed + 2)
  const url = `http://127.0.0.1:${provider.port}/openapi.json`
  expect(errors.slice(failed)).toEqual([`${url}: socket hang up`, `${url}: the response is not usable: it is not an object`])
  expect([seen.tools, remotes.documentStats().failing]).toEqual([['second'], 1])
})
