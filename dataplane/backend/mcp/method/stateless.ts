import { Flow } from '../message/reply.ts'
import { discard, linkTo, readAnswer, type Run } from '../run/run.ts'
import { startTarget } from '../run/start.ts'
import { UpstreamRpcError } from '../message/failure.ts'
import { offersOf } from '../message/capabilities.ts'
import { isObject } from '../message/json.ts'
import type { Target } from '../target/target.ts'

/** Protocol revision for requests that do not name one. */
const DEFAULT_VERSION = '2025-11-25'

/**
 * Stateless mode: starts a session with each target that a message needs, for this message only (mcp.md §5.2). Each step of a handshake
 * waits for the previous one, as servers may require; handshakes with several targets run in parallel.
 */
export function prepareStateless(version: string): NonNullable<Run['prepare']> {
  const ready = new Map<Target, Promise<void>>()
  return (run, target) => {
    let promise = ready.get(target)
    if (promise === undefined) ready.set(target, (promise = shakeHands(run, target, version)))
    return promise
  }
}

async function shakeHands(run: Run, target: Target, version: string): Promise<void> {
  const protocolVersion = run.exchange.request.headers.get('mcp-protocol-version') ?? DEFAULT_VERSION
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'proxy', version } }
  const request = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
  const answer = await startTarget({ ...run, prepare: undefined }, target, request, JSON.stringify(request))
  const message = await readAnswer(run, target, answer, 0, new Flow(), () => undefined)
  if (message.error !== undefined) throw new UpstreamRpcError(message)
  const state = run.session.links.get(target.name)
  if (state !== undefined && isObject(message.result)) state.offers = offersOf(message.result)
  const method = 'notifications/initialized'
  const taken = await linkTo(run, target).post(run, JSON.stringify({ jsonrpc: '2.0', method }), { method })
  discard(taken)
}
