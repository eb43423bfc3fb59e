import type { Transformation } from '#gen/config/types.ts'
import type { Policy } from '../exchange/context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { defineSlot } from '../exchange/slot.ts'
import { bufferRequest, bufferResponse, MAX_BUFFER_BYTES, releaseRequest } from '../expression/buffer.ts'
import { parsesJson, needsRequestBody, readsResponseBody } from '../expression/program.ts'
import { ExchangeView } from '../expression/view.ts'
import { compileTransform, programsOf, type CompiledTransform } from './compile.ts'
import { transformRequest } from './request.ts'
import { transformResponse } from './response.ts'

/** The `transformation` section of a backend policy. */
export interface BackendTransformation {
  readonly request: CompiledTransform | undefined
  readonly response: CompiledTransform | undefined
  readonly buffersRequest: boolean
  readonly buffersResponse: boolean
  readonly parses: boolean
}

/** Transformation of the backend that the request was sent to; its response side runs when the response is received. */
export const backendTransformation = defineSlot<BackendTransformation>('backendTransformation', { isForked: false })

/** Keyed by section, which is the same object over config versions, while settings are created for each version. */
const compiled = new WeakMap<Transformation, BackendTransformation>()

/** Compiles a section once; later calls with the same section return the same object. */
export function compileBackendTransformation(section: Transformation): BackendTransformation {
  let transformation = compiled.get(section)
  if (transformation === undefined) {
    const request = section.request && compileTransform(section.request, 'backend')
    const response = section.response && compileTransform(section.response, 'response')
    const buffersRequest = needsRequestBody([...programsOf(request), ...programsOf(response)])
    const buffersResponse = readsResponseBody(programsOf(response))
    const parses = parsesJson([...programsOf(request), ...programsOf(response)])
    compiled.set(section, (transformation = { request, response, buffersRequest, buffersResponse, parses }))
  }
  return transformation
}

/**
 * Applies the request side after the backend was chosen and its credentials were set (traffic.md §5 step 8). The response side is applied by
 * `transformBackendResponse`. Callers that try several backends call it for each one, with the original request.
 */
export async function transformForBackend(exchange: Exchange, transformation: BackendTransformation, maxBufferBytes = MAX_BUFFER_BYTES): Promise<void> {
  backendTransformation.set(exchange, transformation)
  if (transformation.buffersRequest) await bufferRequest(exchange, maxBufferBytes, transformation.parses)
  if (transformation.request !== undefined) transformRequest(exchange, transformation.request, new ExchangeView(exchange))
}

/** Applies the response side of the chosen backend. Chains include it if one of their backends may have a transformation. */
export function transformBackendResponse(maxBufferBytes = MAX_BUFFER_BYTES): Policy {
  return async (c, next) => {
    const { exchange } = c.var
    const { method } = exchange.request
    try {
      await next()
      const transformation = backendTransformation.get(exchange)
      if (transformation?.response === undefined) return
      if (transformation.buffersResponse) await bufferResponse(exchange, maxBufferBytes, transformation.parses)
      transformResponse(exchange, transformation.response, new ExchangeView(exchange))
    } finally {
      // Whether a response has a body depends on the method of the client, not on the forwarded one.
      exchange.request.method = method
      if (backendTransformation.get(exchange)?.buffersRequest === true) releaseRequest(exchange)
    }
  }
}
