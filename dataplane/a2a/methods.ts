/** Methods of the HTTP+JSON binding by the end of their paths, with the names of A2A 1.0. */
const byPath: readonly (readonly [http: string, path: RegExp, method: string])[] = [
  ['POST', /\/message:send$/, 'SendMessage'],
  ['POST', /\/message:stream$/, 'SendStreamingMessage'],
  ['GET', /\/tasks$/, 'ListTasks'],
  ['GET', /\/tasks\/[^/:]+$/, 'GetTask'],
  ['POST', /\/tasks\/[^/:]+:cancel$/, 'CancelTask'],
  ['GET', /\/tasks\/[^/:]+:subscribe$/, 'SubscribeToTask'],
  ['POST', /\/tasks\/[^/:]+:subscribe$/, 'SubscribeToTask'],
  ['POST', /\/tasks\/[^/:]+\/pushNotificationConfigs$/, 'CreateTaskPushNotificationConfig'],
  ['GET', /\/tasks\/[^/:]+\/pushNotificationConfigs$/, 'ListTaskPushNotificationConfigs'],
  ['GET', /\/tasks\/[^/:]+\/pushNotificationConfigs\/[^/:]+$/, 'GetTaskPushNotificationConfig'],
  ['DELETE', /\/tasks\/[^/:]+\/pushNotificationConfigs\/[^/:]+$/, 'DeleteTaskPushNotificationConfig'],
  ['GET', /\/(extendedAgentCard|v1\/card)$/, 'GetExtendedAgentCard'],
]
/** Path of the gRPC binding. */
const GRPC = /\/(?:lf\.)?a2a\.v1\.A2AService\/([A-Za-z]{1,64})$/
/** Longer paths are those of no method. */
const MAX_PATH = 2048

/** The method of a request of the HTTP+JSON and gRPC bindings; undefined: the body names it, or it is none of A2A. */
export function methodOfPath(http: string, path: string): string | undefined {
  if (path.length > MAX_PATH) return undefined
  return GRPC.exec(path)?.[1] ?? byPath.find(([of, pattern]) => of === http && pattern.test(path))?.[2]
}

/** Names of methods whose result is an agent card: A2A 1.0 and 0.3. */
export const isCardMethod = (method: string | undefined): boolean => method === 'GetExtendedAgentCard' || method === 'agent/getAuthenticatedExtendedCard'
