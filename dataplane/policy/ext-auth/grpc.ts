import { Authorization, type CheckResponse, type DeniedHttpResponse, type OkHttpResponse } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import { callUnary, GrpcError } from '../../net/callout/grpc.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { beginCall } from '../../observe/telemetry/metrics/call.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import { changeRequest, setFields } from '../mutations.ts'
import { toCheckRequest, type CheckPlan } from './check.ts'
import { keepMetadata, type Answer, type Decision } from './decision.ts'
import { changeQuery } from './query.ts'

const { check } = Authorization.method

/** Checks a request by `envoy.service.auth.v3` (traffic.md §8.7) and applies the changes of an OK response. Rejects if the call fails. */
export async function checkByGrpc(exchange: Exchange, destination: Destination, plan: CheckPlan, registry: Registry): Promise<Decision> {
  const call = beginCall(registry, exchange, 'Policy', 'ExtAuthz', { host: destination.name, path: `/${check.parent.typeName}/${check.name}` })
  try {
    const metadata = call.traceparent === undefined ? undefined : new HeaderList(['traceparent', call.traceparent])
    const response = await callUnary(destination, check, toCheckRequest(exchange, plan), { exchange, metadata })
    call.end({ status: 200 })
    return decide(exchange, response)
  } catch (error) {
    call.end({ error: error as Error })
    // Some services deny by the status of the call.
    if (error instanceof GrpcError && (error.status === 7 || error.status === 16)) throw new ProxyError('EXT_AUTH', { cause: error })
    throw error
  }
}

function decide(exchange: Exchange, { status, httpResponse, dynamicMetadata }: CheckResponse): Decision {
  keepMetadata(exchange, dynamicMetadata)
  // A response without status allows: 0 is the default of proto3.
  const isAllowed = (status?.code ?? 0) === 0
  if (httpResponse.case === 'okResponse' && isAllowed) return allow(exchange, httpResponse.value)
  if (status?.code === 0 || (isAllowed && httpResponse.case !== 'deniedResponse')) return {}
  if (httpResponse.case !== 'deniedResponse') throw new ProxyError('EXT_AUTH')
  return { answer: toAnswer(httpResponse.value) }
}

function allow(exchange: Exchange, ok: OkHttpResponse): Decision {
  changeRequest(exchange, { setHeaders: ok.headers, removeHeaders: ok.headersToRemove })
  changeQuery(exchange.request, ok.queryParametersToSet, ok.queryParametersToRemove)
  return ok.responseHeadersToAdd.length === 0 ? {} : { onResponse: (headers) => setFields(headers, ok.responseHeadersToAdd, () => undefined) }
}

function toAnswer({ status, headers: options, body }: DeniedHttpResponse): Answer {
  const headers = new HeaderList()
  setFields(headers, options, () => undefined)
  return { status: status?.code ?? 403, headers, body: Buffer.from(body) }
}
