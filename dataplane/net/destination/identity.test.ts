import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Backend, BackendAuth, BackendFull } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { createProvider } from '../../backend/llm/providers/index.ts'
import { dialing } from '../upstream/dial.ts'
import type { Destination } from '../upstream/destination.ts'
import { replaceMessages } from '../../testing/store.ts'
import { Destinations } from './destinations.ts'

const managed = { managedIdentity: { clientId: 'c', objectId: 'o', resourceId: 'r' } }
/** All credentials that are not in a Secret, with an API host of their cloud. */
const ambient: readonly (readonly [BackendAuth, string])[] = [
  [{ cloudA: {} }, 'bedrock-runtime.us-east-1.amazonaws.com'],
  [{ cloudB: {} }, 'management.azure.com'],
  [{ cloudB: managed }, 'name.openai.azure.com'],
  [{ cloudC: {} }, 'storage.googleapis.com'],
  [{ cloudC: { type: 'IdToken', audience: 'https://victim.example' } }, 'run.googleapis.com'],
]
const tls: BackendFull['tls'] = {}
const proxy: ConfigMessage = { kind: 'backend', message: { key: 'ns/proxy', static: { host: 'proxy.example', port: 80 } } }
const service = (hostname: string, address: string): ConfigMessage => ({
  kind: 'service',
  message: { key: 'ns/svc', hostname, ports: [{ port: 443, endpoints: [{ address, port: 443 }] }] },
})

function destinationsOf(...messages: ConfigMessage[]): Destinations {
  const destinations = new Destinations(() => ({
    size: 0,
    close: () => {},
    call: () => {
      throw new Error('not called')
    },
  }))
  const store = createConfigStore()
  replaceMessages(store, [proxy, ...messages])
  destinations.update(store.snapshot(), new Map())
  return destinations
}
const sends = ({ settings: { auth } }: Destination): boolean => auth !== undefined && auth.kind !== 'broken'
const toBackend = (body: Omit<Backend, 'key'>): boolean =>
  sends(destinationsOf({ kind: 'backend', message: { key: 'ns/b', ...body } }).get({ backend: 'ns/b' }))
const toHost = (host: string, policies: BackendFull): boolean => toBackend({ static: { host, port: 443 }, policies })

describe('credentials of the process (traffic.md §13.3)', () => {
  beforeEach(() => {
    dialing.identityHosts = []
  })
  afterEach(() => {
    dialing.identityHosts = undefined
  })

  test('are sent to API hosts of their cloud over verified TLS only', () => {
    for (const [auth, own] of ambient) {
      for (const host of [own, own.toUpperCase(), `${own}.`]) expect([host, toHost(host, { auth, tls: { sni: own } })]).toEqual([host, true])
      const others = ambient.flatMap(([other, host]) => (Object.keys(other)[0] === Object.keys(auth)[0] ? [] : [host]))
      for (const host of [...others, 'evil.example', '192.0.2.1', '2001:db8::1', `${own}.evil.example`, `evil${own}.example`, `evil.example#${own}`])
        expect([host, toHost(host, { auth, tls })]).toEqual([host, false])
      for (const unsafe of [
        { auth },
        { auth, tls: { insecureSkipVerify: 'All' } },
        { auth, tls: { insecureSkipVerify: 'Hostname' } },
        { auth, tls: { sni: 'evil.example' } },
        { auth, tls: { verifySubjectAltNames: ['evil.example'] } },
      ] satisfies BackendFull[])
        expect([unsafe, toHost(own, unsafe)]).toEqual([unsafe, false])
    }
  })

  test.each([
    'ec2-192-0-2-1.compute-1.amazonaws.com',
    'ec2-192-0-2-1.us-west-2.compute.amazonaws.com',
    'name-1.us-east-1.elb.amazonaws.com',
    'name.elb.us-east-1.amazonaws.com',
    'id.execute-api.us-east-1.amazonaws.com',
    'execute-api.us-east-1.amazonaws.com',
    'id.execute-api.us-east-1.api.aws',
    'bucket.s3.us-east-1.amazonaws.com',
    'bucket.s3-website-us-east-1.amazonaws.com',
    'bucket.s3-website.us-east-1.amazonaws.com',
    'vpce-1.vpce-svc-2.us-east-1.vpce.amazonaws.com',
    'id.lambda-url.us-east-1.on.aws',
    'name.westus.cloudapp.azure.com',
    'name.azurewebsites.net',
    'name.region.azurecontainerapps.io',
    'name.azure-api.net',
    'account.z1.web.core.windows.net',
    'name.appspot.com',
    'name-x.a.run.app',
    'googleapis.com.evil.example',
    'evilgoogleapis.com',
  ])('are not sent to %s, which customers of the cloud run', (host) => {
    for (const [auth] of ambient) expect(toHost(host, { auth, tls })).toBe(false)
  })

  test('of a Secret are sent where its owner wants', () => {
    const secret: ConfigMessage = { kind: 'secret', message: { key: 'opaque/ns/aws', type: 'opaque', data: { accessKey: 'a', secretKey: 's' } } }
    const policies = { auth: { cloudA: { secretRef: { secret: 'opaque/ns/aws' } } } }
    const backend: ConfigMessage = { kind: 'backend', message: { key: 'ns/b', static: { host: 'private.example', port: 80 }, policies } }
    expect(sends(destinationsOf(secret, backend).get({ backend: 'ns/b' }))).toBe(true)
  })

  test('are not sent through a tunnel whose proxy could read them', () => {
    const tunnel = { backendRef: { backend: 'ns/proxy' } }
    const ca: ConfigMessage = { kind: 'secret', message: { key: 'ca/ns/own', type: 'ca', certificate: 'PEM' } as never }
    const through = (host: string, section: BackendFull['tls']): boolean => {
      const policies: BackendFull = { auth: { cloudC: {} }, tunnel, ...(section && { tls: section }) }
      return sends(destinationsOf(ca, { kind: 'backend', message: { key: 'ns/b', static: { host, port: 443 }, policies } }).get({ backend: 'ns/b' }))
    }
    expect(through('storage.googleapis.com', {})).toBe(true)
    expect(through('storage.googleapis.com', { caCertificateRefs: [{ secret: 'ca/ns/own' }] })).toBe(false)
    dialing.identityHosts = ['private.example']
    expect(through('private.example', undefined)).toBe(false)
    expect(through('private.example', { sni: 'evil.example' })).toBe(false)
    expect(through('private.example', {})).toBe(true)
  })

  test('are not sent to hosts that clients choose, and to Services by the name of their endpoints only', () => {
    const auth: BackendAuth = { cloudC: {} }
    dialing.identityHosts = ['*.svc.cluster.local']
    expect(toBackend({ dynamicForwardProxy: {}, policies: { auth, tls } })).toBe(false)
    const toService = (hostname: string, address: string): boolean =>
      sends(destinationsOf(service(hostname, address)).get({ service: 'ns/svc', port: 443 }, { auth, tls }))
    expect(toService('a.ns.svc.cluster.local', '10.0.0.1')).toBe(true)
    expect(toService('a.ns.svc.cluster.local', 'evil.example')).toBe(false)
    expect(toService('storage.googleapis.com', '10.0.0.1')).toBe(false)
    dialing.identityHosts = []
    expect(toService('a.ns.svc.cluster.local', '10.0.0.1')).toBe(false)
    expect(toService('a.ns.svc.cluster.local', 'storage.googleapis.com')).toBe(false)
  })

  test('are sent to hosts that the owner permits, and to those of the environment', () => {
    dialing.identityHosts = ['Exact.example', '*.suffix.example', '192.0.2.1']
    const policies: BackendFull = { auth: { cloudC: {} } }
    for (const host of ['exact.example', 'EXACT.example.', 'a.suffix.example', 'a.b.suffix.example', '192.0.2.1'])
      expect([host, toHost(host, policies)]).toEqual([host, true])
    for (const host of ['suffix.example', 'asuffix.example', 'a.exact.example', '192.0.2.2']) expect([host, toHost(host, policies)]).toEqual([host, false])
    expect(sends(destinationsOf().forHost('owner.example', 80, false, policies, true))).toBe(true)
    expect(sends(destinationsOf().forHost('owner.example', 80, false, policies))).toBe(false)
  })

  test('are for all hosts if a config file is the only source', () => {
    dialing.apply({ isInPod: true, upstreams: {}, xdsAddress: undefined }, () => [], undefined)
    expect(toHost('any.example', { auth: { cloudC: {} } })).toBe(true)
    dialing.apply({ isInPod: true, upstreams: { identityHosts: ['other.example'] }, xdsAddress: 'operator:9978' }, () => [], undefined)
    expect(toHost('any.example', { auth: { cloudC: {} } })).toBe(false)
  })

  test('reach each LLM provider that has them by default at its own host', () => {
    const providers = [
      createProvider({ providerB: { endpoint: 'evil.example', deploymentName: 'm' } }),
      createProvider({ providerB: { endpoint: 'name.openai.azure.com', deploymentName: 'm' } }),
      createProvider({ providerE: { projectId: 'p', region: 'us-central1' } }),
      createProvider({ providerE: { projectId: 'p', region: 'evil.example/' } }),
      createProvider({ providerF: { region: 'us-east-1' } }),
    ]
    const part = (host: string, auth: BackendAuth | undefined) =>
      destinationsOf().forPart({ backend: 'ns/b', section: 'p', host, port: 443, inline: undefined, outer: auth && { auth }, isTlsDefault: true })
    expect(providers.map((provider) => sends(part(provider?.host ?? '', provider?.defaultAuth)))).toEqual([false, true, true, false, true])
  })

  test('are refused with a log line that names field, host and fix, which clients do not see', () => {
    const { auth } = destinationsOf().forHost('evil.example', 443, true, { auth: { cloudC: {} } }).settings
    expect(auth).toEqual({
      kind: 'broken',
      reason: 'the credentials of the gateway are not sent to this host',
      cause:
        'auth.gcp: the credentials of the gateway are not sent to this host: evil.example is no API host of Google Cloud; use the credentials of a Secret, or permit the host in upstreams.identityHosts of ProxyParameters',
    })
  })
})
