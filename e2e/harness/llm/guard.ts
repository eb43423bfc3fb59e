import { startMockServer } from './server.ts'

type Json = Readonly<Record<string, unknown>>
const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : [])

/**
 * A minimal guard webhook (llm.md §13.3): rejects prompts that contain `dragon`, masks the name `Smaug` in responses, and passes everything else.
 */
export async function startGuardService({ name, port = 0 }: { readonly name: string; readonly port?: number }): Promise<{
  readonly name: string
  readonly port: number
  close(): Promise<void>
}> {
  const server = await startMockServer({
    port,
    answer({ path, body }, response) {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ action: path === '/request' ? judgePrompt(body?.['body'] as Json) : judgeAnswer(body?.['body'] as Json) }))
    },
  })
  return { name, port: server.port, close: () => server.close() }
}

function judgePrompt(body: Json): Json {
  const isForbidden = list(body['messages']).some(({ content }) => String(content).includes('dragon'))
  return isForbidden ? { body: 'we do not talk about dragons', status_code: 451 } : { reason: 'fine' }
}

function judgeAnswer(body: Json): Json {
  const messages = list(body['choices']).map((choice) => choice['message'] as Json)
  if (!messages.some(({ content }) => String(content).includes('Smaug'))) return { reason: 'fine' }
  return { body: { choices: messages.map((message) => ({ message: { ...message, content: String(message['content']).replaceAll('Smaug', '[somebody]') } })) } }
}
