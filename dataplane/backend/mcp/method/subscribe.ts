import { capabilitiesOf } from '../message/capabilities.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import { TASKS_EXTENSION, withSubscription } from '../message/modern.ts'
import { splitTask } from '../message/names.ts'
import type { EventOutput, Reply } from '../message/reply.ts'
import { INVALID_PARAMS, MISSING_CAPABILITY, parseUpstreamMessage, toText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { Bridge } from '../run/bridge.ts'
import { RefusedError, toFailure, type Run } from '../run/run.ts'
import type { StreamFeeder } from '../sse/body.ts'
import type { Target } from '../target/target.ts'
import { resolveUri } from './calls.ts'
import { listen } from './listen.ts'
import { hasTasks } from './tasks.ts'

/** Members of the filter of `subscriptions/listen`, their notifications, and the capability that announces them. */
const LISTS = [
  { member: 'toolsListChanged', method: 'notifications/tools/list_changed', capability: 'tools' },
  { member: 'promptsListChanged', method: 'notifications/prompts/list_changed', capability: 'prompts' },
  { member: 'resourcesListChanged', method: 'notifications/resources/list_changed', capability: 'resources' },
] as const
const UPDATED = 'notifications/resources/updated'
const TASK = 'notifications/tasks'
const MAX_SUBSCRIPTIONS = 1000

/**
 * Handles subscriptions/listen: a stream of the changes that the client requests, of all targets (mcp.md §13.5). The session of the run is
 * used for this stream only.
 */
export async function subscribe(run: Run, request: RpcRequest, bridge: Bridge): Promise<Reply> {
  const filter = request.params?.['notifications']
  if (!isObject(filter)) throw McpFailure.rpc(INVALID_PARAMS, 'params.notifications must be an object')
  const uris = filter['resourceSubscriptions'] ?? []
  if (!Array.isArray(uris) || uris.length > MAX_SUBSCRIPTIONS || !uris.every((uri): uri is string => typeof uri === 'string'))
    throw McpFailure.rpc(INVALID_PARAMS, `params.notifications.resourceSubscriptions must be a list of at most ${MAX_SUBSCRIPTIONS} URIs`)
  const described = await describeAll(run, bridge)
  const offers = (target: Target | undefined, capability: string, member: string): boolean => {
    const announced = target && capabilitiesOf(described.get(target) ?? {})[capability]
    return isObject(announced) && announced[member] === true
  }
  const lists = LISTS.filter(
    ({ member, capability }) => filter[member] === true && run.config.targets.some((target) => offers(target, capability, 'listChanged')),
  )
  const subscribed = [...new Set(uris)].filter((uri) => {
    const found = resolveUri(run, uri)
    const target = found && run.config.targetOf.get(found.target)
    if (found === undefined || target === undefined || !offers(target, 'resources', 'subscribe')) return false
    if (!run.judge({ kind: 'resource', target: target.name, name: found.name }, target.rules)) return false
    bridge.subscribeTo(target, found.name)
    return true
  })
  const tasks = await subscribeToTasks(run, filter['taskIds'] ?? [], bridge)
  const honored: JsonObject = {
    ...Object.fromEntries(lists.map(({ member }) => [member, true])),
    ...(subscribed.length > 0 && { resourceSubscriptions: subscribed }),
    ...(tasks.length > 0 && { taskIds: tasks }),
  }
  const opened = await listenToSome(run)
  const admits = ({ method, params }: RpcMessage): boolean =>
    lists.some((list) => list.method === method) ||
    (method === UPDATED && subscribed.includes(String(params?.['uri']))) ||
    (method === TASK && tasks.includes(String(params?.['taskId'])))
  return { kind: 'stream', feed: (out) => opened(new SubscriptionOutput(out, request, honored, admits)) }
}

/** The tasks whose states the client receives. Rejects with -32021 if the client does not have the extension. */
async function subscribeToTasks(run: Run, ids: unknown, bridge: Bridge): Promise<string[]> {
  if (!Array.isArray(ids) || ids.length > MAX_SUBSCRIPTIONS || !ids.every((id): id is string => typeof id === 'string'))
    throw McpFailure.rpc(INVALID_PARAMS, `params.notifications.taskIds must be a list of at most ${MAX_SUBSCRIPTIONS} ids`)
  if (ids.length === 0) return []
  const extensions = run.client?.capabilities['extensions']
  if (!isObject(extensions) || extensions[TASKS_EXTENSION] === undefined) {
    const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } }
    throw McpFailure.rpc(MISSING_CAPABILITY, 'Missing required client capability', { status: 400, data })
  }
  const [sole] = run.config.targets
  const subscribed: string[] = []
  for (const id of new Set(ids)) {
    const found = run.config.naming.prefixesUris ? splitTask(id) : sole && { target: sole.name, name: id }
    const target = found && run.config.targetOf.get(found.target)
    if (found === undefined || target === undefined || !run.judge({ kind: 'task', target: target.name, name: found.name }, target.rules)) continue
    if (!(await hasTasks(run, target, bridge))) continue
    bridge.subscribeToTask(target, found.name)
    subscribed.push(id)
  }
  return subscribed
}

/** Results of `server/discover` or `initialize`. With FailOpen, targets that are not available are left out. */
async function describeAll(run: Run, bridge: Bridge): Promise<ReadonlyMap<Target, JsonObject>> {
  const results = new Map<Target, JsonObject>()
  await Promise.all(
    run.config.targets.map(async (target) => {
      try {
        results.set(target, await bridge.describe(run, target))
      } catch (error) {
        if (!run.config.isFailOpen) throw toFailure(run, target, error)
      }
    }),
  )
  return results
}

type Feed = (out: EventOutput) => StreamFeeder

/** The streams of the targets. Without any, the client's stream is silent, so that it does not reconnect repeatedly. */
async function listenToSome(run: Run): Promise<Feed> {
  const silent: Feed = () => ({})
  try {
    const reply = await listen(run, undefined, true)
    if (reply.kind === 'stream') return reply.feed
    if (reply.kind !== 'relay') return silent
    if (reply.response.status !== 405) throw new RefusedError('the target', reply.response)
    reply.response.body?.cancel()
    return silent
  } catch (error) {
    if (error instanceof McpFailure && error.status === 405) return silent
    throw error
  }
}

/** The stream of one subscription. Its first message is the acknowledgement, and all name the subscription. */
class SubscriptionOutput implements EventOutput {
  readonly isResumable = false
  readonly #out: EventOutput
  readonly #request: RpcRequest
  readonly #admits: (message: RpcMessage) => boolean

  constructor(out: EventOutput, request: RpcRequest, honored: JsonObject, admits: (message: RpcMessage) => boolean) {
    this.#out = out
    this.#request = request
    this.#admits = admits
    this.#write({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: honored } })
  }

  write({ data }: { readonly data: string }): void {
    this.send(data)
  }

  send(text: string): void {
    const message = text === '' ? undefined : parseUpstreamMessage(text)
    if (message !== undefined && this.#admits(message)) this.#write(message)
  }

  end(): void {
    const { id } = this.#request
    this.#out.send(toText({ jsonrpc: '2.0', id, result: withSubscription({ resultType: 'complete' }, id) }))
    this.#out.end()
  }

  fail(error: Error): void {
    this.#out.fail(error)
  }

  #write(message: RpcMessage): void {
    this.#out.send(toText({ ...message, params: withSubscription(message.params ?? {}, this.#request.id) }))
  }
}
