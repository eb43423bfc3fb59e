import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { sleep } from '../../../harness/llm/behaviour.ts'
import { startMockServer, type MockRequest, type MockServer } from '../../../harness/llm/server.ts'
import { anthropic, vertexClaude } from './anthropic.ts'
import { Violation, type Api, type Asked, type Vendor } from './api.ts'
import { bedrock } from './bedrock.ts'
import { gemini, vertexGemini } from './google.ts'
import { compatible, openai } from './openai.ts'
import { reply, type Json } from './script.ts'

/** Strict mocks of all vendors: each rejects what the vendor rejects, with the vendor's status and shape. */

export const vendors = [openai, anthropic, gemini, vertexClaude, vertexGemini, bedrock, compatible] as const
/** An endless stream ends after this many events, so that nothing runs on. */
const MAX_EVENTS = 1500

export interface Providers {
  /** The port of each vendor, in the order of `vendors`. */
  readonly ports: readonly number[]
  /** The URL of the server that tells which streams clients have left: `GET /<tag>`. */
  readonly control: string
  /** Messages of violations since the last call. */
  takeViolations(): string[]
  close(): Promise<void>
}

type Check = (kind: string, body: Json) => Promise<string[]>

export async function startProviders(python: string): Promise<Providers> {
  const schemas = await startSchemas(python)
  const violations: string[] = []
  const streams = new Map<string, PromiseWithResolvers<void>>()
  const streamOf = (tag: string): PromiseWithResolvers<void> => {
    const known = streams.get(tag) ?? Promise.withResolvers<void>()
    streams.set(tag, known)
    return known
  }
  const onLeft = (tag: string): void => streamOf(tag).resolve()
  const servers: MockServer[] = []
  for (const vendor of vendors) servers.push(await startMockServer({ answer: answerAs(vendor, schemas.check, violations, onLeft) }))
  const control = await startMockServer({
    async answer({ path }, response) {
      const isGone = await Promise.race([streamOf(path.slice(1)).promise.then(() => true), sleep(20_000).then(() => false)])
      response.end(JSON.stringify({ isGone }))
    },
  })
  return {
    ports: servers.map(({ port }) => port),
    control: control.url,
    takeViolations: () => violations.splice(0),
    async close() {
      await Promise.all([...servers, control].map((server) => server.close()))
      schemas.close()
    },
  }
}

function answerAs(vendor: Vendor, check: Check, violations: string[], onLeft: (tag: string) => void) {
  return async (request: MockRequest, response: ServerResponse): Promise<void> => {
    const fail = (status: number, message: string): void => {
      const { body, headers } = vendor.error(status, message)
      response.writeHead(status, { 'content-type': 'application/json', ...(status === 429 && { 'retry-after': '7' }), ...headers })
      response.end(JSON.stringify(body))
    }
    try {
      const { asked, api } = find(vendor, request)
      vendor.authenticate(request)
      const schema = api.schema?.(asked)
      const faults = schema === undefined ? [] : await check(schema.kind, schema.body)
      if (faults.length > 0) throw new Violation(faults.join('; '))
      api.check(asked)
      await answer(api, asked, response, fail, onLeft)
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      const isLimit = error.message.startsWith('limit: ')
      if (!isLimit) violations.push(`${vendor.name}: ${error.message}`)
      fail(error.status, isLimit ? error.message.slice('limit: '.length) : `violation: ${error.message}`)
    }
  }
}

function find(vendor: Vendor, request: MockRequest): { readonly asked: Asked; readonly api: Api } {
  const { pathname, searchParams } = new URL(request.path, 'http://vendor')
  const path = decodeURIComponent(pathname)
  // `alt=sse` is how streams of generateContent are asked for.
  if (path.endsWith(':streamGenerateContent')) searchParams.delete('alt')
  const api = request.method === 'POST' ? vendor.apis.find((one) => one.path.test(path)) : undefined
  if (api === undefined) throw new Violation(`limit: ${vendor.name} has no API at ${request.method} ${path}`, 404)
  if (request.body === undefined) throw new Violation('the body is no JSON')
  return { asked: { request, path, query: searchParams, body: request.body }, api }
}

async function answer(
  api: Api,
  asked: Asked,
  response: ServerResponse,
  fail: (status: number, message: string) => void,
  onLeft: (tag: string) => void,
): Promise<void> {
  const view = api.read(asked)
  const said = reply(view)
  if (said.status !== undefined) return fail(said.status, said.status === 429 ? 'Too many requests, slow down.' : 'The prompt is too long.')
  if (said.endless !== undefined) return streamForever(api, asked, response, said.endless, onLeft)
  if (!view.isStreaming) {
    response.writeHead(200, { 'content-type': 'application/json' })
    return void response.end(JSON.stringify(api.write(said, asked)))
  }
  await stream(api.events(said, asked), response, api.contentType)
}

async function stream(events: readonly Buffer[], response: ServerResponse, contentType: string): Promise<void> {
  response.writeHead(200, { 'content-type': contentType })
  for (const event of events) {
    if (!response.write(event)) await once(response, 'drain')
    // Events reach the client one by one.
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

async function streamForever(api: Api, asked: Asked, response: ServerResponse, tag: string, onLeft: (tag: string) => void): Promise<void> {
  const { first, next } = api.endless(asked)
  let isOpen = true
  void asked.request.closed.then(() => {
    isOpen = false
    onLeft(tag)
  })
  response.writeHead(200, { 'content-type': api.contentType })
  for (const event of first) response.write(event)
  for (let at = 0; isOpen && at < MAX_EVENTS; at++) {
    response.write(next)
    await sleep(20)
  }
  response.end()
}

async function startSchemas(python: string): Promise<{ readonly check: Check; close(): void }> {
  const child = spawn(python, [fileURLToPath(new URL('schemas.py', import.meta.url))], { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map<number, (faults: string[]) => void>()
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  lines.on('line', (line) => {
    const { id, faults } = JSON.parse(line) as { readonly id: number; readonly faults: string[] }
    waiting.get(id)?.(faults)
    waiting.delete(id)
  })
  let next = 0
  return {
    check: (kind, body) =>
      new Promise((resolve) => {
        waiting.set(++next, resolve)
        child.stdin.write(`${JSON.stringify({ id: next, kind, body })}\n`)
      }),
    close: () => void child.kill(),
  }
}
