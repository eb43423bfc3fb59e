import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, createServer, request as sendRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { bytesOf } from './numbered-bodies.ts'

const STREAMS = 40
const EVENTS = 800

const print = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
const chunkOf = (content: string, finish: string | null = null) => ({
  id: 'a',
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, delta: { content }, finish_reason: finish }],
})

/** The events of a stream: short ones, and one in 50 that exceeds joined writes. */
function eventsOf(seed: number): string[] {
  const contents = Array.from({ length: EVENTS }, (_, nth) => bytesOf(seed, nth * 97, nth % 50 === 7 ? 5000 + nth : 1 + (nth % 60)).toString())
  const usage = { ...chunkOf(''), choices: [], usage: { prompt_tokens: 1, completion_tokens: EVENTS, total_tokens: EVENTS + 1 } }
  return [...contents.map((content) => print(chunkOf(content))), print(chunkOf('', 'stop')), print(usage), 'data: [DONE]\n\n']
}

const completionOf = (seed: number): string =>
  JSON.stringify({
    id: 'a',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: bytesOf(seed, 0, 300_000 + seed).toString() }, finish_reason: 'stop' }],
  })

interface Chat {
  readonly stream: boolean
  readonly user: string
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  const { stream, user } = JSON.parse(Buffer.concat(parts).toString()) as Chat
  if (!stream) {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(completionOf(Number(user)))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const events = eventsOf(Number(user))
  for (let nth = 0; nth < events.length;) {
    // One event, several at once, or a part of one.
    const count = 1 + (nth % 4)
    const text = events.slice(nth, nth + count).join('')
    nth += count
    const cut = nth % 5 === 0 ? Math.floor(text.length / 2) : text.length
    response.write(text.slice(0, cut))
    await new Promise((resolve) => setImmediate(resolve))
    if (cut < text.length) response.write(text.slice(cut))
    if (response.writableNeedDrain) await Promise.race([once(response, 'drain'), once(response.socket ?? response, 'close')])
  }
  response.end()
}

let directory: string
let port = 0
let dataplane: Dataplane
const agent = new Agent({ keepAlive: true })
const upstream = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'llm-integrity-'))
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  port = await findFreePort()
  const provider = { providerA: {}, host: '127.0.0.1', port: (upstream.address() as AddressInfo).port }
  const backends = [{ ai: { provider }, policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Completions' } } } }]
  const file = join(directory, 'config.json')
  await writeFile(file, JSON.stringify({ binds: [{ port, listeners: [{ name: 'llm', routes: [{ name: 'chat', backends }] }] }] }))
  dataplane = await startDataplane({ config: { file }, log: 'warn' })
})
afterAll(async () => {
  agent.destroy()
  await dataplane?.stop()
  upstream.closeAllConnections()
  upstream.close()
  await rm(directory, { recursive: true })
})

async function chat(seed: number, stream: boolean): Promise<string> {
  const body = JSON.stringify({ model: 'm', stream, user: String(seed), messages: [{ role: 'user', content: 'count' }] })
  const request = sendRequest({ port, path: '/v1/chat/completions', method: 'POST', agent, headers: { 'content-type': 'application/json' } })
  const [response] = (await once(request.end(body), 'response')) as [IncomingMessage]
  let text = ''
  for await (const part of response as AsyncIterable<Buffer>) text += part.toString('latin1')
  return text
}

test('the bytes of 40 streamed and 40 other chat completions at once are unchanged', async () => {
  const seeds = Array.from({ length: STREAMS }, (_, nth) => nth + 1)
  const streamed = Promise.all(seeds.map((seed) => chat(seed, true)))
  const whole = Promise.all(seeds.map((seed) => chat(seed, false)))
  for (const [nth, text] of (await streamed).entries()) expect(text === eventsOf(nth + 1).join('') ? 'right' : `wrong: ${text.slice(0, 200)}`).toBe('right')
  expect((await whole).map((text, nth) => text === completionOf(nth + 1))).toEqual(seeds.map(() => true))
})
