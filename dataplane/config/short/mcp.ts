import { MCP_PORT } from '#api/config/short-form-ports.ts'
import type { BackendWithMCP, McpTargetSelector, ShortMCP, ShortMCPServer } from '#gen/config/types.ts'
import { readListen } from './listen.ts'
import type { Expansion, Path } from './expansion.ts'
import type { SchemaProblem } from '../validate.ts'
import { parseUpstreamUrl } from './upstream-url.ts'

const NAME = 'mcp'
/** Names of MCP targets, which are prefixes of the names of tools. */
const serverName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/

/** Expands the section `mcp`: one listener with one MCP backend, whose targets are the servers. */
export function expandMcp(section: ShortMCP): Expansion {
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
  const targets = Object.entries(others as Record<string, ShortMCPServer>).flatMap(([name, server]) => expandServer(name, server, report) ?? [])
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
        },
      },
    ],
    secrets: [],
    policies: [],
    problems,
  }
}

function expandServer(name: string, server: ShortMCPServer, report: (path: Path, text: string) => void): McpTargetSelector | undefined {
  const path = [NAME, name]
  if (!serverName.test(name) || name.length > 253)
    report(path, 'is the name of a server, which consists of lower-case letters, digits and -; it becomes the prefix of its tools')
  if (server.command !== undefined) {
    if (server.url !== undefined) report([...path, 'url'], 'is not used with command; remove one of them')
    for (const field of ['protocol', 'apiKey', 'policies'] as const)
      if (server[field] !== undefined) report([...path, field], 'is not used with command; remove it')
    const { command, env, inheritEnv, tools } = server
    return { name, command, ...(env && { env }), ...(inheritEnv !== undefined && { inheritEnv }), ...(tools && { tools }) }
  }
  for (const field of ['env', 'inheritEnv'] as const) if (server[field] !== undefined) report([...path, field], 'is the environment of command; remove it')
  if (server.url === undefined) {
    report(path, 'url is missing')
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
  const defaultPath = server.protocol === 'SSE' ? '/sse' : '/mcp'
  return {
    name,
    ...(server.tools && { tools: server.tools }),
    static: {
      host: url.host,
      port: url.port,
      ...(url.path + url.query !== '' && { path: (url.path === '' ? defaultPath : url.path) + url.query }),
      protocol: server.protocol ?? 'StreamableHTTP',
      ...(Object.keys(policies).length > 0 && { policies }),
    },
  }
}
