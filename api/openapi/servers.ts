import { isJsonObject, type JsonObject } from '#api/json/index.ts'
import { DocumentError, type OpenApiDocument } from './document.ts'

/** Base of relative URLs, which are on the host of the document. */
const DOCUMENT_URL = 'http://document.invalid/'
const DOCUMENT_HOST = new URL(DOCUMENT_URL).host

interface Server {
  /** With a port other than the default. `DOCUMENT_HOST`: the URL is relative. */
  readonly host: string
  readonly path: string
}

interface ServerUser {
  readonly item: JsonObject
  readonly definition: JsonObject
}

/** The servers of a document, of its paths and of its operations: the most specific ones hold. Their hosts are compared, and never called. */
export class Servers {
  /** Path of the first server of the document, without a trailing slash. */
  readonly basePath: string
  /** Hosts of the API. */
  readonly #hosts: ReadonlySet<string>

  constructor({ root }: OpenApiDocument, operations: readonly ServerUser[]) {
    const servers = listOf(root).map(readServer)
    this.basePath = servers[0]?.path ?? ''
    const named = hostsOf(servers)
    // Without a host in the document, operations may name one.
    const own = named.size > 0 ? named : hostsOf(operations.flatMap((operation) => ownServers(operation).map(readServer)))
    this.#hosts = new Set([DOCUMENT_HOST, ...(named.size > 0 || own.size === 1 ? own : [])])
  }

  /**
   * The path of the first server of an operation that is on a host of the API, without a trailing slash. Throws a DocumentError if there is none: the request
   * would reach another API than the one that the document means.
   */
  basePathOf(operation: ServerUser): string {
    const own = ownServers(operation)
    if (own.length === 0) return this.basePath
    for (const server of own.map(readServer)) if (server !== undefined && this.#hosts.has(server.host)) return server.path
    throw new DocumentError('its servers are on another host than the API; openapi.path replaces all servers')
  }
}

export const trimmed = (path: string): string => path.replace(/\/+$/, '')

const hostsOf = (servers: readonly (Server | undefined)[]): Set<string> =>
  new Set(servers.flatMap((server) => (server === undefined || server.host === DOCUMENT_HOST ? [] : [server.host])))

/** An empty list counts as none. */
const listOf = ({ servers }: JsonObject): readonly unknown[] => (Array.isArray(servers) ? servers : [])

function ownServers({ item, definition }: ServerUser): readonly unknown[] {
  const own = listOf(definition)
  return own.length > 0 ? own : listOf(item)
}

/** Undefined if the URL is none of HTTP. Variables have their defaults. */
function readServer(server: unknown): Server | undefined {
  if (!isJsonObject(server) || typeof server['url'] !== 'string') return undefined
  const variables = isJsonObject(server['variables']) ? server['variables'] : {}
  const url = server['url'].replaceAll(/\{([^{}]*)\}/g, (_, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
    return isJsonObject(variable) ? String(variable['default']) : ''
  })
  if (!URL.canParse(url, DOCUMENT_URL)) return undefined
  const { host, pathname } = new URL(url, DOCUMENT_URL)
  return pathname.startsWith('/') ? { host, path: trimmed(pathname) } : undefined
}
