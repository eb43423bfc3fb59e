import { parseTimeout } from '#api/duration.ts'
import type { ExtProc } from '#gen/config/types.ts'
import { isCallFailure } from '../../callout/grpc.ts'
import type { Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { MAX_BUFFER_BYTES, releaseRequest } from '../../expression/buffer.ts'
import type { PolicyState } from '../state.ts'
import { respondAtOnce } from './messages.ts'
import { modesOf, type DirectionMode } from './modes.ts'
import { runPhase, type PhaseContext } from './phase.ts'
import { ImmediateAnswer, Session } from './session.ts'

/**
 * External processing (traffic.md §8.8): one stream for each request, on which the processor sees request and response and changes
 * them. Responses that did not come from an upstream are not shown to it.
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
    const session = new Session(exchange, destination, modes, timeoutMs, registry)
    return { exchange, session, maxBufferBytes, allowsOverride: processingOptions.allowModeOverride === true, modes, hasSentBody: false }
  }
  return async (c, next) => {
    const { exchange } = c.var
    const context = begin(exchange)
    const { session } = context
    try {
      if (!(await processRequest(context, failureMode === 'FailOpen'))) return await next()
      await next()
      // The body of the request was still streaming when the processor answered.
      if (session.immediate !== undefined) return respondAtOnce(c, session.immediate)
      if (session.failure !== undefined) throw toProxyError(session.failure)
      if (exchange.error === undefined && !exchange.isLocalAnswer && !session.isOver) await runPhase(context, 'response')
      session.finish()
      return undefined
    } catch (error) {
      session.abandon(error instanceof Error ? error : new Error(String(error)))
      if (error instanceof ImmediateAnswer) return respondAtOnce(c, error.response)
      throw toProxyError(error)
    } finally {
      releaseRequest(exchange)
    }
  }
}

/** False: the processor failed before anything depended on it, and the exchange goes on without it. */
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

const isIdle = ({ sendsHeaders, body, sendsTrailers }: DirectionMode): boolean => !sendsHeaders && body === 'None' && !sendsTrailers

function toProxyError(error: unknown): unknown {
  return isCallFailure(error) ? new ProxyError('EXT_PROC', { detail: (error as Error).message, cause: error }) : error
}
