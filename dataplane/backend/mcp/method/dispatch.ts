import { chargeMcpLimits } from '../../../request/exchange/mcp-limits.ts'
import { callNamed, callResource, complete } from './calls.ts'
import { McpFailure, noTargets, UpstreamRpcError } from '../message/failure.ts'
import { callAll, gather } from '../run/gather.ts'
import { initialize, type InitializeOptions } from './initialize.ts'
import { isObject } from '../message/json.ts'
import { list, listShape, mayOffer } from './lists.ts'
import { isLevel, LEVELS } from '../message/modern.ts'
import { callWithSearch, listSearchTools } from './search.ts'
import { streamOf, type Reply } from '../message/reply.ts'
import { answerServer } from '../run/reverse.ts'
import { badAnswer, discard, post, stateOf, type Run } from '../run/run.ts'
import { INVALID_PARAMS, isNotification, isResponse, METHOD_NOT_FOUND, resultText, type RpcMessage, type RpcRequest } from '../message/rpc.ts'
import { callOne } from '../run/single.ts'

/** Handles one message of a client (mcp.md §4.2). `text` is the message as received. Rejects with the error for the client. */
export async function dispatch(run: Run, message: RpcMessage, text: string, options: InitializeOptions): Promise<Reply> {
  if (isResponse(message)) return answerServer(run, message, text)
  const charged = chargeMcpLimits(run.exchange, 'message')
  if (charged !== undefined) await charged
  if (isNotification(message)) return notifyAll(run, message.method, text)
  const request = message as RpcRequest
  if (request.method === 'tools/list' && run.config.toolIndexes !== undefined) return listSearchTools(request)
  const shape = listShape(request.method)
  if (shape !== undefined) return list(run, request, text, shape)
  switch (request.method) {
    case 'initialize':
      return initialize(run, request, text, options)
    case 'tools/call':
      return run.config.toolIndexes === undefined ? callNamed(run, request, text, 'tool') : callWithSearch(run, request, text)
    case 'prompts/get':
      return callNamed(run, request, text, 'prompt')
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return callResource(run, request, text)
    case 'completion/complete':
      return complete(run, request, text)
    case 'logging/setLevel':
      // Some servers accept any text.
      if (!isLevel(request.params?.['level'])) throw McpFailure.rpc(INVALID_PARAMS, `params.level must be one of ${LEVELS.join(', ')}`)
      return callEach(run, request, text)
    case 'ping':
      return callEach(run, request, text)
    default:
      return passUnknown(run, request, text)
  }
}

/** Sends the request to all targets. The result is empty. */
function callEach(run: Run, request: RpcRequest, text: string): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  if (!config.isMultiplexing && sole !== undefined) return callOne(run, sole, request, text)
  if (sole === undefined) throw noTargets()
  const setsLevel = request.method === 'logging/setLevel'
  const targets = config.targets.filter((target) => !setsLevel || mayOffer(run, target, 'l'))
  if (targets.length === 0) return Promise.resolve(streamOf([resultText(request.id, {})]))
  return gather(run, targets, request, text, {
    async read(target, { error, result }) {
      const isMissing = setsLevel && isObject(error) && error['code'] === METHOD_NOT_FOUND
      if (error !== undefined && !isMissing) throw new UpstreamRpcError({ jsonrpc: '2.0', error })
      if (!isMissing && !isObject(result)) throw badAnswer(target, request.method)
    },
    merge: () => '{}',
  })
}

/**
 * Passes an unknown method to the only target. With rules, it could bypass them; with several targets, its target is
 * unknown: it is rejected in both cases.
 */
function passUnknown(run: Run, request: RpcRequest, text: string): Promise<Reply> {
  const { config } = run
  const [sole] = config.targets
  if (config.isMultiplexing || sole === undefined || config.hasRules) throw McpFailure.rpc(METHOD_NOT_FOUND, `Method not found: ${request.method}`)
  return callOne(run, sole, request, text, { isWhole: run.client !== undefined })
}

/** Not forwarded in Stateless mode, where the session with a target lasts for one request. */
const sessionNotifications = new Set(['notifications/initialized', 'notifications/cancelled', 'notifications/progress', 'notifications/roots/list_changed'])

async function notifyAll(run: Run, method: string, text: string): Promise<Reply> {
  const { config, session } = run
  if (!config.isStateful && sessionNotifications.has(method)) return { kind: 'accepted' }
  const [sole] = config.targets
  if (!config.isMultiplexing && sole !== undefined) {
    const answer = await post(run, sole, text, { method })
    if (answer.kind === 'refused') return { kind: 'relay', response: answer.response }
    discard(answer)
    return { kind: 'accepted' }
  }
  const targets = config.targets.filter((target) => !stateOf(session, target).isMissing)
  try {
    for (const { answer } of await callAll(run, targets, (target) => post(run, target, text, { method }))) discard(answer)
  } catch (error) {
    const isOver = error instanceof McpFailure && error.rpc === undefined
    if (!config.isFailOpen || isOver) throw error
  }
  return { kind: 'accepted' }
}
