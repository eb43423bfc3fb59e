import type { ExtProcProcessing } from '#gen/config/types.ts'
import {
  ProcessingMode_BodySendMode as Wire,
  ProcessingMode_HeaderSendMode as Send,
  type ProcessingMode,
} from '#gen/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.js'

/** How a body is sent to the processor. */
export type BodyMode = NonNullable<ExtProcProcessing['requestBodyMode']>

/** The parts of a request or a response that are sent to the processor. */
export interface DirectionMode {
  readonly sendsHeaders: boolean
  readonly body: BodyMode
  /** Always true with FullDuplexStreamed. */
  readonly sendsTrailers: boolean
}

/** The parts of request and response that are sent to the processor. */
export interface Modes {
  readonly request: DirectionMode
  readonly response: DirectionMode
}

/** The modes of a policy, with defaults. */
export function modesOf(options: ExtProcProcessing = {}): Modes {
  const { requestHeaderMode, requestBodyMode, requestTrailerMode, responseHeaderMode, responseBodyMode, responseTrailerMode } = options
  return {
    request: direction(requestHeaderMode !== 'Skip', requestBodyMode ?? 'FullDuplexStreamed', requestTrailerMode !== 'Skip'),
    response: direction(responseHeaderMode !== 'Skip', responseBodyMode ?? 'FullDuplexStreamed', responseTrailerMode !== 'Skip'),
  }
}

function direction(sendsHeaders: boolean, body: BodyMode, sendsTrailers: boolean): DirectionMode {
  return { sendsHeaders, body, sendsTrailers: sendsTrailers || body === 'FullDuplexStreamed' }
}

/** Body modes as reported to the processor at the start of the stream. */
export const wireModes: Readonly<Record<BodyMode, Wire>> = {
  None: Wire.NONE,
  Buffered: Wire.BUFFERED,
  BufferedPartial: Wire.BUFFERED_PARTIAL,
  FullDuplexStreamed: Wire.FULL_DUPLEX_STREAMED,
}

const known = new Map<Wire, BodyMode>(Object.entries(wireModes).map(([mode, wire]) => [wire, mode as BodyMode]))

/** The mode after a mode_override. Unsupported body modes are ignored. */
function override(before: DirectionMode, headers: Send, body: Wire, trailers: Send): DirectionMode {
  return direction(pick(before.sendsHeaders, headers), known.get(body) ?? before.body, pick(before.sendsTrailers, trailers))
}

const pick = (before: boolean, requested: Send): boolean => (requested === Send.DEFAULT ? before : requested === Send.SEND)

/** Applies a mode_override to request and response, except for a direction whose body is streaming already. */
export function overrideAll({ request, response }: Modes, wanted: ProcessingMode, isStreaming: (direction: keyof Modes) => boolean): Modes {
  return {
    request: isStreaming('request') ? request : override(request, Send.DEFAULT, wanted.requestBodyMode, wanted.requestTrailerMode),
    response: isStreaming('response') ? response : override(response, wanted.responseHeaderMode, wanted.responseBodyMode, wanted.responseTrailerMode),
  }
}
