import { create, fromBinary, toBinary, type DescMessage, type DescMethod, type MessageShape } from '@bufbuild/protobuf'
import { Server, ServerCredentials, type sendUnaryData, type ServerDuplexStream, type ServerUnaryCall, type UntypedHandleCall } from '@grpc/grpc-js'
import { HeaderValueOption_HeaderAppendAction as Action } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import { StatusCode } from '#gen/proto/envoy/type/v3/http_status_pb.js'
import { Authorization, CheckResponseSchema, type CheckRequest, type CheckResponse } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import {
  ExternalProcessor,
  ProcessingResponseSchema,
  type ProcessingRequest,
  type ProcessingResponse,
} from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import {
  RateLimitQuotaResponseSchema,
  RateLimitQuotaService,
  type RateLimitQuotaResponse,
  type RateLimitQuotaUsageReports,
} from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import {
  RateLimitStrategy_BlanketRule,
  RateLimitStrategy_RequestsPerTimeUnitSchema,
  type RateLimitStrategy,
} from '#gen/proto/envoy/type/v3/ratelimit_strategy_pb.js'
import { RateLimitUnit } from '#gen/proto/envoy/type/v3/ratelimit_unit_pb.js'
import {
  RateLimitResponse_Code as Code,
  RateLimitResponseSchema,
  RateLimitService,
  type RateLimitRequest,
  type RateLimitResponse,
} from '#gen/proto/envoy/service/ratelimit/v3/rls_pb.js'

/**
 * Minimal gRPC services for policies, on one port, for examples and benchmarks. ext_authz: allows requests with `x-user` and adds `x-role`. Rate limits: two
 * hits per counter, and no limit in the domain `unlimited`. Quotas: two requests a minute for each bucket, none if a value of its id is `blocked`. ext_proc: sets `x-processed` and converts bodies to upper case.
 */
export async function startServices({
  name,
  port = 0,
}: {
  readonly name: string
  readonly port?: number
}): Promise<{ name: string; port: number; close(): Promise<void> }> {
  const server = new Server()
  const counts = new Map<string, number>()
  addMethod(server, Authorization.method.check, (call: ServerUnaryCall<CheckRequest, CheckResponse>, reply: sendUnaryData<CheckResponse>) =>
    reply(null, decide(call.request)),
  )
  addMethod(
    server,
    RateLimitService.method.shouldRateLimit,
    (call: ServerUnaryCall<RateLimitRequest, RateLimitResponse>, reply: sendUnaryData<RateLimitResponse>) => reply(null, count(call.request, counts)),
  )
  addMethod(server, ExternalProcessor.method.process, (call: ServerDuplexStream<ProcessingRequest, ProcessingResponse>) => {
    call.on('data', (request: ProcessingRequest) => call.write(processMessage(request)))
    call.on('end', () => call.end())
    call.on('error', () => undefined)
  })
  addMethod(server, RateLimitQuotaService.method.streamRateLimitQuotas, (call: ServerDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>) => {
    call.on('data', (reports: RateLimitQuotaUsageReports) => call.write(assignQuotas(reports)))
    call.on('end', () => call.end())
    call.on('error', () => undefined)
  })
  const bound = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, taken) => (error === null ? resolve(taken) : reject(error))),
  )
  return { name, port: bound, close: async () => server.forceShutdown() }
}

function decide({ attributes }: CheckRequest): CheckResponse {
  const user = attributes?.request?.http?.headers['x-user']
  if (user === undefined)
    return create(CheckResponseSchema, {
      status: { code: 7 },
      httpResponse: { case: 'deniedResponse', value: { status: { code: StatusCode.Forbidden }, body: 'who are you?\n' } },
      dynamicMetadata: { user: 'unknown' },
    })
  const role = user === 'anna' ? 'admin' : 'reader'
  return create(CheckResponseSchema, {
    status: { code: 0 },
    httpResponse: { case: 'okResponse', value: { headers: [{ header: { key: 'x-role', value: role }, appendAction: Action.OVERWRITE_IF_EXISTS_OR_ADD }] } },
    dynamicMetadata: { user, role },
  })
}

const LIMIT = 2

function count({ domain, descriptors }: RateLimitRequest, counts: Map<string, number>): RateLimitResponse {
  if (domain === 'unlimited') return create(RateLimitResponseSchema, { overallCode: Code.OK })
  const statuses = descriptors.map(({ entries, hitsAddend = 1n }) => {
    const key = entries.map((entry) => `${entry.key}=${entry.value}`).join()
    const used = (counts.get(key) ?? 0) + Number(hitsAddend)
    counts.set(key, used)
    const code = used > LIMIT ? Code.OVER_LIMIT : Code.OK
    return { code, currentLimit: { requestsPerUnit: LIMIT }, limitRemaining: Math.max(0, LIMIT - used), durationUntilReset: { seconds: 60n } }
  })
  return create(RateLimitResponseSchema, { overallCode: statuses.some(({ code }) => code === Code.OVER_LIMIT) ? Code.OVER_LIMIT : Code.OK, statuses })
}

function assignQuotas({ bucketQuotaUsages }: RateLimitQuotaUsageReports): RateLimitQuotaResponse {
  return create(RateLimitQuotaResponseSchema, {
    bucketAction: bucketQuotaUsages.map(({ bucketId }) => {
      const isBlocked = Object.values(bucketId?.bucket ?? {}).includes('blocked')
      const strategy: RateLimitStrategy['strategy'] = isBlocked
        ? { case: 'blanketRule', value: RateLimitStrategy_BlanketRule.DENY_ALL }
        : {
            case: 'requestsPerTimeUnit',
            value: create(RateLimitStrategy_RequestsPerTimeUnitSchema, { requestsPerTimeUnit: 2n, timeUnit: RateLimitUnit.MINUTE }),
          }
      const value = { assignmentTimeToLive: { seconds: 60n }, rateLimitStrategy: { strategy } }
      return { ...(bucketId && { bucketId }), bucketAction: { case: 'quotaAssignmentAction' as const, value } }
    }),
  })
}

function processMessage({ request }: ProcessingRequest): ProcessingResponse {
  const headerMutation = {
    setHeaders: [{ header: { key: 'x-processed', rawValue: Buffer.from('yes') }, appendAction: Action.OVERWRITE_IF_EXISTS_OR_ADD }],
  }
  switch (request.case) {
    case 'requestHeaders':
    case 'responseHeaders':
      return create(ProcessingResponseSchema, { response: { case: request.case, value: { response: { headerMutation } } } })
    case 'requestBody':
    case 'responseBody': {
      const { body, endOfStream } = request.value
      const streamed = { body: Buffer.from(Buffer.from(body).toString().toUpperCase()), endOfStream }
      return create(ProcessingResponseSchema, {
        response: { case: request.case, value: { response: { bodyMutation: { mutation: { case: 'streamedResponse', value: streamed } } } } },
      })
    }
    case 'requestTrailers':
    case 'responseTrailers':
      return create(ProcessingResponseSchema, { response: { case: request.case, value: {} } })
    default:
      throw new Error('an empty message')
  }
}

/** Converts a protobuf-es method descriptor to a grpc-js method definition. */
export function definitionOf({ parent, name, input, output, methodKind }: DescMethod) {
  const isStream = methodKind === 'bidi_streaming'
  const write = (schema: DescMessage) => (message: MessageShape<DescMessage>) => Buffer.from(toBinary(schema, message))
  const read = (schema: DescMessage) => (bytes: Buffer) => fromBinary(schema, bytes)
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: isStream,
    responseStream: isStream,
    requestSerialize: write(input),
    requestDeserialize: read(input),
    responseSerialize: write(output),
    responseDeserialize: read(output),
  }
}

function addMethod(server: Server, method: DescMethod, handle: unknown): void {
  server.addService({ [method.name]: definitionOf(method) }, { [method.name]: handle as UntypedHandleCall })
}
