/** Methods of the HTTP+JSON binding by the end of their paths, with the names of A2A 1.0. */
const byPath: readonly (readonly [http: string, path: RegExp, method: string])[] = [
  ['POST', /\/message:send$/i, 'SendMessage'],
  ['POST', /\/message:stream$/i, 'SendStreamingMessage'],
  ['GET', /\/tasks$/i, 'ListTasks'],
  ['GET', /\/tasks\/[^/:]+$/i, 'GetTask'],
  ['POST', /\/tasks\/[^/:]+:cancel$/i, 'CancelTask'],
  ['GET', /\/tasks\/[^/:]+:subscribe$/i, 'SubscribeToTask'],
  ['POST', /\/tasks\/[^/:]+:subscribe$/i, 'SubscribeToTask'],
  ['POST', /\/tasks\/[^/:]+\/pushNotificationConfigs$/i, 'CreateTaskPushNotificationConfig'],
  ['GET', /\/tasks\/[^/:]+\/pushNotificationConfigs$/i, 'ListTaskPushNotificationConfigs'],
  ['GET', /\/tasks\/[^/:]+\/pushNotificationConfigs\/[^/:]+$/i, 'GetTaskPushNotificationConfig'],
  ['DELETE', /\/tasks\/[^/:]+\/pushNotificationConfigs\/[^/:]+$/i, 'DeleteTaskPushNotificationConfig'],
  ['GET', /\/(extendedAgentCard|v1\/card)$/i, 'GetExtendedAgentCard'],
  ['GET', /\/\.well-known\/agent(-card)?\.json$/i, 'GetAgentCard'],
]
/** Path of the gRPC binding. */
const GRPC = /\/(?:lf\.)?a2a\.v1\.A2AService\/([A-Za-z]{1,64})$/
/** Longer paths are those of no method. */
const MAX_PATH = 2048

/** What the path of a request says. */
export interface PathMethod {
  readonly method: string
  readonly isGrpc: boolean
}

/**
 * The method of a request of the HTTP+JSON and gRPC bindings; undefined: the body names it, or it is none of A2A. Frameworks of agents decode
 * paths, and some ignore case and slashes at the end: so does this function, so that no spelling evades a rule.
 */
export function methodOfPath(http: string, path: string): PathMethod | undefined {
  if (path.length > MAX_PATH) return undefined
  const plain = plainPath(path)
  const grpc = GRPC.exec(plain)?.[1]
  if (grpc !== undefined) return { method: grpc, isGrpc: true }
  const method = byPath.find(([of, pattern]) => (of === http || (of === 'GET' && http === 'HEAD')) && pattern.test(plain))?.[2]
  return method === undefined ? undefined : { method, isGrpc: false }
}

/** The path decoded, without slashes at its end. */
function plainPath(path: string): string {
  let end = path.length
  while (end > 1 && path[end - 1] === '/') end--
  const cut = path.slice(0, end)
  if (!cut.includes('%')) return cut
  try {
    return decodeURIComponent(cut)
  } catch {
    return cut
  }
}

/** Names of methods whose result is an agent card: A2A 1.0 and 0.3; `GetAgentCard` is that of gRPC of 0.3. */
export const isCardMethod = (method: string | undefined): boolean =>
  method === 'GetExtendedAgentCard' || method === 'agent/getAuthenticatedExtendedCard' || method === 'GetAgentCard'
