import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { AGENT_CARD_PATH, AgentCard, formatSSEEvent, Role, SSE_HEADERS, type Message, type Part } from '@a2a-js/sdk'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server'
import { KEEP_ALIVE_TIMEOUT_MS } from './keep-alive.ts'

interface AgentUpstreamOptions {
  readonly name: string
  readonly port?: number
}

/** An A2A agent on the official SDK: revision 1.0, JSON-RPC at `/rpc`. Repeats the text of a message. Its card has the skill `echo`. */
export async function startAgent({ name, port = 0 }: AgentUpstreamOptions) {
  const server = createServer((request, response) => {
    handle(request, response).catch((error: Error) => response.writeHead(500).end(error.message))
  })
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const bound = (server.address() as AddressInfo).port
  const card = cardOf(name, `http://localhost:${bound}/rpc`)
  const rpc = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), {
      async execute({ userMessage, contextId }, bus) {
        bus.publish(AgentEvent.message(reply(`${name}: ${userMessage.parts.map(textOf).join('')}`, contextId)))
        bus.finished()
      },
      async cancelTask() {},
    }),
  )
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url === `/${AGENT_CARD_PATH}`)
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(AgentCard.toJSON(card)))
    if (request.url !== '/rpc') return void response.writeHead(404).end()
    const result = await rpc.handle(await text(request), new ServerCallContext({ requestedVersion: String(request.headers['a2a-version'] ?? '') }))
    if (!(Symbol.asyncIterator in result)) return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result))
    response.writeHead(200, SSE_HEADERS)
    for await (const event of result) response.write(formatSSEEvent(event))
    response.end()
  }
  return {
    name,
    port: bound,
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const textOf = ({ content }: Part): string => (content?.$case === 'text' ? content.value : '')

/** A message with one text. */
export const messageOf = (value: string, role = Role.ROLE_USER): Message => ({
  messageId: randomUUID(),
  contextId: '',
  taskId: '',
  role,
  parts: [{ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

const reply = (value: string, contextId: string): Message => ({ ...messageOf(value, Role.ROLE_AGENT), contextId })

const cardOf = (name: string, url: string): AgentCard =>
  AgentCard.fromJSON({
    name,
    description: 'Repeats what it receives.',
    version: '1.0.0',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text.', tags: ['test'] }],
  })
