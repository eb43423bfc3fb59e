import type { Dataplane } from '../../harness/program/dataplane.ts'
import { startGateway } from '../../harness/program/gateway.ts'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'
import type { Operator } from '../../harness/program/operator.ts'
import { waitUntil } from '../../harness/wait.ts'

/** An MCP backend at `/<name>`, with its well-known paths. */
export interface McpRoute {
  readonly name: string
  /** `policies` of the ProxyBackend. */
  readonly policies?: object
  /** `traffic` of a ProxyPolicy on its route. */
  readonly traffic?: object
}

/** A ProxyBackend from which key sets are fetched. */
export interface KeyProvider {
  readonly name: string
  readonly port: number
  /** PEM of the only trusted CA; if set, TLS is used. */
  readonly authority?: string
}

/** A running gateway with one MCP server. */
export interface OAuthEnvironment {
  /** `http://localhost:<port>`. */
  readonly origin: string
  readonly dataplane: Dataplane
  readonly operator: Operator
  readonly upstream: Awaited<ReturnType<typeof startMcpUpstream>>
  /** Replaces the routes in the manifests. */
  apply(routes: readonly McpRoute[]): Promise<void>
  /** Waits until a token is accepted: the operator fetches keys after its start. */
  waitForKeys(path: string, token: string): Promise<void>
  stop(): Promise<void>
}

/** Starts an operator in directory mode, a data plane and an MCP server. `routes` receives the origin of the gateway. */
export async function startOAuthEnvironment(routes: (origin: string) => readonly McpRoute[], providers: readonly KeyProvider[]): Promise<OAuthEnvironment> {
  const upstream = await startMcpUpstream({ name: 'documents', port: 0 })
  const objectsOf = (wanted: readonly McpRoute[]): object[] => [
    trustedClients,
    ...providers.flatMap((provider) => providerObjects(provider)),
    ...wanted.flatMap((route) => routeObjects(route, upstream.port)),
  ]
  const { origin, ...gateway } = await startGateway({ manifests: (at) => objectsOf(routes(at)) })
  return {
    origin,
    dataplane: gateway.dataplane,
    operator: gateway.operator,
    upstream,
    apply: (wanted) => gateway.apply(objectsOf(wanted)),
    waitForKeys: (path, token) =>
      waitUntil(
        `keys of ${path}`,
        async () => {
          const response = await fetch(`${origin}${path}`, { headers: { authorization: `Bearer ${token}` } })
          await response.body?.cancel()
          return response.status !== 401
        },
        60_000,
      ),
    async stop() {
      await gateway.stop()
      await upstream.close()
    },
  }
}

/** Tests send X-Forwarded-Proto as a proxy in front of the gateway does. */
const trustedClients = {
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyPolicy',
  metadata: { name: 'trusted-clients' },
  spec: {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' }],
    frontend: { http: { clientIP: { trustedCIDRs: ['127.0.0.0/8', '::1'] } } },
  },
}

function providerObjects({ name, port, authority }: KeyProvider): object[] {
  const tls = authority !== undefined && { policies: { tls: { caCertificateRefs: [{ name: `${name}-ca` }] } } }
  return [
    { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', metadata: { name }, spec: { static: { host: 'localhost', port }, ...tls } },
    ...(authority === undefined ? [] : [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${name}-ca` }, data: { 'ca.crt': authority } }]),
  ]
}

function routeObjects({ name, policies, traffic }: McpRoute, upstreamPort: number): object[] {
  const paths = [`/${name}`, `/.well-known/oauth-protected-resource/${name}`, `/.well-known/oauth-authorization-server/${name}`]
  const backend = {
    apiVersion: 'proxy.dev/v1alpha1',
    kind: 'ProxyBackend',
    metadata: { name },
    spec: { mcp: { targets: [{ name: 'documents', static: { host: 'localhost', port: upstreamPort } }] }, ...(policies && { policies }) },
  }
  const route = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name },
    spec: {
      parentRefs: [{ name: 'gw' }],
      rules: [{ matches: paths.map((value) => ({ path: { value } })), backendRefs: [{ group: 'proxy.dev', kind: 'ProxyBackend', name }] }],
    },
  }
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name }]
  const policy = { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyPolicy', metadata: { name }, spec: { targetRefs, traffic } }
  return [backend, route, ...(traffic === undefined ? [] : [policy])]
}
