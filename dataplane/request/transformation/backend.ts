import type { Transformation } from '#gen/config/types.ts'
import type { Policy } from '../exchange/context.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { defineSlot } from '../exchange/slot.ts'
import { bufferRequest, bufferResponse, MAX_BUFFER_BYTES, releaseRequest } from '../expression/buffer.ts'
import { compileCondition, type Condition } from '../expression/condition.ts'
import { parsesJson, needsRequestBody, readsResponseBody } from '../expression/program.ts'
import { ExchangeView } from '../expression/view.ts'
import { compileTransform, programsOf, type CompiledTransform } from './compile.ts'
import { transformRequest } from './request.ts'
import { transformResponse } from './response.ts'

/** The `transformation` section of a backend policy. */
export interface BackendTransformation {
  readonly request: CompiledTransform | undefined
  readonly response: CompiledTransform | undefined
  readonly condition: Condition | undefined
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
    const condition = section.when === undefined ? undefined : compileCondition(section.when, 'appliesUnlessAbsent', 'backend')
    const programs = [...programsOf(request), ...programsOf(response), ...(condition === undefined ? [] : [condition.program])]
    const buffersRequest = needsRequestBody(programs)
    const buffersResponse = readsResponseBody(programsOf(response))
    compiled.set(section, (transformation = { request, response, condition, buffersRequest, buffersResponse, parses: parsesJson(programs) }))
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
  const view = new ExchangeView(exchange)
  if (transformation.condition?.holds(view) === false) return backendTransformation.set(exchange, { ...transformation, response: undefined })
  if (transformation.request !== undefined) transformRequest(exchange, transformation.request, view)
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
