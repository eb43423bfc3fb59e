import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'

/** Dollars per million tokens. */
export const PRICES = { input: 3, output: 15 }

/** What the provider has sold to one client, in millionths of a dollar. */
interface Sales {
  requests: number
  tokens: number
  micros: number
  /** The most that one request cost. */
  maxMicros: number
  maxTokens: number
}

export interface Provider {
  readonly port: number
  /** By the header `x-team`. */
  readonly sales: Map<string, Sales>
  close(): Promise<void>
}

interface ChatRequest {
  readonly stream?: boolean
  readonly max_tokens?: number
  readonly user?: string
}

/**
 * A provider of the OpenAI API that keeps books of its own. `user` of a request says what it uses: `<input tokens>/<output tokens>/<milliseconds>`, and
 * `/fail` at the end for an error. An error costs nothing.
 */
export async function startProvider(host: string): Promise<Provider> {
  const sales = new Map<string, Sales>()
  const server = createServer((request, response) => {
    answer(request, response, sales).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 60_000
  server.listen({ port: 0, host, backlog: 1024 })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sales,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, sales: Map<string, Sales>): Promise<void> {
  const { stream = false, user = '' } = JSON.parse(await text(request)) as ChatRequest
  const [input = 0, output = 0, ms = 0] = user.split('/').map(Number)
  if (user.endsWith('/fail')) {
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"no","type":"server_error"}}')
    return
  }
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  const id = { id: 'chatcmpl-1', created: 1, model: 'm' }
  if (!stream) {
    await wait(ms)
    const message = { role: 'assistant', content: 'yes' }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ ...id, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
  } else {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (chunk: object): void => void response.write(`data: ${JSON.stringify({ ...id, object: 'chat.completion.chunk', ...chunk })}\n\n`)
    send({ choices: [{ index: 0, delta: { role: 'assistant', content: 'y' }, finish_reason: null }] })
    await wait(ms)
    send({ choices: [{ index: 0, delta: { content: 'es' }, finish_reason: 'stop' }] })
    send({ choices: [], usage })
    response.end('data: [DONE]\n\n')
  }
  const team = String(request.headers['x-team'])
  const books = sales.get(team) ?? { requests: 0, tokens: 0, micros: 0, maxMicros: 0, maxTokens: 0 }
  sales.set(team, books)
  const micros = input * PRICES.input + output * PRICES.output
  books.requests++
  books.tokens += input + output
  books.micros += micros
  books.maxMicros = Math.max(books.maxMicros, micros)
  books.maxTokens = Math.max(books.maxTokens, input + output)
}
