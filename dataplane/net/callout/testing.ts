import { fromBinary, toBinary, type DescMessage, type DescMethod, type DescMethodUnary, type MessageShape } from '@bufbuild/protobuf'
import {
  Server,
  ServerCredentials,
  type handleBidiStreamingCall,
  type handleUnaryCall,
  type Metadata,
  type MethodDefinition,
  type ServiceDefinition,
} from '@grpc/grpc-js'
import { defaultSettings, Destination, type DestinationConfig, type DestinationOptions, type UpstreamSettings } from '../upstream/destination.ts'
import { createPool } from '../upstream/pools.ts'

/** A destination with endpoints on 127.0.0.1, without config. */
export function destinationTo(
  ports: number | readonly number[],
  settings: Partial<UpstreamSettings> = {},
  change: Partial<DestinationConfig> = {},
  options: DestinationOptions = {},
): Destination {
  const config: DestinationConfig = {
    endpoints: [ports].flat().map((port) => ({ address: '127.0.0.1', port })),
    appProtocol: undefined,
    settings: { ...defaultSettings, ...settings },
    hostname: undefined,
    isHostRewritten: true,
    isDynamic: false,
    error: undefined,
    ...change,
  }
  return new Destination('test/service', config, createPool, { random: () => 0, ...options })
}

/** Handler of a unary method. It may throw `{ code, details }` as the status. */
export type UnaryHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  metadata: Metadata,
) => MessageShape<O> | Promise<MessageShape<O>>

export function unary<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, answer: UnaryHandler<I, O>): GrpcMethod {
  const handle: handleUnaryCall<MessageShape<I>, MessageShape<O>> = (call, callback) => {
    void (async () => answer(call.request, call.metadata))().then(
      (value) => callback(null, value),
      (error: object) => callback(error),
    )
  }
  return { method, handle: handle as never }
}

/** A bidirectional method; `handle` receives the stream of grpc-js with objects of the method's messages. */
export function bidi(method: DescMethod, handle: handleBidiStreamingCall<never, never>): GrpcMethod {
  return { method, handle: handle as never }
}

export interface GrpcMethod {
  readonly method: DescMethod
  readonly handle: handleUnaryCall<unknown, unknown>
}

export interface GrpcService {
  readonly port: number
  /** Stops the server and closes its connections. */
  close(): void
}

/** A gRPC server of grpc-js with the messages of protobuf-es. */
export async function startGrpcService(methods: readonly GrpcMethod[], port = 0, credentials = ServerCredentials.createInsecure()): Promise<GrpcService> {
  const server = new Server()
  for (const { method, handle } of methods)
    server.addService({ [method.name]: definitionOf(method) } as unknown as ServiceDefinition, { [method.name]: handle })
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, taken) => (error === null ? resolve(taken) : reject(error)))
  })
  return { port: bound, close: () => server.forceShutdown() }
}

function definitionOf({ parent, name, input, output, methodKind }: DescMethod): MethodDefinition<never, never> {
  const codec = (schema: DescMessage): object => ({
    write: (message: never) => Buffer.from(toBinary(schema, message)),
    read: (bytes: Buffer) => fromBinary(schema, bytes),
  })
  const [request, response] = [codec(input), codec(output)] as { write: never; read: never }[]
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: methodKind === 'bidi_streaming',
    responseStream: methodKind === 'bidi_streaming',
    requestSerialize: request?.write as never,
    requestDeserialize: request?.read as never,
    responseSerialize: response?.write as never,
    responseDeserialize: response?.read as never,
  }
}
