import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { isIP } from 'node:net'
import { AddressRanges, type DialRules } from '#api/address.ts'
import { bedrockHost, listHosts, modelArmorHost } from '#api/backend-hosts.ts'
import { configDefinitions } from '#api/config/definitions.ts'
import { RESERVED_PORTS } from '#api/names.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import type { Backend } from '#gen/config/types.ts'
import { callDestination } from '../../../dataplane/net/callout/http.ts'
import { createConfigStore } from '../../../dataplane/config/store.ts'
import { Destinations } from '../../../dataplane/net/destination/destinations.ts'
import { compileReach } from '../../../dataplane/net/destination/reach.ts'
import type { Destination } from '../../../dataplane/net/upstream/destination.ts'
import { dialing } from '../../../dataplane/net/upstream/dial.ts'
import { createPool } from '../../../dataplane/net/upstream/pools.ts'
import { UpstreamError } from '../../../dataplane/net/upstream/types.ts'
import { replaceMessages } from '../../../dataplane/testing/store.ts'
import { findHostFields } from '../../../e2e/harness/references.ts'
import { createGet } from '../../remote/fetch.ts'
import { createPluginImageFetch } from '../../remote/plugin-image.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { findRefusedHosts } from './hosts.ts'
import { findUnsentIdentities } from './identities.ts'

const permitted = (...addresses: string[]): AddressRanges => new AddressRanges(addresses)
const pod: DialRules = { isLoopbackAllowed: false, permitted: permitted(), ports: () => RESERVED_PORTS, addresses: () => [] }
const { rules: standalone } = dialing
beforeEach(() => {
  dialing.rules = pod
  dialing.identityHosts = []
})
afterEach(() => {
  dialing.rules = standalone
  dialing.identityHosts = undefined
})

const PORT = 8080
/** Forms of addresses that no connection of a pod goes to. */
const refused = [
  '127.0.0.1',
  'localhost',
  '127.1',
  '2130706433',
  '0.0.0.0',
  '169.254.1.1',
  '169.254.169.254',
  '::1',
  'fe80::1',
  '::ffff:127.0.0.1',
  '64:ff9b::7f00:1',
  'fe80::5efe:7f00:1',
  '2001:db8::5efe:7f00:1',
]
const DIGEST = `sha256:${'0'.repeat(64)}`

const opened: Destinations[] = []
afterEach(() => {
  for (const destinations of opened.splice(0)) destinations.close()
})

/** Tries to connect to a host on behalf of a field: what came of it. `denied` and a text about the address are refusals. */
type Way = (host: string, port: number) => Promise<string>

const call = (destination: Destination): Promise<string> =>
  callDestination(destination, { method: 'GET', target: '/' }).then(
    ({ status }) => `status ${status}`,
    (error: unknown) => (error instanceof UpstreamError ? error.failure : String(error)),
  )

function destinationsOf(...messages: Parameters<typeof replaceMessages>[1]): Destinations {
  const destinations = new Destinations(createPool)
  opened.push(destinations)
  const store = createConfigStore()
  replaceMessages(store, messages)
  destinations.update(store.snapshot(), new Map())
  return destinations
}

const gateway = (identityHosts: readonly string[] = []): GatewayState => ({ key: 'ns/gw', upstreams: { rules: dialing.rules, identityHosts } }) as GatewayState

/** A host of a ProxyBackend: the connection of the data plane, and the status, which says the same before there is one. */
const backend =
  (make: (host: string, port: number) => Omit<Backend, 'key'>): Way =>
  async (host, port) => {
    const message: Backend = { key: 'ns/b', ...make(host, port) }
    const destinations = destinationsOf({ kind: 'backend', message })
    const [place, ...others] = listHosts(message)
    if (place === undefined || others.length > 0) return 'not one host'
    const [text = 'no status'] = findRefusedHosts({ message, gateways: new Set([gateway()]) })
    if (!text.startsWith(`${place.path}: requests to ${host}:${place.port} fail with 503, because it is `)) return text
    return (message.static ?? message.a2a)
      ? call(destinations.get({ backend: message.key }))
      : call(destinations.forPart({ backend: message.key, inline: undefined, outer: undefined, isTlsDefault: false, ...place }))
  }
/** A reference of a policy or a backend to a Service. Where it leads to a ProxyBackend, the rows of that hold. */
const reference: Way = async (address, port) => {
  const service = { key: 'ns/s', hostname: 's.ns.svc', ports: [{ port: 80, endpoints: [{ address, port }] }] }
  const destinations = destinationsOf({ kind: 'service', message: service })
  const ways = [
    destinations.forPolicy({ service: 'ns/s', port: 80 }),
    destinations.get({ service: 'ns/s', port: 80 }),
    destinations.forServicePart('ns/s', 80, undefined),
  ]
  return [...new Set(await Promise.all(ways.map(call)))].join()
}
const address: Way = (host, port) => call(destinationsOf().get({ address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}` }))
const pluginHost: Way = (host, port) => call(destinationsOf().forHost(host, port, false))
const reach: Way = (host, port) => Promise.resolve(compileReach({ allow: [host, '0.0.0.0/0', '::/0'] }, dialing.rules).reject(host, host, port) ?? 'connected')
const textOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'connected',
    (error: Error) => error.message,
  )
/** Fetched by the operator. */
const fetched: Way = (host, port) => {
  const get = createGet({ isLoopbackAllowed: false, times: { dialMs: 5000, totalMs: 5000 }, maxBytes: 100 })
  return textOf(get({ id: 'x', cacheMs: 0, url: { host, port, path: '/' } }, 0, AbortSignal.timeout(5000), {}))
}
const keySet: Way = async (host, port) => {
  const get = createGet({ isLoopbackAllowed: false, times: { dialMs: 5000, totalMs: 5000 }, maxBytes: 100 })
  const source = { id: 'x', cacheMs: 0, url: { host: 'issuer.ns.svc', port, path: '/' }, endpoints: [{ address: host, port }] }
  return (
    [await fetched(host, port), await textOf(get(source, 0, AbortSignal.timeout(5000), {})), await reference(host, port)].find((text) => !isRefusal(text)) ??
    'denied'
  )
}
const image: Way = (host, port) => {
  const fetch = createPluginImageFetch({ isLoopbackAllowed: false })
  return textOf(
    fetch({ id: 'x', cacheMs: 0, url: { host: `${host}:${port}/plugin@${DIGEST}`, port: 443, path: '/plugin.js' } }, 0, AbortSignal.timeout(5000), undefined),
  )
}

const isRefusal = (text: string): boolean => text === 'denied' || / is an? [a-z -]+ address|(?::| is) a port of this gateway|: an? [a-z -]+ address$/.test(text)

/** Patterns of the fields that take no IPv6 address, or no number. */
const names = (host: string): boolean => /^[a-z0-9.-]+$/.test(host)
const reasons = {
  compared: 'compared with a value, or sent as text; nothing is connected to it',
  listened: 'an address to listen on',
  rules: 'a rule of the owner of the Gateway about other fields',
  process: 'settings of the process, which its owner writes',
  container: 'an image that Kubernetes pulls',
  short: 'expanded to a Backend message, whose rows hold',
} as const
type Row =
  | Way
  | { readonly way: Way; readonly isPossible: (host: string) => boolean }
  | keyof typeof reasons
  | { readonly vendor: (region: string) => Omit<Backend, 'key'> }

const openai = { providerA: {} }
const rows: Readonly<Record<string, Row>> = {
  'StaticBackend.host': backend((host, port) => ({ static: { host, port } })),
  'A2ABackend.host': backend((host, port) => ({ a2a: { host, port } })),
  'LLMProvider.host': backend((host, port) => ({ ai: { provider: { ...openai, host, port } } })),
  'NamedLLMProvider.host': backend((host, port) => ({ ai: { groups: [{ providers: [{ name: 'p', ...openai, host, port }] }] } })),
  'ProviderB.endpoint': {
    way: backend((host, port) => ({ ai: { provider: { providerB: { endpoint: `https://${host}:${port}/openai`, apiVersion: 'v1' } } } })),
    isPossible: names,
  },
  'CustomProvider.baseUrl': {
    way: backend((host, port) => ({ ai: { provider: { custom: { baseUrl: `http://${host.includes(':') ? `[${host}]` : host}:${port}/v1` } } } })),
    isPossible: () => true,
  },
  'McpTarget.host': backend((host, port) => ({ mcp: { targets: [{ name: 't', static: { host, port } }] } })),
  'ProviderE.region': { vendor: (region) => ({ ai: { provider: { providerE: { projectId: 'p', region } } } }) },
  'ProviderF.region': { vendor: (region) => ({ ai: { provider: { providerF: { region } } } }) },
  'CloudGuardrails.region': { vendor: (region) => ({ static: { host: bedrockHost(region), port: 443 }, policies: { auth: { cloudA: {} } } }) },
  'ModelArmor.location': {
    vendor: (region) => ({
      static: { host: URL.parse(`https://${modelArmorHost(region)}`)?.hostname ?? 'invalid', port: 443 },
      policies: { auth: { cloudC: {} } },
    }),
  },
  'DynamicForwardProxyBackend.allow.[]': { way: reach, isPossible: (host) => isIP(host) !== 0 },
  'PluginFetch.hosts.[]': { way: pluginHost, isPossible: names },
  'PluginSource.image': { way: image, isPossible: names },
  'McpOpenApi.url': fetched,
  'RemoteJWKS.backendRef': keySet,
  'ResolvedKeySet.from': keySet,
  'BackendRef.address': address,
  'Endpoint.address': reference,
  ...Object.fromEntries(
    [
      'ExtProc.backendRef',
      'ExtAuth.backendRef',
      'BudgetQuotaService.backendRef',
      'GlobalRateLimit.backendRef',
      'OtlpAccessLog.backendRef',
      'Tracing.backendRef',
      'BackendTunnel.backendRef',
      'OAuthCredentials.tokenEndpoint.backendRef',
      'OIDC.backendRef',
      'TokenIntrospection.backendRef',
      'OIDCEndpoint.backendRef',
      'Webhook.backendRef',
      'McpOpenApi.backendRef',
      'McpGrpc.backendRef',
      'AIModelTarget.backendRef',
      'AIModelShadowTarget.backendRef',
      'ResolvedMcpGrpc.backend',
      'ResolvedMcpOpenApi.backend',
      'RequestMirror.backend',
      'WeightedBackend.ref',
      'EndpointPicker.backend',
    ].map((field) => [field, reference] as const),
  ),
  'Backend.static.host': backend((host, port) => ({ static: { host, port } })),
  ...listed('compared', [
    'AgentRuntime.agentRuntimeRef',
    'PluginSource.path',
    'BudgetQuotaService.domain',
    'GlobalRateLimit.domain',
    'RateLimitDescriptorEntry.expression',
    'CORS.allowOrigins.[]',
    'CSRF.additionalOrigins.[]',
    'IPAllowList.allow.[]',
    'IPAllowList.deny.[]',
    'JWTProvider.issuer',
    'JWTSign.issuer',
    'Route.origin',
    'LoadBalancer.slowStart.window',
    'OIDC.issuer',
    'OIDC.endpoints.authorization',
    'OIDC.endpoints.endSession',
    'OIDC.publicUrl',
    'OIDC.cookieDomain',
    'MCPAuthentication.issuer',
    'BackendTLS.sni',
    'CloudCAuth.audience',
    'MCPBackend.allowOrigins.[]',
    'McpView.hostname',
    'HealthCheck.http.hostname',
    'McpOpenApi.refreshInterval',
    'McpTarget.path',
    'A2ACardSigning.jwksUrl',
    'DynamicForwardProxyBackend.deny.[]',
    'Listener.hostname',
    'Route.hostnames.[]',
    'RequestRedirect.hostname',
    'UrlRewrite.hostname',
    'TcpRoute.hostnames.[]',
    'Service.hostname',
    'BackendTlsValidation.sni',
    'FileListener.hostname',
    'FileRoute.hostnames.[]',
    'FileTcpRoute.hostnames.[]',
    'ShortMCP.allowOrigins.[]',
    'CatalogRates.images',
    'CatalogRates.inputImage',
    'CatalogRates.outputImage',
    'CatalogTierRates.images',
    'ModelPrice.images',
    'CatalogTierRates.inputImage',
    'CatalogTierRates.outputImage',
    'ClientIP.header',
    'ClientIP.trustedCIDRs.[]',
    'ResponseRedirect.location',
  ]),
  ...listed('listened', [
    'Bind.addresses.[]',
    'FileBind.addresses.[]',
    'ShortLLM.addresses.[]',
    'ShortLLM.listen',
    'ConfigFile.listen',
    'ShortMCP.addresses.[]',
    'ShortMCP.listen',
    'ProcessConfig.adminAddr',
    'ProcessConfig.statsAddr',
    'ProcessConfig.readinessAddr',
  ]),
  ...listed('rules', ['PluginsSpec.images.[]', 'McpServersSpec.images.[]', 'UpstreamsSpec.addresses.[]', 'UpstreamsSpec.identityHosts.[]']),
  ...listed('process', [
    'MeshSpec.caAddress',
    'MeshSpec.trustDomain',
    'ProcessConfig.xdsAddress',
    'LedgerConfig.postgres.url',
    'LedgerConfig.clickhouse.url',
    'RedisConfig.url',
    'PostgresConfig.url',
  ]),
  ...listed('container', ['Image.registry', 'McpTargetSelector.image']),
  ...listed('short', [
    'FileWeightedBackend.host',
    'FileBackend.host',
    'ShortProviderA.url',
    'ShortProviderB.endpoint',
    'ShortProviderB.url',
    'ShortProviderC.url',
    'ShortProviderD.url',
    'ShortProviderE.region',
    'ShortProviderE.url',
    'ShortProviderF.region',
    'ShortProviderF.url',
    'ShortPreset.url',
    'ShortCustom.baseUrl',
    'ShortMCPServer.url',
  ]),
}

function listed(reason: keyof typeof reasons, fields: readonly string[]): Record<string, Row> {
  return Object.fromEntries(fields.map((field) => [field, reason]))
}

const ways = Object.entries(rows).flatMap(([field, row]): [string, Way, (host: string) => boolean][] => {
  if (typeof row === 'function') return [[field, row, () => true]]
  return typeof row === 'object' && 'way' in row ? [[field, row.way, row.isPossible]] : []
})
const vendors = Object.entries(rows).flatMap(([field, row]) => (typeof row === 'object' && 'vendor' in row ? [[field, row.vendor] as const] : []))

describe('a field that names a host (traffic.md §13.2)', () => {
  test('has a row or a reason, whatever schema it is in', () => {
    const fields = new Set([...findHostFields(definitions), ...findHostFields(configDefinitions)])
    expect([...fields].toSorted()).toEqual(Object.keys(rows).toSorted())
  })

  test.each(ways)('leads to no refused address: %s', async (_, way, isPossible) => {
    const hosts = refused.filter(isPossible)
    expect(hosts.length).toBeGreaterThan(4)
    for (const host of hosts) {
      const result = await way(host, PORT)
      expect([host, result, isRefusal(result)]).toEqual([host, result, true])
    }
  })

  test.each(ways)('leads to no management port, though the owner of the Gateway permits its address: %s', async (_, way) => {
    dialing.rules = { ...pod, permitted: permitted('127.0.0.0/8') }
    for (const port of RESERVED_PORTS) {
      const result = await way('127.0.0.1', port)
      expect([port, result, isRefusal(result)]).toEqual([port, result, true])
    }
  })

  test.each(vendors)('sends the identity of the data plane to no host but those of the vendor: %s', (_, vendor) => {
    for (const region of ['evil.example/', 'evil.example#', 'x@evil.example', 'evil.example', '127.0.0.1', '169.254.169.254/', '.', 'us-east-1.evil']) {
      const message: Backend = { key: 'ns/b', ...vendor(region) }
      const [place] = listHosts(message)
      const isVendors = /^[a-z0-9.-]+\.(?:amazonaws|googleapis)\.com$/.test(place?.host ?? '')
      const destinations = destinationsOf({ kind: 'backend', message })
      const defaults = place?.identity === undefined ? undefined : { auth: place.identity === 'AWS' ? { cloudA: {} } : { cloudC: {} } }
      const { auth } =
        place === undefined ? {} : destinations.forPart({ backend: 'ns/b', inline: message.policies, outer: defaults, isTlsDefault: true, ...place }).settings
      const isSent = auth !== undefined && auth.kind !== 'broken'
      const isReported = findUnsentIdentities([{ kind: 'backend', key: 'ns/b', message }], gateway()).size > 0
      expect([region, isSent && !isVendors, isReported]).toEqual([region, false, !isSent])
    }
  })
})
