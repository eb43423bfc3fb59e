import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { McpToolGuards, PromptguardRequest } from '#gen/config/types.ts'
import { startMockProvider } from '../../../../e2e/harness/llm/provider.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { fitMasked } from '../schema/fit.ts'
import { staticTarget, type GatewayConfig, type McpGateway } from '../testing/gateway.ts'
import { MODERN } from '../testing/modern.ts'
import { begin, call, MCP_HEADERS, send, sendModern, TestBed, type RawAnswer, type ScriptedBody } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const maskEmails: PromptguardRequest = { regex: { builtins: ['Email'] } }
const rejectSecrets: PromptguardRequest = { regex: { matches: ['secret-[0-9]+'], action: 'Reject' }, response: { message: 'no secrets, please' } }

interface Options extends GatewayConfig {
  /** Result of the tool, or an entire message. */
  readonly result?: object
  readonly outputSchema?: object
  /** Responds with event streams. */
  readonly isStream?: boolean
}

/** A gateway with guards in front of a server with the tool `x`. */
async function start(toolGuards: McpToolGuards, { result, outputSchema, isStream = false, ...config }: Options = {}) {
  const calls: ScriptedBody[] = []
  const resultOf = (body: ScriptedBody): object => {
    if (body.method === 'initialize')
      return { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' }, capabilities: { tools: {}, resources: {}, prompts: {} } }
    if (body.method === 'tools/list') return { tools: [{ name: 'x', inputSchema: { type: 'object' }, ...(outputSchema && { outputSchema }) }] }
    calls.push(body)
    return result ?? { content: [{ type: 'text', text: JSON.stringify(body.params?.['arguments'] ?? null) }] }
  }
  const { port } = await bed.scripted((request, response, body) => {
    if (body?.id === undefined) return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
    const answer = resultOf(body)
    const text = JSON.stringify('jsonrpc' in answer ? answer : { jsonrpc: '2.0', id: body.id, result: answer })
    const session = body.method === 'initialize' ? { 'mcp-session-id': 's1' } : {}
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json', ...session })
    response.end(isStream ? `id: 7\ndata: ${text}\n\n` : text)
  })
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] }, policies: { mcp: { toolGuards } }, ...config })
  const { post } = await begin(gateway.url)
  const callTool = (args?: unknown): Promise<RawAnswer> => post(call('tools/call', { name: 'x', ...(args === undefined ? {} : { arguments: args }) }))
  return { calls, gateway, post, callTool }
}

const rejected = (text: string) => ({ content: [{ type: 'text', text }], isError: true })
const DEFAULT_INPUT = 'The arguments of the tool were rejected due to inappropriate content'
const DEFAULT_OUTPUT = 'The result of the tool was rejected due to inappropriate content'
const checksOf = (gateway: McpGateway): string[] => [...gateway.registry.expose('text')].join('').match(/^proxy_guardrail_checks_total.*$/gm) ?? []

describe('guards of arguments', () => {
  test('mask values and names of members, and the server receives the masked arguments', async () => {
    const { calls, callTool } = await start({ input: [maskEmails] })
    await callTool({ to: 'ada@example.org', deep: [{ 'bob@example.org': 5 }], count: 3 })
    expect(calls[0]?.params?.['arguments']).toEqual({ to: '<EMAIL_ADDRESS>', deep: [{ '<EMAIL_ADDRESS>': 5 }], count: 3 })
  })

  test('reject a call with an error result, and the server is not called', async () => {
    const { calls, callTool, gateway } = await start({ input: [maskEmails, rejectSecrets] })
    const answer = await callTool({ text: 'ada@example.org has secret-42' })
    expect([answer.status, answer.json.result]).toEqual([200, rejected('no secrets, please')])
    expect(calls).toEqual([])
    expect(checksOf(gateway)).toEqual([
      'proxy_guardrail_checks_total{phase="ToolInput",action="Mask"} 1',
      'proxy_guardrail_checks_total{phase="ToolInput",action="Reject"} 1',
    ])
  })

  test('see fixed arguments, and calls without arguments pass', async () => {
    const { calls, post, callTool } = await start({ input: [rejectSecrets] })
    expect((await callTool()).json.result).toMatchObject({ content: [{ text: 'null' }] })
    expect((await post(call('tools/call', { name: 'x', arguments: { n: 1 } }))).json.result).toBeDefined()
    expect(calls.length).toBe(2)
  })

  test('that cannot be compiled fail all calls', async () => {
    const { calls, callTool } = await start({ input: [{ regex: { matches: ['('] } }] })
    expect((await callTool({})).json.error).toEqual({ code: -32603, message: 'a guard of the arguments could not be evaluated' })
    expect(calls).toEqual([])
  })

  test('hide tools that rules deny: a denied call reaches no guard', async () => {
    const authorization = { action: 'Deny' as const, policy: { matchExpressions: ['mcp.tool.name == "x"'] } }
    const { callTool, gateway } = await start({ input: [rejectSecrets] }, { policies: { mcp: { authorization, toolGuards: { input: [rejectSecrets] } } } })
    expect((await callTool({ a: 'secret-1' })).json.error).toEqual({ code: -32602, message: 'Unknown tool: x' })
    expect(checksOf(gateway)).toEqual([])
  })

  test('apply to call_tool of a search of tools', async () => {
    const { calls, gateway } = await start({ input: [rejectSecrets] })
    gateway.configure({ mcp: { toolSearch: 'Enabled', sessionRouting: 'Stateless', targets: [staticTarget('a', 1)] } })
    const message = call('tools/call', { name: 'call_tool', arguments: { name: 'x', arguments: { a: 'secret-1' } } })
    const answer = await send(gateway.url, 'POST', MCP_HEADERS, message)
    expect(answer.json.result).toEqual(rejected('no secrets, please'))
    expect(calls).toEqual([])
  })
})

describe.each([false, true])('guards of results, with streams %s,', (isStream) => {
  test('mask text, embedded resources, links and structured content', async () => {
    const blob = Buffer.from('mail eve@example.org').toString('base64')
    const result = {
      content: [
        { type: 'text', text: 'ask ada@example.org' },
        { type: 'resource', resource: { uri: 'file:///a@b.org', text: 'by bob@example.org' } },
        { type: 'resource', resource: { uri: 'file:///b', mimeType: 'text/plain', blob } },
        { type: 'resource_link', uri: 'file:///c', name: 'c', description: 'of carol@example.org' },
        { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      ],
      structuredContent: { owner: 'dan@example.org', size: 3 },
    }
    const { callTool } = await start({ output: [maskEmails] }, { result, isStream })
    const { content } = result
    expect((await callTool({})).json.result).toEqual({
      content: [
        { type: 'text', text: 'ask <EMAIL_ADDRESS>' },
        { type: 'resource', resource: { uri: 'file:///a@b.org', text: 'by <EMAIL_ADDRESS>' } },
        { type: 'resource', resource: { uri: 'file:///b', mimeType: 'text/plain', blob: Buffer.from('mail <EMAIL_ADDRESS>').toString('base64') } },
        { type: 'resource_link', uri: 'file:///c', name: 'c', description: 'of <EMAIL_ADDRESS>' },
        content[4],
      ],
      structuredContent: { owner: '<EMAIL_ADDRESS>', size: 3 },
    })
  })

  test('search blocks of unknown types and results without content entirely', async () => {
    const result = { content: [{ type: 'table', rows: ['secret-42'] }] }
    const unknown = await start({ output: [rejectSecrets] }, { result, isStream })
    expect((await unknown.callTool({})).json.result).toEqual(rejected('no secrets, please'))
    const old = await start({ output: [rejectSecrets] }, { result: { toolResult: 'secret-42' }, isStream })
    expect((await old.callTool({})).json.result).toEqual(rejected('no secrets, please'))
  })

  test('check errors of the server', async () => {
    const message = { jsonrpc: '2.0', id: 1, error: { code: -32000, message: 'no user ada@example.org', data: { mail: 'ada@example.org' } } }
    const masking = await start({ output: [maskEmails] }, { result: message, isStream })
    expect((await masking.callTool({})).json.error).toEqual({ code: -32000, message: 'no user <EMAIL_ADDRESS>', data: { mail: '<EMAIL_ADDRESS>' } })
    const rejecting = await start({ output: [{ regex: { matches: ['ada'], action: 'Reject' } }] }, { result: message, isStream })
    expect((await rejecting.callTool({})).json).toEqual({ jsonrpc: '2.0', id: 1, result: rejected(DEFAULT_OUTPUT) })
  })

  test('keep structured content valid against the output schema', async () => {
    const outputSchema = {
      type: 'object',
      properties: { mail: { type: 'string', format: 'email' }, phone: { $ref: '#/definitions/phone' }, name: { type: 'string' } },
      definitions: { phone: { type: 'integer', minimum: 10 } },
      additionalProperties: false,
    }
    const guards: McpToolGuards = { output: [{ regex: { builtins: ['Email'], matches: ['555[0-9]+'] } }] }
    const structuredContent = { mail: 'ada@example.org', phone: 5_551_234, name: 'ada@example.org' }
    const { callTool } = await start(guards, { result: { content: [], structuredContent }, outputSchema, isStream })
    expect((await callTool({})).json.result).toEqual({
      content: [],
      structuredContent: { mail: 'masked@masked.invalid', phone: 10, name: '<EMAIL_ADDRESS>' },
    })
  })

  test('hide structured content that cannot be masked within its schema', async () => {
    const outputSchema = { type: 'object', properties: { mail: { enum: ['ada@example.org', 'bob@example.org'] } } }
    const result = { content: [{ type: 'text', text: 'ada@example.org' }], structuredContent: { mail: 'ada@example.org' } }
    const { callTool } = await start({ output: [maskEmails] }, { result, outputSchema, isStream })
    expect((await callTool({})).json.result).toEqual({
      content: [
        { type: 'text', text: '<EMAIL_ADDRESS>' },
        { type: 'text', text: 'The structured result is not shown: with its values masked, it does not match the output schema of the tool.' },
      ],
      isError: true,
    })
  })

  test('fail the call if a service cannot be reached', async () => {
    const { callTool } = await start({ output: [{ webhook: { backendRef: { service: 'ns/guard', port: 80 } } }] }, { services: { 'ns/guard': [] }, isStream })
    expect((await callTool({ a: 1 })).json.error).toEqual({ code: -32603, message: 'a guard of the result could not be evaluated' })
  })
})

describe('a client of revision 2026-07-28', () => {
  const guards = { input: [rejectSecrets], output: [maskEmails] }

  test.each(['legacy', 'modern'])('gets rejections and masked results as results of its revision from a %s server', async (era) => {
    const { gateway } = await start(guards, { result: { content: [{ type: 'text', text: 'ada@example.org' }] } })
    if (era === 'modern') {
      const handle = ({ method }: { method?: string }) => (method === 'tools/call' ? { content: [{ type: 'text', text: 'ada@example.org' }] } : undefined)
      const { port } = await bed.modern('m', { handle })
      gateway.configure({ mcp: { targets: [staticTarget('m', port)] } })
    }
    const refused = await sendModern(gateway.url, 'tools/call', { name: 'x', arguments: { a: 'secret-1' } })
    expect([refused.status, refused.json.result]).toMatchObject([200, { ...rejected('no secrets, please'), resultType: 'complete' }])
    const masked = await sendModern(gateway.url, 'tools/call', { name: 'x', arguments: {} })
    expect(masked.json.result).toMatchObject({ content: [{ type: 'text', text: '<EMAIL_ADDRESS>' }], resultType: 'complete' })
    expect(MODERN).toBe('2026-07-28')
  })
})

describe('services', () => {
  const webhook = {
    webhook: { backendRef: { service: 'ns/guard', port: 80 }, forwardHeaderMatches: [{ name: 'x-user', value: '.*', type: 'RegularExpression' as const }] },
  }

  async function withWebhook(guards: McpToolGuards, answer: (body: Record<string, unknown>) => object) {
    const seen: unknown[] = []
    const address = await bed.scripted((request, response, body) => {
      seen.push([request.url, request.headers['x-user'], body])
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ action: answer(body as Record<string, unknown>) }))
    })
    return { ...(await start(guards, { services: { 'ns/guard': [address] } })), seen }
  }

  test('a webhook receives arguments and results as messages of role tool, and masks them', async () => {
    const { post, calls, seen } = await withWebhook({ input: [webhook], output: [webhook] }, (body) => {
      const text = JSON.stringify(body['body']).replaceAll('Smaug', 'the dragon')
      return { body: JSON.parse(text) as unknown }
    })
    const answer = await post(call('tools/call', { name: 'x', arguments: { who: 'Smaug' } }), { 'x-user': 'dora' })
    expect(calls[0]?.params?.['arguments']).toEqual({ who: 'the dragon' })
    expect(answer.json.result).toEqual({ content: [{ type: 'text', text: '{"who":"the dragon"}' }] })
    expect(seen).toEqual([
      ['/request', 'dora', { body: { messages: [{ role: 'tool', content: '{"who":"Smaug"}' }] } }],
      ['/response', 'dora', { body: { choices: [{ message: { role: 'tool', content: '{"who":"the dragon"}' } }] } }],
    ])
  })

  test('a webhook rejects with its own text', async () => {
    const { callTool } = await withWebhook({ input: [webhook] }, () => ({ body: 'not today', status_code: 451 }))
    expect((await callTool({ a: 1 })).json.result).toEqual(rejected('not today'))
  })

  test.each(['not JSON', '[1]', '"text"'])('a webhook that replaces arguments by %s fails the call', async (content) => {
    const { callTool, calls } = await withWebhook({ input: [webhook] }, () => ({ body: { messages: [{ role: 'tool', content }] } }))
    expect((await callTool({ a: 1 })).json.error).toMatchObject({ code: -32603 })
    expect(calls).toEqual([])
  })

  test.each([
    ['moderationApi', { moderationApi: { policies: { auth: { key: 'k' } } } }, 'OPENAI_BASE_URL'],
    [
      'cloudGuardrails',
      { cloudGuardrails: { identifier: 'g', version: '1', region: 'eu-west-1', policies: { auth: { key: 'k' } } } },
      'AWS_ENDPOINT_URL_BEDROCK_RUNTIME',
    ],
    ['modelArmor', { modelArmor: { templateId: 't', projectId: 'p', policies: { auth: { key: 'k' } } } }, 'CLOUDSDK_API_ENDPOINT_OVERRIDES_MODELARMOR'],
  ] as const)('%s rejects arguments and results', async (_, guard, variable) => {
    const screener = await startMockProvider()
    bed.onClose(() => screener.close())
    const before = process.env[variable]
    process.env[variable] = screener.url
    try {
      const input = await start({ input: [guard] })
      expect((await input.callTool({ about: 'the dragon' })).json.result).toEqual(rejected(DEFAULT_INPUT))
      expect((await input.callTool({ about: 'the weather' })).json.result).toEqual({ content: [{ type: 'text', text: '{"about":"the weather"}' }] })
      const output = await start({ output: [guard] })
      expect((await output.callTool({ about: 'the dragon' })).json.result).toEqual(rejected(DEFAULT_OUTPUT))
    } finally {
      if (before === undefined) delete process.env[variable]
      else process.env[variable] = before
    }
  })
})

describe('scope of guards', () => {
  test('the guards of a target replace those of the backend', async () => {
    const { port } = await bed.answering((body) =>
      body.method === 'tools/call' ? { content: [{ type: 'text', text: 'ada@example.org secret-1' }] } : undefined,
    )
    const own = { mcp: { toolGuards: { output: [maskEmails] } } }
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', port), staticTarget('b', port, { policies: own })] },
      policies: { mcp: { toolGuards: { output: [rejectSecrets] } } },
    })
    const { post } = await begin(gateway.url)
    expect((await post(call('tools/call', { name: 'a_t' }))).json.result).toEqual(rejected('no secrets, please'))
    expect((await post(call('tools/call', { name: 'b_t' }))).json.result).toEqual({ content: [{ type: 'text', text: '<EMAIL_ADDRESS> secret-1' }] })
  })

  test('methods that the gateway does not know are not forwarded', async () => {
    const { post } = await start({ output: [maskEmails] })
    expect((await post(call('tasks/result', { taskId: '1' }))).json.error).toMatchObject({ code: -32601 })
  })

  test('a result on the stream of server messages is dropped, because it would be unchecked', async () => {
    const { port } = await bed.scripted((request, response, body) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const late = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'ada@example.org' }] } }
        return void response.end(
          `data: ${JSON.stringify(late)}\n\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n`,
        )
      }
      if (body?.id === undefined) return void response.writeHead(202).end()
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id: body.id, result: { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' }, capabilities: {} } }),
      )
    })
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] }, policies: { mcp: { toolGuards: { output: [maskEmails] } } } })
    const { id } = await begin(gateway.url)
    const { text } = await send(gateway.url, 'GET', { accept: 'text/event-stream', 'mcp-session-id': id })
    expect(text).toContain('notifications/message')
    expect(text).not.toContain('ada')
  })

  test('a stream that ends without the result of a guarded call is an error, because it could be resumed unchecked', async () => {
    const { port } = await bed.scripted((_, response, body) => {
      if (body?.id === undefined) return void response.writeHead(202).end()
      if (body.method !== 'initialize') return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\nretry: 10\ndata:\n\n')
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id: body.id, result: { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' }, capabilities: {} } }),
      )
    })
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] }, policies: { mcp: { toolGuards: { output: [maskEmails] } } } })
    const { post } = await begin(gateway.url)
    const answer = await post(call('tools/call', { name: 'x' }))
    expect(answer.text).toContain('"code":-32603')
    expect(answer.text).not.toContain('id: 1\n')
  })
})

describe('a masked value', () => {
  const fit = (schema: Record<string, unknown>, original: unknown, masked: unknown): unknown => runSync(fitMasked(schema, original, masked))
  const member = (schema: object) => ({ type: 'object', properties: { a: schema } })

  test.each([
    ['a label in free text', { type: 'string' }, 'x@y.z', '<EMAIL_ADDRESS>', '<EMAIL_ADDRESS>'],
    ['a date', { type: 'string', format: 'date' }, '2020-01-02', '<masked>', '1970-01-01'],
    ['a short text', { type: 'string', maxLength: 4 }, 'abcd', '<masked>', '<mas'],
    ['a long text', { type: 'string', minLength: 10 }, 'abcdefghij', '<masked>', '<masked>**'],
    ['a number', { type: 'number', maximum: -5 }, -77, '<masked>', -5],
    ['a number above an exclusive bound', { type: 'number', exclusiveMinimum: 2 }, 77, '<masked>', 3],
    ['a number or text', { type: ['number', 'string'] }, 77, '<masked>', '<masked>'],
    ['an alternative', { anyOf: [{ type: 'null' }, { type: 'string', format: 'uuid' }] }, 'u', '<masked>', '00000000-0000-0000-0000-000000000000'],
  ])('is %s', (_, schema, original, masked, expected) => {
    expect(fit(member(schema), { a: original }, { a: masked })).toEqual({ value: { a: expected } })
  })

  test('in a list has the schema of its item', () => {
    const schema = { type: 'object', properties: { a: { type: 'array', prefixItems: [{ type: 'integer' }], items: { format: 'ipv4' } } } }
    expect(fit(schema, { a: [5, 'x', 'y'] }, { a: ['<masked>', '<masked>', 'y'] })).toEqual({ value: { a: [0, '0.0.0.0', 'y'] } })
  })

  test('is undefined if no value fits', () => {
    expect(fit(member({ const: 'x' }), { a: 'x' }, { a: '<masked>' })).toBeUndefined()
    expect(fit(member({ type: 'string', pattern: '^[0-9]+$' }), { a: '1' }, { a: '<masked>' })).toBeUndefined()
  })

  test('with a recursive schema is found in bounded time', () => {
    const schema = { $ref: '#/$defs/n', $defs: { n: { anyOf: [{ $ref: '#/$defs/n' }, { properties: { a: { $ref: '#/$defs/n' } } }] } } }
    expect(fit(schema, { a: { a: 'x' } }, { a: { a: '<masked>' } })).toBeUndefined()
  })
})
