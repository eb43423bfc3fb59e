import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const post = (run: ExampleRun, path: string, body: object) =>
  run.send(8080, { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
const chat = (content: string, model = 'gpt-4o') => ({ model, messages: [{ role: 'user', content }] })
const lastPath = (run: ExampleRun) => run.upstream('llm').requests.at(-1)?.path

const paths: Readonly<Record<string, string>> = {
  openai: '/v1/chat/completions',
  azure: '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
  anthropic: '/v1/messages',
  gemini: '/v1beta/openai/chat/completions',
  vertex: '/v1/projects/my-project/locations/us-central1/endpoints/openapi/chat/completions',
  bedrock: '/model/eu.anthropic.claude-sonnet-4-5/converse',
}

export default expectations({
  'a chat completions client can use all six providers': async (run) => {
    for (const [name, path] of Object.entries(paths)) {
      const response = await post(run, `/${name}/v1/chat/completions`, chat(`hello ${name}`))
      expect([response.status, response.body]).toEqual([200, expect.stringContaining(`echo: hello ${name}`)])
      expect(lastPath(run)).toBe(path)
    }
  },
  'each provider receives its key in its own header': async (run) => {
    await post(run, '/openai/v1/chat/completions', chat('x'))
    expect(run.upstream('llm').requests.at(-1)?.headers['authorization']).toBe('Bearer demo-provider-key')
    await post(run, '/anthropic/v1/chat/completions', chat('x'))
    expect(run.upstream('llm').requests.at(-1)?.headers['x-api-key']).toBe('demo-provider-key')
    await post(run, '/bedrock/v1/chat/completions', chat('x'))
    expect(run.upstream('llm').requests.at(-1)?.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIADEMO\/\d+\/eu-west-1\/bedrock\/aws4_request/,
    )
  },
  'Claude on Vertex AI is called at its own endpoint': async (run) => {
    await post(run, '/vertex/v1/chat/completions', chat('x', 'claude-sonnet-4-5-20250929'))
    expect(lastPath(run)).toBe('/v1/projects/my-project/locations/us-central1/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict')
  },
  'a messages client can use OpenAI': async (run) => {
    const response = await post(run, '/openai/v1/messages', { max_tokens: 10, ...chat('hello') })
    expect(JSON.parse(response.body)).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'echo: hello' }], stop_reason: 'end_turn' })
  },
  'a request that cannot be translated is rejected': async (run) => {
    const response = await post(run, '/anthropic/v1/responses', { model: 'x', input: 'hello', background: true })
    expect([response.status, response.body]).toEqual([400, expect.stringContaining('unsupported conversion: background')])
  },
  'tokens are counted by the provider if possible, else by the gateway': async (run) => {
    const asked = run.upstream('llm').requests.length
    expect((await post(run, '/anthropic/v1/messages/count_tokens', chat('one two three'))).body).toBe('{"input_tokens":3}')
    expect(run.upstream('llm').requests.length).toBe(asked + 1)
    const counted = JSON.parse((await post(run, '/openai/v1/messages/count_tokens', chat('one two three'))).body) as Record<string, unknown>
    expect([counted['input_tokens'], run.upstream('llm').requests.length]).toEqual([expect.any(Number), asked + 1])
  },
  'models are listed by the gateway': async (run) => {
    expect(JSON.parse((await run.send(8080, { path: '/anthropic/v1/models' })).body)).toMatchObject({ object: 'list', data: [{ id: 'claude-sonnet-4-5' }] })
  },
  'other paths are passed through': async (run) => {
    await post(run, '/openai/v1/files?purpose=x', { a: 1 })
    expect(lastPath(run)).toBe('/v1/files?purpose=x')
  },
})
