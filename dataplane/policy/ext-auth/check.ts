import type { MessageInitShape } from '@bufbuild/protobuf'
import { evalHost, toHost, type Program } from '#api/cel/index.ts'
import type { AddressSchema } from '#gen/proto/envoy/config/core/v3/address_pb.js'
import type { CheckRequestSchema } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import { bufferedRequest } from '../../request/expression/buffer.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { toEpochMs } from '../../runtime/time.ts'
import { randomId, traceparentOf } from '../../observe/telemetry/trace.ts'
import { decodeFieldValue } from '../mutations.ts'
import { variables } from '../../request/exchange/variables.ts'

/** The parts of a check request that the policy configures (gRPC). */
export interface CheckPlan {
  readonly contextExtensions: Readonly<Record<string, string>>
  /** Metadata to send; undefined sends the claims of a verified token. */
  readonly metadata: readonly (readonly [key: string, program: Program])[] | undefined
  /** Names of the headers to send, in lower case; undefined sends all. */
  readonly headers: ReadonlySet<string> | undefined
  readonly sendsBody: boolean
}

/** The check request for a request (traffic.md §8.7, gRPC). */
export function toCheckRequest(exchange: Exchange, plan: CheckPlan): MessageInitShape<typeof CheckRequestSchema> {
  const { request, connection } = exchange
  const buffered = plan.sendsBody ? bufferedRequest(exchange) : undefined
  const body = plan.sendsBody ? (buffered?.prefix ?? Buffer.alloc(0)) : undefined
  const { tls } = connection
  const filterMetadata = plan.metadata === undefined ? claimsOf(exchange) : computeMetadata(exchange, plan.metadata)
  return {
    attributes: {
      source: {
        address: addressOf(connection.remoteAddress, connection.remotePort),
        principal: tls?.clientCertificate?.subjectAltNames.find((name) => name.startsWith('spiffe://')) ?? '',
      },
      destination: { address: addressOf(connection.localAddress, connection.localPort) },
      request: {
        time: timestampOf(exchange),
        http: {
          id: traceparentOf(exchange)?.slice(3, 35) ?? randomId(16),
          method: request.method,
          path: request.target,
          host: request.authority,
          scheme: request.scheme,
          protocol: request.version,
          headers: headersOf(exchange, plan.headers, buffered?.coded !== undefined),
          size: BigInt(body?.length ?? 0),
          body: body?.toString() ?? '',
        },
      },
      contextExtensions: { ...plan.contextExtensions },
      metadataContext: { filterMetadata },
      ...(tls === undefined ? {} : { tlsSession: { sni: tls.sni ?? '' } }),
    },
  }
}

function timestampOf({ startedAtMs }: Exchange): { seconds: bigint; nanos: number } {
  const ms = Math.floor(toEpochMs(startedAtMs))
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 }
}

function addressOf(address: string, port: number): MessageInitShape<typeof AddressSchema> {
  return { address: { case: 'socketAddress', value: { address, portSpecifier: { case: 'portValue', value: port } } } }
}

/** Headers by name with pseudo headers. Lines with the same name are joined. `isDecoded`: without those of the coded body. */
function headersOf({ request }: Exchange, allowed: ReadonlySet<string> | undefined, isDecoded: boolean): Record<string, string> {
  const headers = Object.create(null) as Record<string, string>
  for (const [name, value] of request.headers) {
    if (allowed !== undefined && !allowed.has(name)) continue
    if (isDecoded && (name === 'content-encoding' || name === 'content-length')) continue
    const text = decodeFieldValue(value)
    const before = headers[name]
    headers[name] = before === undefined ? text : before + (name === 'cookie' ? '; ' : ', ') + text
  }
  headers[':method'] = request.method
  headers[':scheme'] = request.scheme
  headers[':authority'] = request.authority
  headers[':path'] = request.target
  return headers
}

type Metadata = Record<string, ReturnType<typeof toStruct> & object>

function claimsOf(exchange: Exchange): Metadata {
  const claims = variables.jwt.get(exchange)
  if (typeof claims !== 'object' || claims === null) return {}
  // The token itself is not sent.
  const { rawToken: _, ...rest } = claims as Readonly<Record<string, unknown>>
  const payload = toStruct(toHost(rest))
  return payload === undefined ? {} : { 'envoy.filters.http.jwt_authn': { jwt_payload: payload } }
}

function computeMetadata(exchange: Exchange, programs: NonNullable<CheckPlan['metadata']>): Metadata {
  const view = new ExchangeView(exchange)
  const metadata: Metadata = {}
  for (const [key, program] of programs) {
    const struct = toStruct(evalHost(program, view))
    if (struct !== undefined) metadata[key] = struct
  }
  return metadata
}

/** A value as a Struct, without members that a Struct cannot hold; undefined if it is not a map. */
function toStruct(value: unknown): { [key: string]: JsonMember } | undefined {
  const json = JSON.stringify(value) as string | undefined
  return json?.startsWith('{') === true ? (JSON.parse(json) as { [key: string]: JsonMember }) : undefined
}

type JsonMember = string | number | boolean | null | JsonMember[] | { [key: string]: JsonMember }
