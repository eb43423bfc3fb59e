import { createHash } from 'node:crypto'
import { SERVER_PORT } from '#api/bridge.ts'

/** An MCP server that the operator runs, if a Gateway permits its image. */
export interface ServerReference {
  /** Name of the target. */
  readonly target: string
  /** Name of its objects. */
  readonly name: string
  readonly image: string
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Path of the target in `spec`. */
  readonly path: readonly string[]
}

const WITHOUT_IMAGE = 'is for config files of the data plane; add image, so that the operator runs it, or name the Service of a server'
const WITHOUT_CLUSTER = 'with image needs a cluster; the target has no server here'

/**
 * Replaces command, env and image of a target by the Service of the server that the operator runs.
 *
 * @param owner key of the ProxyBackend
 * @returns the server, why the target has none, or undefined if the target has no command
 */
export function takeCommand(
  target: Record<string, unknown>,
  owner: string,
  path: readonly string[],
  runsServers: boolean,
): ServerReference | string | undefined {
  const { name, command, env = {}, image } = target as { name: string; command?: readonly string[]; env?: Record<string, string>; image?: string }
  if (command === undefined) return undefined
  for (const field of ['command', 'env', 'image']) Reflect.deleteProperty(target, field)
  target['selector'] = { targets: [] }
  if (image === undefined) return WITHOUT_IMAGE
  if (!runsServers) return WITHOUT_CLUSTER
  const [namespace = '', backend = ''] = owner.split('/')
  const server: ServerReference = { target: name, name: serverName(backend, name), image, command, env, path }
  target['selector'] = { targets: [{ name, service: `${namespace}/${server.name}`, port: SERVER_PORT, protocol: 'StreamableHTTP', sessionsOnly: true }] }
  return server
}

/** Unique in a namespace, and a DNS label that starts with a letter, as Services need. */
export function serverName(backend: string, target: string): string {
  const text = `${backend}-${target}`.replaceAll('.', '-').slice(0, 50)
  const digest = createHash('sha256').update(`${backend}/${target}`).digest('hex').slice(0, 8)
  return `mcp-${text}-${digest}`
}
