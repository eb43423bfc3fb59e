import * as grpc from '@grpc/grpc-js'

/** Result of a call. */
interface GrpcReply {
  readonly message: string
  readonly server: string
  readonly trailers: grpc.Metadata
}

/** A grpc-js client of the echo upstream; messages are plain text. Rejections are grpc-js ServiceErrors. */
export interface GrpcClient {
  unary(message: string, metadata?: Record<string, string>): Promise<GrpcReply>
  repeat(message: string, count: number): Promise<{ messages: string[]; trailers: grpc.Metadata | undefined }>
  /** Sends one message at a time and waits for the reply before the next one. */
  chat(messages: readonly string[]): Promise<string[]>
  close(): void
}

const serialize = (text: string) => Buffer.from(text)
const deserialize = (bytes: Buffer) => bytes.toString()

/** Creates a client for an address `host:port`. */
export function makeGrpcClient(
  address: string,
  options: { credentials?: grpc.ChannelCredentials; service?: string; authority?: string; timeoutMs?: number } = {},
): GrpcClient {
  const service = options.service ?? 'echo.Echo'
  const channel = options.authority === undefined ? {} : { 'grpc.default_authority': options.authority }
  const client = new grpc.Client(address, options.credentials ?? grpc.credentials.createInsecure(), channel)
  const callOptions = () => ({ deadline: Date.now() + (options.timeoutMs ?? 60_000) })
  return {
    unary(message, metadata = {}) {
      return new Promise((resolve, reject) => {
        let server = ''
        let reply: string | undefined
        let trailers = new grpc.Metadata()
        const call = client.makeUnaryRequest(`/${service}/Unary`, serialize, deserialize, message, toMetadata(metadata), callOptions(), (error, value) => {
          if (error !== null) return reject(error)
          reply = value
        })
        call.on('metadata', (head) => (server = String(head.get('x-server')[0] ?? '')))
        call.on('status', (status) => {
          trailers = status.metadata
          if (reply !== undefined) resolve({ message: reply, server, trailers })
        })
      })
    },
    async repeat(message, count) {
      const call = client.makeServerStreamRequest(
        `/${service}/Repeat`,
        serialize,
        deserialize,
        message,
        toMetadata({ 'x-count': String(count) }),
        callOptions(),
      )
      let trailers: grpc.Metadata | undefined
      call.on('status', (status) => (trailers = status.metadata))
      const messages: string[] = []
      for await (const reply of call) messages.push(String(reply))
      return { messages, trailers }
    },
    async chat(messages) {
      const call = client.makeBidiStreamRequest(`/${service}/Chat`, serialize, deserialize, new grpc.Metadata(), callOptions())
      const replies: string[] = []
      const incoming = call[Symbol.asyncIterator]()
      for (const message of messages) {
        call.write(message)
        replies.push(String((await incoming.next()).value))
      }
      call.end()
      while (!(await incoming.next()).done);
      return replies
    },
    close: () => client.close(),
  }
}

function toMetadata(values: Record<string, string>): grpc.Metadata {
  const metadata = new grpc.Metadata()
  for (const [name, value] of Object.entries(values)) metadata.set(name, value)
  return metadata
}
