/** What every program under test serves: ten routes `/route-<n>/` and a catch-all, all with one upstream, over HTTP/1.1, HTTP/2 and TLS. */
export interface PeerSpec {
  readonly port: number
  /** Cleartext HTTP/2 with prior knowledge. */
  readonly http2Port: number
  readonly tlsPort: number
  readonly upstreamPort: number
  /** PEM files. */
  readonly certificate: string
  readonly key: string
}

const ROUTES = 10
const routes = Array.from({ length: ROUTES }, (_, index) => `/route-${index}/`)
/** More than any load of the benchmark opens. */
const MANY = 100_000

/** One thread, no log, no statistics endpoint. `pem` holds certificate and key. */
export function haproxyConfig({ port, http2Port, tlsPort, upstreamPort }: PeerSpec, pem: string): string {
  return `global
  nbthread 1
  maxconn 8192
  tune.h2.max-concurrent-streams 256
defaults
  mode http
  timeout connect 10s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend bench
  bind 127.0.0.1:${port} backlog 4096
  bind 127.0.0.1:${http2Port} proto h2 backlog 4096
  bind 127.0.0.1:${tlsPort} ssl crt ${pem} alpn h2,http/1.1 backlog 4096
${routes.map((path) => `  use_backend upstream if { path_beg ${path} }`).join('\n')}
  default_backend upstream
backend upstream
  server upstream 127.0.0.1:${upstreamPort} pool-max-conn 4096
`
}

const envoyType = (name: string): string => `type.googleapis.com/envoy.${name}`

/** No access log, no admin endpoint. The worker is one by \`--concurrency 1\`. */
export function envoyConfig({ port, http2Port, tlsPort, upstreamPort, certificate, key }: PeerSpec): object {
  const to = { cluster: 'upstream' }
  const manager = {
    '@type': envoyType('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'bench',
    codec_type: 'AUTO',
    http2_protocol_options: { max_concurrent_streams: 256 },
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [...routes.map((prefix) => ({ match: { prefix }, route: to })), { match: { prefix: '/' }, route: to }] },
      ],
    },
    http_filters: [{ name: 'envoy.filters.http.router', typed_config: { '@type': envoyType('extensions.filters.http.router.v3.Router') } }],
  }
  const filters = [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }]
  const address = (number: number): object => ({ socket_address: { address: '127.0.0.1', port_value: number } })
  const tls = {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': envoyType('extensions.transport_sockets.tls.v3.DownstreamTlsContext'),
      common_tls_context: {
        alpn_protocols: ['h2', 'http/1.1'],
        tls_certificates: [{ certificate_chain: { filename: certificate }, private_key: { filename: key } }],
      },
    },
  }
  const limits = { max_connections: MANY, max_pending_requests: MANY, max_requests: MANY }
  return {
    static_resources: {
      listeners: [
        { name: 'http', address: address(port), filter_chains: [{ filters }] },
        { name: 'http2', address: address(http2Port), filter_chains: [{ filters }] },
        { name: 'https', address: address(tlsPort), filter_chains: [{ filters, transport_socket: tls }] },
      ],
      clusters: [
        {
          name: 'upstream',
          type: 'STATIC',
          circuit_breakers: { thresholds: [limits] },
          load_assignment: { cluster_name: 'upstream', endpoints: [{ lb_endpoints: [{ endpoint: { address: address(upstreamPort) } }] }] },
        },
      ],
    },
  }
}

/** Two listeners with one upstream: `plain`, and `filtered` with the WASM filter of a file. */
export function envoyFilterConfig({
  plain,
  filtered,
  upstreamPort,
  filter,
}: {
  readonly plain: number
  readonly filtered: number
  readonly upstreamPort: number
  readonly filter: string
}): object {
  const address = (number: number): object => ({ socket_address: { address: '127.0.0.1', port_value: number } })
  const wasm = {
    name: 'envoy.filters.http.wasm',
    typed_config: {
      '@type': envoyType('extensions.filters.http.wasm.v3.Wasm'),
      config: { name: 'headers', vm_config: { runtime: 'envoy.wasm.runtime.v8', code: { local: { filename: filter } } } },
    },
  }
  const router = { name: 'envoy.filters.http.router', typed_config: { '@type': envoyType('extensions.filters.http.router.v3.Router') } }
  const listener = (number: number, filters: readonly object[]): object => {
    const manager = {
      '@type': envoyType('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
      stat_prefix: 'bench',
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'upstream' } }] }] },
      http_filters: [...filters, router],
    }
    return {
      name: `${number}`,
      address: address(number),
      filter_chains: [{ filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] }],
    }
  }
  const limits = { max_connections: MANY, max_pending_requests: MANY, max_requests: MANY }
  return {
    static_resources: {
      listeners: [listener(plain, []), listener(filtered, [wasm])],
      clusters: [
        {
          name: 'upstream',
          type: 'STATIC',
          circuit_breakers: { thresholds: [limits] },
          load_assignment: { cluster_name: 'upstream', endpoints: [{ lb_endpoints: [{ endpoint: { address: address(upstreamPort) } }] }] },
        },
      ],
    },
  }
}

/** The chat port reads usage of an OpenAI provider, as ours does. One port serves HTTP/1.1 and HTTP/2. */
export function agentgatewayConfig({ port, tlsPort, upstreamPort, certificate, key }: PeerSpec, chatPort: number, managementPorts: readonly number[]): object {
  const [admin, stats, readiness] = managementPorts
  const backends = [{ host: `127.0.0.1:${upstreamPort}` }]
  const all = [...routes.map((pathPrefix) => ({ matches: [{ path: { pathPrefix } }], backends })), { backends }]
  const model = { ai: { name: 'openai', hostOverride: `127.0.0.1:${upstreamPort}`, provider: { openAI: {} } } }
  return {
    config: {
      adminAddr: `127.0.0.1:${admin}`,
      statsAddr: `127.0.0.1:${stats}`,
      readinessAddr: `127.0.0.1:${readiness}`,
      workerThreads: 1,
      logging: { level: 'error' },
    },
    binds: [
      { port, listeners: [{ protocol: 'HTTP', routes: all }] },
      { port: tlsPort, listeners: [{ protocol: 'HTTPS', tls: { cert: certificate, key }, routes: all }] },
      { port: chatPort, listeners: [{ protocol: 'HTTP', routes: [{ backends: [model], policies: { backendAuth: { key: 'k' } } }] }] },
    ],
  }
}

/** One OpenAI provider with a fixed key; logs and statistics are off. */
export function bifrostConfig(upstreamPort: number): object {
  return {
    client: { enable_logging: false, drop_excess_requests: false },
    providers: { openai: { keys: [{ value: 'k', models: [], weight: 1 }], network_config: { base_url: `http://127.0.0.1:${upstreamPort}` } } },
  }
}
