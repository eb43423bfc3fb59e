import { MCP_PORT } from '#api/config/short-form-ports.ts'
import type { CompiledOpenApi } from '#api/openapi/compile.ts'
import type { BackendWithMCP, McpTargetSelector, ResolvedMcpOpenApi, ShortMCP, ShortMCPRule, ShortMCPServer } from '#gen/config/types.ts'
import { readListen } from './listen.ts'
import type { Expansion, Path } from './expansion.ts'
import type { SchemaProblem } from '../validate.ts'
import { KEY_NAME } from './access.ts'
import { parseUpstreamUrl, type UpstreamUrl } from './upstream-url.ts'

const NAME = 'mcp'
/** Names of MCP targets, which are prefixes of the names of tools. */
const serverName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/

/** Tools of the OpenAPI document in a file, and operations that are no tools; text: why there are none. */
export type ReadOpenApi = (file: string) => CompiledOpenApi | string

export interface McpOptions {
  readonly readOpenApi: ReadOpenApi
  /** Names of the clients of the file. */
  readonly keys: ReadonlySet<string>
}

/** Expands the section `mcp`: one listener with one MCP backend, whose targets are the servers. */
export function expandMcp(section: ShortMCP, { readOpenApi, keys }: McpOptions): Expansion {
  const {
    port: _port,
    addresses: _addresses,
    listen: _listen,
    tls,
    policies,
    prefixMode,
    failureMode,
    sessionRouting,
    toolNames,
    toolSearch,
    toolPins,
    allowOrigins,
    views,
    ...others
  } = section
  const problems: SchemaProblem[] = []
  const report = (path: Path, text: string): void => void problems.push({ path, text, code: 'PX3008' })
  const { port = MCP_PORT, addresses } = readListen(section, (field, text) => report([NAME, field], text))
  const servers = Object.entries(others as Record<string, ShortMCPServer>)
  const targets = servers.flatMap(([name, server]) => expandServer(name, server, { report, readOpenApi }) ?? [])
  const matchExpressions = servers.flatMap(([name, { rules }]) => (rules === undefined ? [] : admitOnly(name, rules, keys, report)))
  if (Object.keys(others).length === 0) report([NAME], 'has no server; add one: everything: { url: https://mcp.example.com/mcp }')
  return {
    binds: [
      {
        path: [NAME, 'port'],
        value: {
          port,
          ...(addresses && { addresses }),
          listeners: [{ name: NAME, ...(tls && { tls }), ...(policies && { policies }), routes: [{ name: NAME, backends: [{ backend: NAME }] }] }],
        },
      },
    ],
    backends: [
      {
        path: [NAME],
        value: {
          name: NAME,
          mcp: {
            targets,
            sessionRouting: sessionRouting ?? 'Stateful',
            failureMode: failureMode ?? 'FailClosed',
            prefixMode: prefixMode ?? 'Conditional',
            ...(toolNames && { toolNames }),
            ...(toolSearch && { toolSearch }),
            ...(allowOrigins && { allowOrigins }),
            ...(toolPins && { toolPins }),
            ...(views && { views }),
          },
          ...(matchExpressions.length > 0 && { policies: { mcp: { authorization: { action: 'Require', policy: { matchExpressions } } } } }),
        },
      },
    ],
    secrets: [],
    policies: [],
    problems,
  }
}

interface ServerOptions extends Pick<McpOptions, 'readOpenApi'> {
  report(path: Path, text: string): void
}

function expandServer(name: string, server: ShortMCPServer, { report, readOpenApi }: ServerOptions): McpTargetSelector | undefined {
  const path = [NAME, name]
  if (!serverName.test(name) || name.length > 253)
    report(path, 'is the name of a server, which consists of lower-case letters, digits and -; it becomes the prefix of its tools')
  if (server.command !== undefined) {
    if (server.url !== undefined) report([...path, 'url'], 'is not used with command; remove one of them')
    for (const field of ['protocol', 'apiKey', 'policies', 'openapi'] as const)
      if (server[field] !== undefined) report([...path, field], 'is not used with command; remove it')
    const { command, env, inheritEnv, tools } = server
    return { name, command, ...(env && { env }), ...(inheritEnv !== undefined && { inheritEnv }), ...(tools && { tools }) }
  }
  for (const field of ['env', 'inheritEnv'] as const) if (server[field] !== undefined) report([...path, field], 'is the environment of command; remove it')
  if (server.url === undefined) {
    report(path, server.openapi === undefined ? 'url is missing' : 'url is missing; write the URL of the API, such as https://api.example.com')
    return undefined
  }
  const url = parseUpstreamUrl(server.url)
  if (typeof url === 'string') {
    report([...path, 'url'], url)
    return undefined
  }
  if (server.apiKey !== undefined && server.policies?.auth !== undefined) report([...path, 'apiKey'], 'is not used with policies.auth; remove one of them')
  const policies: BackendWithMCP = {
    ...(url.isTls && { tls: {} }),
    ...(server.apiKey !== undefined && { auth: { key: server.apiKey } }),
    ...server.policies,
  }
  const openapi = server.openapi === undefined ? undefined : readApi(server, url, path, { report, readOpenApi })
  const mcpPath = `${url.path === '' ? (server.protocol === 'SSE' ? '/sse' : '/mcp') : url.path}${url.query}`
  return {
    name,
    ...(server.tools && { tools: server.tools }),
    ...(openapi && { openapi }),
    static: {
      host: url.host,
      port: url.port,
      ...(server.openapi === undefined && url.path + url.query !== '' && { path: mcpPath }),
      protocol: server.protocol ?? 'StreamableHTTP',
      ...(Object.keys(policies).length > 0 && { policies }),
    },
  }
}

/** The tools of an HTTP API. Its base path is that of the URL, or of the document if the URL has none. */
function readApi(
  { openapi = '', protocol }: ShortMCPServer,
  url: UpstreamUrl,
  path: Path,
  { report, readOpenApi }: ServerOptions,
): ResolvedMcpOpenApi | undefined {
  if (protocol === 'SSE') report([...path, 'protocol'], 'is that of MCP servers; remove it, or openapi')
  if (url.query !== '') report([...path, 'url'], 'contains a query, which the paths of the API do not have; remove it')
  const read = readOpenApi(openapi)
  if (typeof read === 'string') {
    report([...path, 'openapi'], read)
    return undefined
  }
  return url.path === '' ? read.message : { ...read.message, path: url.path.replace(/\/+$/, '') }
}

/** An expression that is true for tools, prompts and resources of other servers, and for those of this one that a rule admits. */
function admitOnly(name: string, rules: readonly ShortMCPRule[], keys: ReadonlySet<string>, report: (path: Path, text: string) => void): string {
  const admitted = rules.map((rule, index) => {
    for (const [at, key] of (rule.keys ?? []).entries())
      if (!keys.has(key))
        report(
          [NAME, name, 'rules', index, 'keys', at],
          `${JSON.stringify(key)} is not the name of one of keys${keys.size === 0 ? ', which the file does not have' : `: ${[...keys].join(', ')}`}`,
        )
    const conditions = [
      ...(rule.tools ? [`mcp.tool.name.matches(${JSON.stringify(`^(${rule.tools.map(toPattern).join('|')})$`)})`] : []),
      ...(rule.keys ? [`apiKey.${KEY_NAME} in ${JSON.stringify(rule.keys)}`] : []),
      ...(rule.when === undefined ? [] : [`(${rule.when})`]),
    ]
    return conditions.length === 0 ? 'true' : `(${conditions.join(' && ')})`
  })
  return `coalesce(mcp.tool.target, mcp.prompt.target, mcp.resource.target) != ${JSON.stringify(name)} || ${admitted.join(' || ')}`
}

/** A regular expression of RE2 for a name with `*` for any text. */
const toPattern = (name: string): string => name.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')
