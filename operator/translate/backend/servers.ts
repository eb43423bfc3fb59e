import { isImagePermitted, repositoryOf } from '#api/image.ts'
import { withCode } from '#api/messages/code.ts'
import { parametersFor, permittedServerImages } from '../../deploy/parameters.ts'
import type { McpServer } from '../../model/translation.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import type { ProxyBackend } from '../../source/objects.ts'
import type { ServerReference } from '../reference/commands.ts'

/** A ProxyBackend with its servers, and the Gateways that reach it. */
interface Owner {
  readonly backend: ProxyBackend
  readonly gateways: ReadonlySet<GatewayState>
  readonly resolved: { readonly servers: readonly ServerReference[] }
}

/** The MCP servers of backends that a Gateway permits, in the order of the backends and their targets. */
export const findServers = (backends: readonly Owner[]): McpServer[] => backends.flatMap(serversOf)

function serversOf({ backend, gateways, resolved }: Owner): McpServer[] {
  const { namespace, name, uid = '' } = backend.metadata
  return resolved.servers.flatMap(({ path: _path, ...server }) => {
    const gateway = findPermitting(gateways, namespace, server.image)
    return gateway === undefined ? [] : { backend: { namespace, name, uid }, ...server, gateway }
  })
}

/** Targets whose image no Gateway of the backend permits. */
export function findDeniedServers({ backend, gateways, resolved }: Owner): string[] {
  const { namespace } = backend.metadata
  if (gateways.size === 0) return []
  return resolved.servers
    .filter(({ image }) => findPermitting(gateways, namespace, image) === undefined)
    .map(({ path, image }) => {
      const fix = `add ${repositoryOf(image)}, or the beginning of it, to spec.mcp.images in the ProxyParameters of the GatewayClass, or of a Gateway in namespace ${namespace}`
      return withCode(
        `${path.join('.')}.image: the server is not started, because Gateways ${keysOf(gateways).join(', ')} do not permit the image; ${fix}`,
        'PX1358',
      )
    })
}

/** Servers that wait for a Gateway. */
export const findUnusedServers = ({ gateways, resolved }: Owner): string[] =>
  gateways.size > 0 ? [] : resolved.servers.map(({ target }) => `the server of target ${target} is not started, because no Gateway uses this backend`)

/** The Gateway whose parameters hold for a server: one of its own namespace first, then by name. */
function findPermitting(gateways: ReadonlySet<GatewayState>, namespace: string, image: string): string | undefined {
  const permitting = [...gateways].filter(({ key, parameters }) => isImagePermitted(image, permittedServerImages(parametersFor(key, parameters, namespace))))
  const keys = keysOf(new Set(permitting))
  return keys.find((key) => key.startsWith(`${namespace}/`)) ?? keys[0]
}

export const keysOf = (gateways: ReadonlySet<GatewayState>): string[] => [...gateways].map(({ key }) => key).toSorted()
