import type { Program } from '#api/cel/index.ts'
import type { ExtAuth, RouteExtAuth } from '#gen/config/types.ts'
import { isCallFailure } from '../../net/callout/grpc.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bufferedRequest, bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { compileExpression, parsesJson, needsRequestBody } from '../../request/expression/program.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import type { PolicyState } from '../state.ts'
import type { CheckPlan } from './check.ts'
import { respondDenied, type Decision } from './decision.ts'
import { checkByGrpc } from './grpc.ts'
import { checkByHttp, isCopied, type HttpPlan } from './http.ts'

/** Settings that only a route filter has. */
export type FilterExtras = Omit<RouteExtAuth, 'policy'>

/**
 * External authorization (traffic.md §8.7). An authorization server allows or denies each request, by HTTP or by Envoy's gRPC protocol.
 * `failureMode` decides if the call fails: FailClosed (default) or FailOpen. The request timeout applies whatever the mode.
 *
 * @throws ProxyError EXT_AUTH (403), for requests that are rejected because the call failed. Denials are responses of the server.
 * @example
 * traffic:
 *   extAuth:
 *     backendRef:
 *       name: authorizer
 *       port: 80
 *     grpc:
 *       contextExtensions:
 *         shop: blue
 */
export function compileExtAuth(
  section: ExtAuth,
  { kept, destinations, registry }: Pick<PolicyState, 'kept' | 'destinations' | 'registry'>,
  maxBufferBytes = MAX_BUFFER_BYTES,
  extras: FilterExtras = {},
): Policy {
  const { check, programs } = kept.get(section, [], () => plan(section, extras))
  const destination = destinations.forPolicy(section.backendRef)
  const maxBodyBytes = section.forwardBody?.maxSize
  const buffersBody = maxBodyBytes !== undefined || needsRequestBody(programs)
  const decide = async (exchange: Exchange): Promise<Decision> => {
    if (needsRequestBody(programs)) await bufferRequest(exchange, Math.max(maxBufferBytes, maxBodyBytes ?? 0), parsesJson(programs))
    if (maxBodyBytes !== undefined) await bufferBody(exchange, maxBodyBytes)
    return check(exchange, destination, registry).catch((error: unknown) => {
      // Other errors are the request timeout and denials.
      if (!isCallFailure(error)) throw error
      if (section.failureMode === 'FailOpen' && exchange.abortReason === undefined) return {}
      throw new ProxyError('EXT_AUTH', { cause: error })
    })
  }
  return async (c, next) => {
    const { exchange } = c.var
    try {
      const { answer, onResponse } = await decide(exchange)
      if (answer !== undefined) return respondDenied(c, answer)
      if (!buffersBody && onResponse === undefined) return await next()
      await next()
      if (exchange.response !== undefined) onResponse?.(exchange.response.headers)
    } finally {
      if (buffersBody) releaseRequest(exchange)
    }
  }
}

/** Reads the body, which is forwarded unchanged. A longer body is rejected before the server is called (decision D1). */
async function bufferBody(exchange: Exchange, maxBytes: number): Promise<void> {
  const { body } = exchange.request
  if ((body?.length ?? 0) > maxBytes) throw new ProxyError('EXT_AUTH_BODY')
  await bufferRequest(exchange, maxBytes)
  const buffered = bufferedRequest(exchange)
  if (buffered?.isComplete === false || (buffered?.prefix.length ?? 0) > maxBytes) throw new ProxyError('EXT_AUTH_BODY')
}

interface Plan {
  readonly check: (exchange: Exchange, destination: Destination, registry: Registry) => Promise<Decision>
  /** Expressions that may read the request body. */
  readonly programs: readonly Program[]
}

function plan({ grpc, http, forwardBody }: ExtAuth, extras: FilterExtras): Plan {
  const sendsBody = forwardBody !== undefined
  if (grpc !== undefined) {
    const metadata = grpc.requestMetadata && compileAll(grpc.requestMetadata, 'request')
    const headers = extras.grpcHeaders && new Set(extras.grpcHeaders.map((name) => name.toLowerCase()))
    const check: CheckPlan = { contextExtensions: grpc.contextExtensions ?? {}, metadata, headers, sendsBody }
    return {
      check: (exchange, destination, registry) => checkByGrpc(exchange, destination, check, registry),
      programs: (metadata ?? []).map(([, program]) => program),
    }
  }
  const { path, redirect, allowedRequestHeaders = ['authorization'], addRequestHeaders = {}, allowedResponseHeaders = [], responseMetadata = {} } = http ?? {}
  const added = compileAll(addRequestHeaders, 'request')
  const metadata = compileAll(responseMetadata, 'response')
  const [pathProgram, redirectProgram] = [path, redirect].map((expression) => (expression === undefined ? undefined : compileExpression(expression, 'request')))
  const httpPlan: HttpPlan = {
    path: pathProgram,
    redirect: redirectProgram,
    requestHeaders: copied(allowedRequestHeaders),
    addedHeaders: added.map(([name, program]) => [name.toLowerCase(), program] as const).filter(([name]) => isCopied(name)),
    responseHeaders: extras.areAllHeadersCopied === true ? 'all' : copied(allowedResponseHeaders),
    metadata,
    sendsBody,
    sendsHost: extras.isHostSent === true || allowedRequestHeaders.some((name) => [':authority', 'host'].includes(name.toLowerCase())),
  }
  const programs = [pathProgram, redirectProgram, ...added.map(([, program]) => program), ...metadata.map(([, program]) => program)]
  return {
    check: (exchange, destination, registry) => checkByHttp(exchange, destination, httpPlan, registry),
    programs: programs.filter((program) => program !== undefined),
  }
}

function compileAll(expressions: Readonly<Record<string, string>>, phase: 'request' | 'response'): (readonly [string, Program])[] {
  return Object.entries(expressions).map(([key, expression]) => [key, compileExpression(expression, phase)] as const)
}

function copied(names: readonly string[]): string[] {
  return [...new Set(names.map((name) => name.toLowerCase()))].filter(isCopied)
}
