import { DURATION_PATTERN } from '../duration.ts'
import { atMostOneOf, exactlyOneOf, ref, type Definitions, type Schema } from '../schema.ts'
import { sensitiveHeaders } from '../v1alpha1/parameters.ts'
import { integer, list, map, object, port, string } from './shared.ts'
import { shortFormDefinitions, shortListen, shortModels } from './short-forms.ts'

const POSTGRES_URL = '`postgres://USER@HOST:PORT/DATABASE`. `?sslmode=disable` connects without TLS; otherwise the certificate is verified.'

/** How to reach a database on a server. */
const server = (url: string) => ({
  url: string(url, { minLength: 1, maxLength: 4096 }),
  passwordFile: string('Absolute path of a file with the password of the user. It is read for each connection.', { minLength: 1, maxLength: 4096 }),
  caFile: string('Absolute path of a file with PEM certificates that the certificate of the server is verified with. Default: those of Node.', {
    minLength: 1,
    maxLength: 4096,
  }),
})

/** A database of the ledger on a server. */
const database = (description: string, url: string) =>
  object(
    description,
    {
      ...server(url),
      owner: string('Name that records and reports of this process have in the database. Default: namespace and name of the Gateway.', {
        minLength: 1,
        maxLength: 256,
      }),
    },
    ['url'],
  )

const duration = (description: string): Schema => string(description, { pattern: DURATION_PATTERN })

/** The `-f` file: the content of the messages, nested instead of keyed. `dataplane/config/file/` converts it to messages. */
export const fileDefinitions: Definitions = {
  ConfigFile: object('Configuration file of the data plane (`-f`), and content of `ProxyParameters.spec.rawConfig`.', {
    listen: shortListen,
    https: ref('ShortHttps'),
    keys: map(ref('ShortKey'), 'Clients of all ports of the file, by name. Other requests get 401.', { minProperties: 1, maxProperties: 256 }),
    guardrails: ref('ShortGuardrails'),
    models: shortModels,
    mcp: ref('ShortMCP'),
    log: { type: 'string', enum: ['json', 'text'], description: 'Format of the log, as `config.logging.format`. Default: text.' },
    ledger: string('SQLite file of the request log, as `config.ledger.sqlite.path`: a path relative to the config file.', { minLength: 1, maxLength: 4096 }),
    llm: ref('ShortLLM'),
    config: ref('ProcessConfig'),
    binds: list(ref('FileBind'), 'Ports to listen on.'),
    backends: list(ref('FileBackend'), 'Backends that routes refer to by name.'),
    services: list(ref('Service'), 'Services that routes refer to by `<namespace>/<name>`.'),
    secrets: list(ref('Secret'), 'Credentials and certificates that policies refer to by key.'),
    policies: list(ref('Policy'), 'Policies with their targets, as the xDS stream carries them.'),
  }),
  ProcessConfig: object('Settings of the process. Environment variables win over the file.', {
    logging: object('Logging.', {
      level: string('`error`, `warn`, `info` (default), `debug`, `trace`, or comma-separated `module=level` pairs. Environment: PROXY_LOG.'),
      format: { type: 'string', enum: ['json', 'text'], description: 'Default text.' },
      sensitiveHeaders,
    }),
    adminAddr: string('Admin endpoint, `host:port`; default 127.0.0.1:15000. Environment: ADMIN_ADDR.'),
    statsAddr: string('Metrics endpoint, `host:port`; default `[::]:15020`, all addresses of both families. Environment: STATS_ADDR.'),
    readinessAddr: string('Readiness endpoint, `host:port`; default `[::]:15021`, all addresses of both families. Environment: READINESS_ADDR.'),
    xdsAddress: string('Operator with the xDS stream, `http://host:port` or `https://host:port`. Environment: XDS_ADDRESS.'),
    namespace: string('Namespace of the Gateway that this process serves. Environment: NAMESPACE.'),
    gateway: string('Name of the Gateway that this process serves. Environment: GATEWAY.'),
    connectionMinTerminationDeadline: string(
      'Duration for which new requests are still accepted after SIGTERM. Environment: CONNECTION_MIN_TERMINATION_DEADLINE.',
    ),
    workers: integer(
      'Threads that handle traffic; default: the CPU limit of the container, without one the cores of the machine, at most 8. Environment: WORKERS, which may also be `auto` for the default.',
      {
        minimum: 1,
        maximum: 64,
      },
    ),
    connectionTerminationDeadline: string(
      'Duration after which connections that are still open at shutdown are closed. Environment: TERMINATION_GRACE_PERIOD_SECONDS.',
    ),
    ledger: ref('LedgerConfig'),
    budgets: object('Where the counters of budgets are kept. Not set: they are lost when the process ends.', {
      sqlite: object(
        'A SQLite file of this process alone: budgets with scope Replica, and all budgets without an operator, continue after a restart. Written each second; a crash loses at most what was spent in that time.',
        { path: string('Absolute path of the file; it is created if it does not exist. Its directory must be writable.', { minLength: 1, maxLength: 4096 }) },
        ['path'],
      ),
    }),
    rollouts: object('Where the state of the rollouts of models is kept. Not set: they begin anew when the process starts.', {
      path: string('Absolute path of a JSON file of this process alone; it is created if it does not exist. Its directory must be writable.', {
        minLength: 1,
        maxLength: 4096,
      }),
    }),
    redis: ref('RedisConfig'),
    postgres: ref('PostgresConfig'),
    upstreams: ref('UpstreamsSpec'),
    management: object('The management port.', {
      edits: {
        type: 'boolean',
        description:
          'Whether the console may change this file. Default: true, and false in pods. Never with XDS_ADDRESS, or on other addresses than loopback without ADMIN_TOKEN.',
      },
    }),
    plugins: object('Permissions of plugins.', {
      inProcess: { type: 'boolean', description: 'Whether plugins with isolation InProcess may run; default false.' },
    }),
  }),
  LedgerConfig: object(
    'Records each LLM and MCP request, and a sample of the others, in a database: who used which model, tokens, cost, latency and status. Not set: nothing is recorded.',
    {
      sqlite: object(
        'The store: a SQLite file that this process writes. One of `sqlite`, `postgres` and `clickhouse` is required.',
        { path: string('Absolute path of the file; it is created if it does not exist. Its directory must be writable.', { minLength: 1, maxLength: 4096 }) },
        ['path'],
      ),
      postgres: database(
        'The store: a PostgreSQL database that several processes share. One of `sqlite`, `postgres` and `clickhouse` is required.',
        POSTGRES_URL,
      ),
      clickhouse: database(
        'The store: a ClickHouse database that several processes share, by its HTTP interface. One of `sqlite`, `postgres` and `clickhouse` is required.',
        '`https://USER@HOST:PORT/DATABASE`, port 8443 by default, or `http://` without TLS, port 8123 by default.',
      ),
      retention: duration('Age at which records are deleted, at least 1m. Default: 2160h, 90 days.'),
      httpSampling: {
        type: 'number',
        minimum: 0,
        maximum: 1,
        description: 'Share of the requests that are recorded of those that are neither LLM nor MCP. Reports extrapolate. Default: 0.',
      },
      bodies: object(
        'Stores the bodies of LLM chat requests and their responses, as prompt guards and plugins let them through: requests as sent to the provider, streams as one response. Not set: no bodies are stored.',
        {
          maxBytes: integer('Bytes of the longest body; longer ones are cut. Default: 16384.', { minimum: 1, maximum: 262144 }),
          tools: {
            type: 'boolean',
            description: 'Stores arguments and results of MCP tools, too, as tool guards and plugins let them through; default false.',
          },
        },
      ),
      user: string(
        'CEL expression of the user of a request; null and errors: none. Bodies are not available. Default: `coalesce(jwt.sub, basicAuth.username)`.',
        { minLength: 1, maxLength: 16384 },
      ),
      team: string('CEL expression of the team of a request. Default: `coalesce(apiKey.metadata.team, jwt.team)`.', { minLength: 1, maxLength: 16384 }),
    },
  ),
  RedisConfig: object(
    'A Redis server for caches and budgets with `store: Redis`. Not set: caches store in memory, and `onDisconnect` of these budgets decides.',
    {
      url: string('`redis://USER@HOST:PORT/DATABASE`, user and database optional; `rediss://` connects with TLS and verifies the certificate.', {
        minLength: 1,
        maxLength: 4096,
      }),
      passwordFile: string('Absolute path of a file with the password. It is read for each connection.', { minLength: 1, maxLength: 4096 }),
      caFile: string('Absolute path of a file with PEM certificates that the certificate of the server is verified with. Default: those of Node.', {
        minLength: 1,
        maxLength: 4096,
      }),
    },
    ['url'],
  ),
  PostgresConfig: object(
    'A PostgreSQL database for budgets with `store: Postgres`. Tables and functions, whose names begin with `proxy_budget`, are created. Not set: `onDisconnect` of these budgets decides.',
    server(POSTGRES_URL),
    ['url'],
  ),
  FileBind: object(
    'A port.',
    {
      port: port('TCP port.'),
      addresses: list(
        string('IP address.'),
        'Default: loopback, or all if policies or tls.clientCa of all listeners demand that clients authenticate. An empty list: all.',
      ),
      listeners: list(ref('FileListener'), 'Listeners.'),
    },
    ['port', 'listeners'],
  ),
  FileListener: object('A listener.', {
    name: string('Name; default: `listener<index>`.'),
    hostname: string('Exact or `*.` hostname, lower case; default: any.'),
    protocol: {
      type: 'string',
      enum: ['HTTP', 'HTTPS', 'TLS', 'TCP'],
      description: 'Default: HTTPS when tls is given, TCP when only tcpRoutes are, else HTTP.',
    },
    tls: ref('FileTls'),
    routes: list(ref('FileRoute'), 'HTTP routes.'),
    tcpRoutes: list(ref('FileTcpRoute'), 'TCP or TLS routes.'),
    policies: ref('Traffic', 'Traffic policies of all its routes.'),
  }),
  FileTls: object('TLS. Paths are relative to the file.', {
    mode: { type: 'string', enum: ['Terminate', 'Passthrough'], description: 'Default Terminate.' },
    cert: string('Certificate chain: a path, or PEM.'),
    key: string('Private key: a path, or PEM.'),
    clientCa: string('Trust anchors for client certificates: a path, or PEM. Setting it requires a client certificate.'),
  }),
  FileRoute: object('A route: one rule.', {
    name: string('Name; default: `route<index>`.'),
    hostnames: list(string('Exact or `*.` hostname, lower case.'), 'Default: any.'),
    matches: list(ref('RouteMatch'), 'Default: every path.'),
    filters: ref('RouteFilters'),
    timeouts: ref('FileTimeouts'),
    retry: ref('FileRetry'),
    sessionPersistence: ref('SessionPersistence'),
    policies: ref('Traffic', 'Traffic policies of this route.'),
    backends: list(ref('FileWeightedBackend'), 'Destinations.'),
  }),
  FileTimeouts: {
    ...object('Timeouts of a route. `request` and `requestMs` are two forms of one field, as are `backendRequest` and `backendRequestMs`.', {
      request: duration('Whole response, body included, from receipt of the request head; covers retries and backoff. `0s` turns the limit off.'),
      backendRequest: duration('One attempt, until the response head. `0s` turns the limit off.'),
      requestMs: ref('Milliseconds', 'As request, in milliseconds.'),
      backendRequestMs: ref('Milliseconds', 'As backendRequest, in milliseconds.'),
    }),
    'x-kubernetes-validations': [atMostOneOf('request', 'requestMs'), atMostOneOf('backendRequest', 'backendRequestMs')],
  },
  FileRetry: {
    ...object('Retries of a route. `backoff` and `backoffMs` are two forms of one field.', {
      codes: list(integer('Status.', { minimum: 400, maximum: 599 }), 'Statuses that are retried, besides connection failures and attempt timeouts.'),
      attempts: integer('Extra tries; 0 turns retrying off.', { minimum: 0, maximum: 254, default: 1 }),
      backoff: duration('Fixed delay before each retry.'),
      backoffMs: ref('Milliseconds', 'As backoff, in milliseconds.'),
    }),
    'x-kubernetes-validations': [atMostOneOf('backoff', 'backoffMs')],
  },
  FileTcpRoute: object('A TCP or TLS route.', {
    name: string('Name; default: `tcproute<index>`.'),
    hostnames: list(string('SNI: exact or `*.` hostname, lower case.'), 'Default: any.'),
    backends: list(ref('FileWeightedBackend'), 'Destinations.'),
  }),
  FileWeightedBackend: {
    ...object('A destination: exactly one of host, service, backend, dynamicForwardProxy, ai, mcp, cloudBackend, a2a.', {
      host: string('`host:port`.'),
      service: object('A service of this file.', { name: string('`<namespace>/<name>`.'), port: port('Service port.') }, ['name', 'port']),
      backend: string('Name of a backend of this file.'),
      dynamicForwardProxy: ref('DynamicForwardProxyBackend', 'The destination is the request’s Host.'),
      ai: ref('AIBackend'),
      mcp: ref('MCPBackend'),
      cloudBackend: ref('CloudBackend'),
      a2a: ref('A2ABackend'),
      weight: integer('Default 1.', { minimum: 0 }),
      policies: ref('BackendFull', 'Policies of this destination.'),
    }),
    'x-kubernetes-validations': [exactlyOneOf('host', 'service', 'backend', 'dynamicForwardProxy', 'ai', 'mcp', 'cloudBackend', 'a2a')],
  },
  FileBackend: {
    ...object(
      'A backend: exactly one kind.',
      {
        name: string('Name, unique in the file.'),
        host: string('`host:port`.'),
        dynamicForwardProxy: ref('DynamicForwardProxyBackend', 'The destination is the request’s Host.'),
        ai: ref('AIBackend'),
        mcp: ref('MCPBackend'),
        cloudBackend: ref('CloudBackend'),
        a2a: ref('A2ABackend'),
        policies: ref('BackendFull'),
      },
      ['name'],
    ),
    'x-kubernetes-validations': [exactlyOneOf('host', 'dynamicForwardProxy', 'ai', 'mcp', 'cloudBackend', 'a2a')],
  },
  ...shortFormDefinitions,
}
