import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import { respondCount, respondMessages, sendAnthropicError } from './anthropic.ts'
import { respondConverse, respondInvoke, respondInvokeCount } from './bedrock.ts'
import { readBehaviour, sleep, type Behaviour } from './behaviour.ts'
import { respondCountTokens, respondEmbedContents, respondGenerate, respondPredict } from './google.ts'
import { respondCompletions, respondEmbeddings, respondModels, respondResponses, sendJson } from './openai.ts'
import { respondScreening } from './screening.ts'
import { startMockServer, type MockRequest, type MockServer } from './server.ts'

export interface MockProviderOptions {
  readonly name?: string
  readonly port?: number
  /** Behaviour for requests without `x-mock`. */
  readonly defaults?: Partial<Behaviour>
  readonly onRequest?: (request: MockRequest) => void
}

/** The running mock of all vendors. */
export interface MockProvider extends MockServer {
  /** Replaces `defaults` for later requests. */
  behave(defaults: Partial<Behaviour>): void
}

/**
 * The public APIs of all vendors on one port, distinguished by path: OpenAI (chat, responses, embeddings, models, realtime), Azure OpenAI, Anthropic,
 * Gemini, Vertex AI and Bedrock, and their moderation services. Echoes the last message, calls the first tool, counts words as tokens.
 */
export async function startMockProvider({ name = 'mock', port = 0, defaults = {}, onRequest }: MockProviderOptions = {}): Promise<MockProvider> {
  let behaviour = defaults
  const realtime = new WebSocketServer({ noServer: true, handleProtocols: (protocols) => [...protocols][0] ?? false })
  realtime.on('connection', (socket) => {
    socket.send(JSON.stringify({ type: 'session.created', event_id: 'event_mock', session: { id: 'sess_mock', type: 'realtime', model: 'gpt-realtime' } }))
    socket.on('message', (data: Buffer) => {
      const event = JSON.parse(data.toString()) as Readonly<Record<string, unknown>>
      if (event['type'] === 'session.update') socket.send(JSON.stringify({ type: 'session.updated', event_id: 'event_2', session: event['session'] }))
      if (event['type'] === 'response.create')
        socket.send(JSON.stringify({ type: 'response.done', event_id: 'event_3', response: { id: 'resp_mock', status: 'completed' } }))
    })
  })
  const server = await startMockServer({
    port,
    answer(request, response) {
      onRequest?.(request)
      return answer(request, response, readBehaviour(request, name, behaviour))
    },
    onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) =>
      realtime.handleUpgrade(request, socket, head, (client) => realtime.emit('connection', client, request)),
  })
  return { ...server, behave: (next) => void (behaviour = next) }
}

async function answer(request: MockRequest, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  await sleep(behaviour.delay)
  const [path = ''] = request.path.split('?')
  if (behaviour.status !== undefined && path.endsWith(behaviour.of ?? '')) return respondError(path, response, behaviour.status, behaviour)
  if (request.method === 'GET' && path.endsWith('/models')) return respondModels(response, behaviour)
  const { body } = request
  if (body === undefined)
    return sendJson(response, { received: request.raw.toString('base64'), usage: { input_tokens: 3, output_tokens: 4 }, model: 'raw-mock' }, behaviour)
  return answerPost(path, body, response, behaviour)
}

async function answerPost(path: string, body: Readonly<Record<string, unknown>>, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  if (path.endsWith('/chat/completions')) return respondCompletions(body, response, behaviour)
  if (path.endsWith('/responses')) return respondResponses(body, response, behaviour)
  if (path.endsWith('/embeddings')) return respondEmbeddings(body, response, behaviour)
  if (path.endsWith('/count_tokens') || path.endsWith('/count-tokens:rawPredict')) return respondCount(body, response, behaviour)
  if (path.endsWith('/messages') || path.endsWith(':rawPredict')) return respondMessages(body, response, behaviour)
  if (path.endsWith(':streamRawPredict')) return respondMessages(body, response, behaviour, true)
  const model = decodeURIComponent(/\/models?\/([^/:]+(?::[^/:]+)?)(?=[/:])/.exec(path)?.[1] ?? '')
  if (path.endsWith('/converse')) return respondConverse(body, response, behaviour, false)
  if (path.endsWith('/converse-stream')) return respondConverse(body, response, behaviour, true)
  if (path.endsWith('/count-tokens')) return respondInvokeCount(body, response, behaviour)
  if (path.endsWith('/invoke')) return respondInvoke(path, body, response, behaviour)
  if (path.endsWith(':generateContent')) return respondGenerate(model, body, response, behaviour, false)
  if (path.endsWith(':streamGenerateContent')) return respondGenerate(model, body, response, behaviour, true)
  if (path.endsWith(':countTokens')) return respondCountTokens(body, response, behaviour)
  if (path.endsWith(':batchEmbedContents')) return respondEmbedContents(body, response, behaviour)
  if (path.endsWith(':predict')) return respondPredict(body, response, behaviour)
  const screened = respondScreening(path, body, response)
  if (screened !== false) return screened
  return sendJson(response, { received: body, usage: { prompt_tokens: 3, completion_tokens: 4 }, model: 'raw-mock' }, behaviour)
}

/** Sends an error in the format of the vendor that the path belongs to. */
async function respondError(path: string, response: ServerResponse, status: number, { html, retryAfter }: Behaviour): Promise<void> {
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
  if (html) {
    response.writeHead(status, { 'content-type': 'text/html' })
    return void response.end('<html><body>Bad Gateway</body></html>')
  }
  if (path.endsWith('/messages') || path.includes('RawPredict') || path.includes('rawPredict')) return sendAnthropicError(response, status, 'mock failure')
  if (path.startsWith('/model/')) response.setHeader('x-amzn-errortype', status === 429 ? 'ThrottlingException' : 'InternalServerException')
  if (path.startsWith('/model/')) return sendJson(response, { message: 'mock failure' }, {}, status)
  if (path.includes('generateContent') || path.includes('/v1beta/') || path.includes(':predict'))
    return sendJson(response, [{ error: { code: status, message: 'mock failure', status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE' } }], {}, status)
  return sendJson(response, { error: { message: 'mock failure', type: status === 429 ? 'tokens' : 'server_error', param: null, code: null } }, {}, status)
}
