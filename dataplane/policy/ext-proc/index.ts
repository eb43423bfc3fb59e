import { parseTimeout } from '#api/duration.ts'
import type { ExtProc } from '#gen/config/types.ts'
import { callFailureClass, isCallFailure } from '../../net/callout/grpc.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { isUnknownCoding, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import type { PolicyState } from '../state.ts'
import { respondImmediately } from './messages.ts'
import { modesOf, type DirectionMode } from './modes.ts'
import { runPhase, type PhaseContext } from './phase.ts'
import { ImmediateAnswer, ProcessorSession } from './session.ts'

/**
 * External processing (traffic.md §8.8). A processor receives request and response on one gRPC stream per request and may change them.
 * Responses of the gateway itself are not sent to it. `processingOptions` selects the parts that are sent. `failureMode` decides if the
 * call fails before any part of the message depends on it: FailClosed (default) or FailOpen.
 *
 * @throws ProxyError EXT_PROC (500), for requests that are rejected because the processor failed.
 * @example
 * traffic:
 *   extProc:
 *     backendRef:
 *       name: processor
 *       port: 80
 *     messageTimeout: 5s
 *     processingOptions:
 *       requestBodyMode: FullDuplexStreamed
 *       responseBodyMode: None
 */
export function compileExtProc(
  section: ExtProc,
  { destinations, registry }: Pick<PolicyState, 'destinations' | 'registry'>,
  maxBufferBytes = MAX_BUFFER_BYTES,
): Policy {
  const { processingOptions = {}, failureMode, messageTimeout } = section
  const modes = modesOf(processingOptions)
  const timeoutMs = parseTimeout(messageTimeout)
  const destination = destinations.forPolicy(section.backendRef)
  const begin = (exchange: Exchange): PhaseContext => {
    const session = new ProcessorSession(exchange, destination, modes, timeoutMs, registry)
    return { exchange, session, maxBufferBytes, allowsOverride: processingOptions.allowModeOverride === true, modes, hasSentBody: false }
  }
  return async (c, next) => {
    const { exchange } = c.var
    const context = begin(exchange)
    const { session } = context
    try {
      if (!(await processRequest(context, failureMode === 'FailOpen'))) return await next()
      await next()
      // The processor responded while the request body was still streaming.
      if (session.immediate !== undefined) return respondImmediately(c, session.immediate)
      if (session.failure !== undefined) throw toProxyError(session.failure)
      if (exchange.error === undefined && !exchange.isLocalAnswer && !session.isOver) await processResponse(context, failureMode === 'FailOpen')
      session.finish()
      return undefined
    } catch (error) {
      session.abandon(error instanceof Error ? error : new Error(String(error)))
      if (error instanceof ImmediateAnswer) return respondImmediately(c, error.response)
      throw toProxyError(error)
    } finally {
      releaseRequest(exchange)
    }
  }
}

/** False if the processor failed before anything depended on it: the exchange continues without it. */
async function processRequest(context: PhaseContext, isFailOpen: boolean): Promise<boolean> {
  const { session, modes } = context
  try {
    if (!isIdle(modes.request)) await runPhase(context, 'request')
    return true
  } catch (error) {
    if (!isFailOpen || context.hasSentBody || !isCallFailure(error)) throw error
    session.abandon(error as Error)
    return false
  }
}

/** A response that cannot be decoded passes unprocessed if the policy fails open: the processor has seen nothing of it. */
async function processResponse(context: PhaseContext, isFailOpen: boolean): Promise<void> {
  try {
    await runPhase(context, 'response')
  } catch (error) {
    if (!isFailOpen || !isUnknownCoding(error)) throw error
  }
}

const isIdle = ({ sendsHeaders, body, sendsTrailers }: DirectionMode): boolean => !sendsHeaders && body === 'None' && !sendsTrailers

function toProxyError(error: unknown): unknown {
  return isCallFailure(error) ? new ProxyError('EXT_PROC', { detail: callFailureClass(error), cause: error }) : error
}
