import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport, type EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  type CallToolResult,
  type JSONRPCMessage,
} from '@modelcontextprotocol/sdk/types.js'
import { localhostAllowedHostnames, validateHostHeader } from '@modelcontextprotocol/server'
import { KEEP_ALIVE_TIMEOUT_MS } from '../../harness/upstream/keep-alive.ts'
import { enumSchema, defaultsSchema, prompts, resources, results, toolNames, type PromptName } from './fixture-data.ts'

/** The server that the conformance suite needs: tools, prompts and resources with fixed names. */
export interface Fixture {
  readonly port: number
  close(): Promise<void>
}

/** Stores the events of streams, so that clients can resume them. */
class MemoryEvents implements EventStore {
  readonly #events: { readonly id: string; readonly stream: string; readonly message: JSONRPCMessage }[] = []

  storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${stream}_${this.#events.length}`
    this.#events.push({ id, stream, message })
    return Promise.resolve(id)
  }

  async replayEventsAfter(last: string, { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> }): Promise<string> {
    const at = this.#events.findIndex(({ id }) => id === last)
    const stream = this.#events[at]?.stream ?? ''
    for (const { id, message, stream: of } of this.#events.slice(at + 1)) if (of === stream && Object.keys(message).length > 0) await send(id, message)
    return stream
  }
}

/** Starts the fixture. With `own`, it has only a few of the fixed names, prefixed with `own`, so that several fixtures can be combined. */
export async function startFixture(port = 0, own = ''): Promise<Fixture> {
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // As the SDK's own server for the suite.
    const host = validateHostHeader(request.headers.host, localhostAllowedHostnames())
    if (!host.ok) return void response.writeHead(403).end(host.message)
    const id = String(request.headers['mcp-session-id'] ?? '')
    let transport = transports.get(id)
    if (transport === undefined && id !== '') return void response.writeHead(404).end()
    if (transport === undefined) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        eventStore: new MemoryEvents(),
        retryInterval: 500,
        onsessioninitialized: (sessionId: string) => void transports.set(sessionId, made),
        onsessionclosed: (sessionId: string) => void transports.delete(sessionId),
      })
      transport = made
      await createFixtureServer(own).connect(made)
    }
    await transport.handleRequest(request, response)
  }
  const server = createServer((request, response) => void handle(request, response))
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const textOf = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })

function createFixtureServer(own: string): Server {
  const capabilities = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true }, logging: {}, completions: {} }
  const server = new Server({ name: 'conformance-fixture', version: '1.0.0' }, { capabilities })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: toolNames.map((name) => ({
      name: own + name,
      description: `Tool ${name}`,
      inputSchema: { type: 'object' as const, ...results.schemas[name] },
    })),
  }))
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, { args }]) => ({
      name: own + name,
      description: `Prompt ${name}`,
      arguments: args.map((arg) => ({ name: arg, description: arg, required: true })),
    })),
  }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const prompt = prompts[params.name as PromptName]
    if (prompt === undefined) throw new Error(`no prompt ${params.name}`)
    return { messages: prompt.messages(params.arguments ?? {}) }
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: resources.map(({ uri, mimeType }) => ({ uri, name: uri, description: uri, mimeType })),
  }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', description: 'by id' }],
  }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
    if (id !== undefined)
      return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }
    const found = resources.find((resource) => resource.uri === uri)
    if (found === undefined) throw new Error(`no resource ${uri}`)
    return { contents: [found] }
  })
  server.setRequestHandler(SubscribeRequestSchema, () => ({}))
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: ['paris', 'park', 'party'], total: 150, hasMore: false } }))
  addCalls(server)
  return server
}

function addCalls(server: Server): void {
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra): Promise<CallToolResult> => {
    const fixed = results.tools[params.name]
    if (fixed !== undefined) return fixed
    const related = { relatedRequestId: extra.requestId }
    const text = (name: string): string => {
      const value = params.arguments?.[name]
      return typeof value === 'string' ? value : ''
    }
    switch (params.name) {
      case 'test_logging_tool':
      case 'test_tool_with_logging':
        for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
          await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } })
          await sleep(50)
        }
        return textOf('logged')
      case 'test_tool_with_progress': {
        const progressToken = params['_meta']?.progressToken
        for (const progress of [0, 50, 100]) {
          if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
          await sleep(50)
        }
        return textOf('progressed')
      }
      // The names of the suite for requests for input of revision 2026-07-28.
      case 'test_missing_capability':
      case 'test_input_required_result_sampling':
      case 'test_sampling': {
        const sampled = await server.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: text('prompt') } }], maxTokens: 100 }, related)
        return textOf(`LLM response: ${JSON.stringify(sampled.content)}`)
      }
      case 'test_input_required_result_list_roots':
        return textOf(JSON.stringify(await server.listRoots({}, related)))
      case 'test_trigger_tool_change':
        await server.sendToolListChanged()
        return textOf('changed')
      case 'test_trigger_prompt_change':
        await server.sendPromptListChanged()
        return textOf('changed')
      case 'test_elicitation': {
        const properties = {
          username: { type: 'string' as const, description: "User's response" },
          email: { type: 'string' as const, description: "User's email address" },
        }
        const elicited = await server.elicitInput(
          { message: text('message'), requestedSchema: { type: 'object', properties, required: ['username', 'email'] } },
          related,
        )
        return textOf(`User response: action: ${elicited.action}, content: ${JSON.stringify(elicited.content)}`)
      }
      case 'test_elicitation_sep1034_defaults':
      case 'test_elicitation_sep1330_enums': {
        const requestedSchema = params.name.includes('1034') ? defaultsSchema : enumSchema
        const elicited = await server.elicitInput({ message: 'Please choose', requestedSchema } as Parameters<Server['elicitInput']>[0], related)
        return textOf(`Elicitation completed: action=${elicited.action}, content=${JSON.stringify(elicited.content)}`)
      }
      case 'test_reconnection':
        // The stream ends during the call: the client reconnects and resumes. Clients of older revisions, to which the SDK sends no event id, get an
        // empty stream, as from the Go SDK.
        if (server.transport instanceof StreamableHTTPServerTransport) server.transport.closeSSEStream(extra.requestId)
        await sleep(300)
        return textOf('reconnected')
      default:
        throw new Error(`no tool ${params.name}`)
    }
  })
}
