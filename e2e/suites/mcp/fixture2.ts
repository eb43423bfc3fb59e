import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  hostHeaderValidationResponse,
  inputRequired,
  localhostAllowedHostnames,
  McpServer,
  ResourceTemplate,
  type InputRequests,
  type McpHttpHandler,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Fixture } from './fixture.ts'
import { defaultsSchema, enumSchema, prompts, resources, results, toolNames } from './fixture-data.ts'
import { serveFetch } from './matrix-servers.ts'

type Form = Parameters<typeof inputRequired.elicit>[0]['requestedSchema']
type State = { readonly round: number }
type Result = ReturnType<typeof textOf> | ReturnType<typeof inputRequired>

const textOf = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const schemaOf = (schema: object = {}) => fromJsonSchema<Readonly<Record<string, unknown>>>({ type: 'object', ...schema })
const stringOf = (name: string) => ({ type: 'object' as const, properties: { [name]: { type: 'string' as const } }, required: [name] })

/** Requests for input, by the keys that the suite expects. */
const asks = {
  user_name: inputRequired.elicit({ message: 'What is your name?', requestedSchema: stringOf('name') }),
  step1: inputRequired.elicit({ message: 'What is your name?', requestedSchema: stringOf('name') }),
  step2: inputRequired.elicit({ message: 'Which color?', requestedSchema: stringOf('color') }),
  user_context: inputRequired.elicit({ message: 'In which context?', requestedSchema: stringOf('context') }),
  confirm: inputRequired.elicit({
    message: 'Continue?',
    requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  }),
  account: inputRequired.elicit({
    message: 'Which account?',
    requestedSchema: { type: 'object', properties: { username: { type: 'string' }, email: { type: 'string' } }, required: ['username', 'email'] },
  }),
  defaults: inputRequired.elicit({ message: 'Choose', requestedSchema: defaultsSchema as Form }),
  enums: inputRequired.elicit({ message: 'Choose', requestedSchema: enumSchema as Form }),
  greeting: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'Greet the user' } }], maxTokens: 50 }),
  capital_question: inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
    maxTokens: 50,
  }),
  client_roots: inputRequired.listRoots(),
} satisfies InputRequests

/**
 * Starts the server that the conformance suite needs for revision 2026-07-28, on the official SDK 2. It rejects other revisions and, as the SDK's own server
 * for the suite, hosts other than localhost.
 */
export async function startFixture2(): Promise<Fixture> {
  const codec = createRequestStateCodec<State>({ key: crypto.getRandomValues(new Uint8Array(32)) })
  const handler: McpHttpHandler = createMcpHandler(
    () => {
      const capabilities = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true }, completions: {} }
      const server = new McpServer(
        { name: 'conformance-fixture', version: '2.0.0' },
        { capabilities: { ...capabilities, logging: {} }, requestState: { verify: codec.verify } },
      )
      addTools(server)
      addInputTools(server, codec.mint)
      addOthers(server)
      const triggers = { test_trigger_tool_change: () => handler.notify.toolsChanged(), test_trigger_prompt_change: () => handler.notify.promptsChanged() }
      for (const [name, trigger] of Object.entries(triggers)) {
        server.registerTool(name, { description: `Tool ${name}`, inputSchema: schemaOf() }, () => {
          trigger()
          return textOf('changed')
        })
      }
      return server
    },
    { legacy: 'reject' },
  )
  return serveFetch((request) => hostHeaderValidationResponse(request, localhostAllowedHostnames()) ?? handler.fetch(request))
}

const schemas: Readonly<Record<string, object>> = {
  ...results.schemas,
  test_x_mcp_header: { properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, level: { type: 'integer' } } },
}

function addTools(server: McpServer): void {
  const names = toolNames.filter((name) => name in results.tools || /^test_(tool_with|logging)/.test(name))
  for (const name of [...names, 'test_x_mcp_header']) {
    server.registerTool(name, { description: `Tool ${name}`, inputSchema: schemaOf(schemas[name]) }, async (_, { mcpReq }) => {
      const { progressToken } = mcpReq['_meta'] ?? {}
      for (const data of name.includes('logging') ? ['one', 'two', 'three'] : []) await mcpReq.log('info', data)
      if (name === 'test_tool_with_progress' && progressToken !== undefined)
        for (const progress of [0, 50, 100]) await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
      return (results.tools[name] as Result | undefined) ?? textOf(name)
    })
  }
}

function addInputTools(server: McpServer, mint: (state: State) => Promise<string>): void {
  const add = (name: string, call: (context: ServerContext['mcpReq']) => Result | Promise<Result>): void => {
    server.registerTool(name, { description: `Tool ${name}`, inputSchema: schemaOf() }, (_, { mcpReq }) => call(mcpReq))
  }
  /** Requires the inputs with these keys; with `states`, passes a state to the next round. */
  const require = (name: string, keys: readonly (keyof typeof asks)[], states = false): void =>
    add(name, async ({ inputResponses, requestState }) => {
      const missing = keys.filter((key) => {
        const response = inputResponses?.[key]
        return asks[key].method === 'elicitation/create' ? acceptedContent(inputResponses, key) === undefined : response === undefined
      })
      if (missing.length === 0) return textOf(`${states && requestState() !== undefined ? 'state-ok integrity-ok ' : ''}${JSON.stringify(inputResponses)}`)
      const inputRequests = Object.fromEntries(missing.map((key) => [key, asks[key]]))
      return inputRequired({ inputRequests, ...(states ? { requestState: await mint({ round: 1 }) } : {}) })
    })
  require('test_missing_capability', ['greeting'])
  // The names of the suite for requests of older revisions.
  require('test_sampling', ['greeting'])
  require('test_elicitation', ['account'])
  require('test_elicitation_sep1034_defaults', ['defaults'])
  require('test_elicitation_sep1330_enums', ['enums'])
  require('test_input_required_result_elicitation', ['user_name'])
  require('test_input_required_result_sampling', ['capital_question'])
  require('test_input_required_result_list_roots', ['client_roots'])
  require('test_input_required_result_request_state', ['confirm'], true)
  require('test_input_required_result_tampered_state', ['confirm'], true)
  require('test_input_required_result_multiple_inputs', ['user_name', 'greeting', 'client_roots'], true)
  add('test_input_required_result_multi_round', async ({ inputResponses, requestState }) => {
    const { round } = requestState<State>() ?? { round: 0 }
    if (round === 2) return textOf(JSON.stringify(inputResponses))
    const inputRequests: InputRequests = round === 0 ? { step1: asks.step1 } : { step2: asks.step2 }
    return inputRequired({ inputRequests, requestState: await mint({ round: round + 1 }) })
  })
  add('test_input_required_result_capabilities', ({ inputResponses, envelope }) => {
    const meta: Readonly<Record<string, unknown>> = { ...envelope }
    const { elicitation, sampling, roots } = (meta[CLIENT_CAPABILITIES_META_KEY] ?? {}) as Readonly<Record<string, unknown>>
    const inputRequests = {
      ...(elicitation === undefined ? {} : { user_name: asks.user_name }),
      ...(sampling === undefined ? {} : { greeting: asks.greeting }),
      ...(roots === undefined ? {} : { client_roots: asks.client_roots }),
    }
    return inputResponses === undefined && Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : textOf('done')
  })
}

function addOthers(server: McpServer): void {
  for (const { uri, ...content } of resources) server.registerResource(uri, uri, {}, () => ({ contents: [{ uri, ...content }] }))
  server.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined }), {}, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }) }],
  }))
  for (const [name, { args, messages }] of Object.entries(prompts)) {
    const argsSchema = schemaOf({ properties: Object.fromEntries(args.map((arg) => [arg, { type: 'string' }])), required: args })
    server.registerPrompt(name, { description: `Prompt ${name}`, argsSchema }, (values) => ({ messages: messages(values as Record<string, string>) }))
  }
  server.registerPrompt('test_input_required_result_prompt', { description: 'Prompt with input', argsSchema: schemaOf() }, (_, { mcpReq }) => {
    const content = acceptedContent(mcpReq.inputResponses, 'user_context')
    if (content === undefined) return inputRequired({ inputRequests: { user_context: asks.user_context } })
    return { messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify(content) } }] }
  })
  server.server.setRequestHandler('completion/complete', () => ({ completion: { values: ['paris', 'park', 'party'], total: 150, hasMore: false } }))
}
