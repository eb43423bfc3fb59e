import { readHeldBody } from '../../../request/exchange/held.ts'
import { BufferBody } from '../../../http/body.ts'
import { offersOf, withoutReverse } from '../message/capabilities.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject } from '../message/json.ts'
import { clientMeta, isModernAnswer, MAX_CLIENT_CHARS, MODERN_VERSION, modernErrorIn, toInitializeResult, type SessionClient } from '../message/modern.ts'
import { Flow } from '../message/reply.ts'
import { isServed } from '../message/request.ts'
import { resultText, toText, type RpcRequest } from '../message/rpc.ts'
import type { Target } from '../target/target.ts'
import type { LinkAnswer } from '../upstream/link.ts'
import { streamableLink } from '../upstream/streamable.ts'
import { post, readAnswer, stateOf, toFailure, type Run } from './run.ts'

/** Statuses with which servers without sessions reject `initialize`. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 404, 405])
const MAX_REFUSAL_BYTES = 64 * 1024
const DEFAULT_VERSION = '2025-11-25'
const DISCOVER_ID = 'proxy_discover'

/**
 * Sends `initialize` to a target. A target without sessions rejects it: the answer is then made from its `server/discover`, and its link
 * converts all later messages (mcp.md §13.4). Rejects like `post`.
 */
export async function startTarget(run: Run, target: Target, request: RpcRequest, text: string): Promise<LinkAnswer> {
  if (run.revisions.isModernOnly(target)) {
    const known = await discover(run, target, request)
    if (known !== undefined) return known
    run.revisions.forget(target)
  }
  const answer = await post(run, target, text, { method: 'initialize', id: request.id })
  if (answer.kind !== 'refused' || target.protocol !== 'StreamableHTTP' || !REJECTIONS.has(answer.response.status)) return answer
  const { bytes } = await readHeldBody(undefined, answer.response.body, MAX_REFUSAL_BYTES).catch(() => ({ bytes: Buffer.alloc(0) }))
  const found = modernErrorIn(bytes.toString()) === undefined ? undefined : await discover(run, target, request)
  return found ?? { kind: 'refused', response: { ...answer.response, body: new BufferBody(bytes) } }
}

/** The answer from `server/discover`; undefined if the target does not speak the revision. */
async function discover(run: Run, target: Target, request: RpcRequest): Promise<LinkAnswer | undefined> {
  const { session, revisions } = run
  const client = clientOf(request, run.config.isStateful)
  const method = 'server/discover'
  const state = { sessionId: undefined, endpoint: undefined, offers: undefined, version: MODERN_VERSION, isMissing: false }
  try {
    const text = toText({ jsonrpc: '2.0', id: DISCOVER_ID, method, params: { _meta: clientMeta(client) } })
    const answer = await streamableLink(target, state).post(run, text, { method, id: DISCOVER_ID })
    if (answer.kind === 'refused' && !REJECTIONS.has(answer.response.status)) return answer
    const message = await readAnswer(run, target, answer, DISCOVER_ID, new Flow(), () => undefined)
    if (!isModernAnswer(message) || !isObject(message.result)) return undefined
    revisions.set(target, 'modern-only')
    if (JSON.stringify(client).length <= MAX_CLIENT_CHARS) session.client = client
    Object.assign(stateOf(session, target), { version: MODERN_VERSION, offers: offersOf(message.result) })
    const requested = request.params?.['protocolVersion']
    const version = typeof requested === 'string' && isServed(requested) ? requested : DEFAULT_VERSION
    const body = new BufferBody(resultText(request.id, toInitializeResult(message.result, version, target.name)))
    return { kind: 'json', body }
  } catch (error) {
    const failure = toFailure(run, target, error)
    // The response is no message, or a rejection that older servers send too.
    if (failure instanceof McpFailure && failure.status === 500) throw failure
    if (failure instanceof McpFailure || failure.name === 'Error') return undefined
    throw failure
  }
}

/** Without sessions, requests of the target could not be answered (decision D4). */
function clientOf({ params }: RpcRequest, isStateful: boolean): SessionClient {
  const { capabilities, clientInfo } = params ?? {}
  return {
    capabilities: isObject(capabilities) ? (isStateful ? capabilities : withoutReverse(capabilities)) : {},
    info: isObject(clientInfo) ? clientInfo : undefined,
  }
}
