import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Server, ServerCredentials, status, type sendUnaryData, type ServerUnaryCall, type ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { ReflectionService } from '@grpc/reflection'

const ROOT = join(import.meta.dirname, '../../..')
const PROTO = join(import.meta.dirname, 'shop.proto')
const definition = loadSync(PROTO, { longs: String, enums: String, defaults: true })
const carts = definition['shop.v1.Carts'] as ServiceDefinition

interface ShopOptions {
  readonly name: string
  readonly port?: number
  /** Default: true. */
  readonly hasReflection?: boolean
}

/** The descriptor set of the shop, written by buf as `protoc --include_imports --include_source_info --descriptor_set_out` does. */
export function shopDescriptors(): Buffer {
  return execFileSync(join(ROOT, 'node_modules/.bin/buf'), ['build', PROTO, '--as-file-descriptor-set', '-o', '-'])
}

/** A gRPC server on grpc-js with the service of shop.proto, and reflection. Carts are in memory; a cart that does not exist is NOT_FOUND. */
export async function startShop({ name, port = 0, hasReflection = true }: ShopOptions) {
  const items = new Map<string, object[]>([['1', []]])
  const metadata: Record<string, unknown>[] = []
  const respond = (id: string, callback: sendUnaryData<object>): void => {
    const known = items.get(id)
    if (known === undefined) callback({ code: status.NOT_FOUND, details: `no cart ${id}` })
    else callback(null, { id, items: known, changed: { seconds: '1700000000', nanos: 0 } })
  }
  const server = new Server()
  server.addService(carts, {
    getCart(call: ServerUnaryCall<{ id: string }, object>, callback: sendUnaryData<object>) {
      metadata.push(call.metadata.getMap())
      respond(call.request.id, callback)
    },
    addItem({ request: { id, item } }: ServerUnaryCall<{ id: string; item: object }, object>, callback: sendUnaryData<object>) {
      items.get(id)?.push(item)
      respond(id, callback)
    },
  })
  if (hasReflection) new ReflectionService(definition).addToServer(server)
  const bound = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, at) => (error ? reject(error) : resolve(at))),
  )
  return {
    name,
    port: bound,
    /** Metadata of the calls of GetCart. */
    metadata,
    close: async () => server.forceShutdown(),
  }
}
