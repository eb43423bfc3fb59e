import { McpFailure } from '../message/failure.ts'
import { parseJson } from '../message/json.ts'
import { prefixTask, prefixUri } from '../message/names.ts'
import type { Reply } from '../message/reply.ts'
import { discard, post, type Run } from './run.ts'
import { errorText, isRequest, METHOD_NOT_FOUND, resultText, toText, type RpcId, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/
/** Ids of targets' requests as clients see them. They name the target, because several targets may use the same id (mcp.md §4.3). */
const MAPPED = /^proxy_([^_]+)_([ns])_(.*)$/s

function mapId(target: string, id: RpcId): string {
  return `proxy_${target}_${typeof id === 'string' ? `s_${id}` : `n_${JSON.stringify(id)}`}`
}

function unmapId(id: unknown): { target: string; id: RpcId } | undefined {
  const [, target, type, text] = (typeof id === 'string' && MAPPED.exec(id)) || []
  if (target === undefined || text === undefined) return undefined
  if (type === 's') return { target, id: text }
  return NUMBER.test(text) ? { target, id: parseJson(text) as RpcId } : undefined
}

/** A message that a target sent on its own, as the client receives it; undefined if it is not for the client. */
export function mapServerMessage(run: Run, target: Target, message: RpcMessage): RpcMessage | undefined {
  const { config, session } = run
  const { method, params } = message
  if (!config.isStateful && isRequest(message)) return rejectServerRequest(run, target, message)
  if (method === 'notifications/tools/list_changed' || method === 'notifications/prompts/list_changed') session.owners.clear()
  if (isRequest(message)) return { ...message, id: mapId(target.name, message.id) }
  // A response to no request of the client.
  if (method === undefined) return config.isMultiplexing ? undefined : message
  if (method === 'notifications/resources/updated' && config.naming.prefixesUris && typeof params?.['uri'] === 'string')
    return { ...message, params: { ...params, uri: prefixUri(target.name, params['uri']) } }
  if (method === 'notifications/tasks' && config.naming.prefixesUris && params !== undefined) return { ...message, params: prefixTask(target.name, params) }
  if (method === 'notifications/cancelled' && params?.['requestId'] !== undefined)
    return { ...message, params: { ...params, requestId: mapId(target.name, params['requestId'] as RpcId) } }
  return message
}

/** Rejects a target's request at once: without sessions, the client's response could not be routed back. */
function rejectServerRequest(run: Run, target: Target, { id, method }: RpcRequest): undefined {
  // The session with the target is the gateway's own.
  const isOurs = method === 'ping' && run.linkOf !== undefined
  const answer = isOurs ? resultText(id, {}) : errorText(id, METHOD_NOT_FOUND, `${method} cannot be sent: the client has no session`)
  post(run, target, answer, { method: undefined }).then(discard, () => undefined)
}

/** Whether `mapServerMessage` may change the message in `text`. A cheap check for messages that pass through unread. */
export const mayBeMapped = ({ config }: Pick<Run, 'config'>, text: string): boolean => config.isMultiplexing || text.includes('"method"')

/** Forwards the client's response to a target's request. */
export async function answerServer(run: Run, message: RpcMessage, text: string): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  if (!config.isStateful) return { kind: 'accepted' }
  const original = unmapId(message.id)
  if (!config.isMultiplexing && sole !== undefined)
    return sendResponse(run, sole, original?.target === sole.name ? toText({ ...message, id: original.id }) : text)
  if ((message.id ?? null) === null) return { kind: 'accepted' }
  const target = original && config.targetOf.get(original.target)
  if (original === undefined || target === undefined) throw McpFailure.text(400, 'the id of this response is not that of a request of a server')
  return sendResponse(run, target, toText({ ...message, id: original.id }))
}

async function sendResponse(run: Run, target: Target, text: string): Promise<Reply> {
  const answer = await post(run, target, text, { method: undefined })
  if (answer.kind === 'refused') return { kind: 'relay', response: answer.response }
  discard(answer)
  return { kind: 'accepted' }
}
