import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { loadConfigFile } from '../../../dataplane/config/file/file.ts'
import { main } from '../proxyctl.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'expand-'))
})
afterEach(() => {
  delete process.env['EXPAND_KEY']
})
afterAll(() => rm(directory, { recursive: true }))

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ['', '']
  const terminal = {
    env: {},
    isTerminal: false,
    readInput: async () => '',
    write: (text: string) => void (stdout += text),
    writeError: (text: string) => void (stderr += text),
  }
  return { code: await main(args, terminal), stdout, stderr }
}

async function write(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

const SHORT = `llm:
  port: \${EXPAND_PORT:-4001}
  models:
    gpt-4o: { openai: { apiKey: \${EXPAND_KEY} } }
    nova: { bedrock: { accessKeyId: \${EXPAND_KEY}, secretAccessKey: \${EXPAND_KEY}, region: us-east-1 } }
    local: { openai: { url: "http://\${EXPAND_HOST:-localhost}:8000/api" } }
mcp:
  everything: { url: https://mcp.example.com/mcp, apiKey: "Token $\${x}" }
`

describe('lint --expand', () => {
  test('prints the long form with real names and without the values of placeholders', async () => {
    process.env['EXPAND_KEY'] = 'sk-very-secret'
    const { code, stdout } = await run('lint', await write('gateway.yaml', SHORT), '--expand')
    expect(code).toBe(0)
    expect(stdout).not.toContain('sk-very-secret')
    const long = parse(stdout) as { binds: { port: unknown }[]; backends: object[]; secrets: object[] }
    expect(Object.keys(long)).toEqual(['binds', 'backends', 'secrets', 'policies'])
    expect(long.binds.map(({ port }) => port)).toEqual(['${EXPAND_PORT:-4001}', 3000])
    expect(long.backends[0]).toMatchObject({ name: 'llm.gpt-4o', ai: { provider: { openai: {} } }, policies: { auth: { key: '${EXPAND_KEY}' } } })
    expect(long.secrets).toMatchObject([{ data: { accessKey: '${EXPAND_KEY}', secretKey: '${EXPAND_KEY}' } }])
  })

  test('prints a config file that has the same effect', async () => {
    process.env['EXPAND_KEY'] = 'sk-very-secret'
    const short = await write('gateway.yaml', SHORT)
    const long = await write('long.yaml', (await run('lint', short, '--expand')).stdout)
    expect(await run('lint', long)).toEqual({ code: 0, stderr: '', stdout: `${long}: no error\n` })
    const [expected, actual] = [await loadConfigFile(short), await loadConfigFile(long)]
    // Validation adds the defaults of the schema.
    const summary = ({ messages }: typeof expected): unknown => messages.map(({ kind, message }) => `${kind} ${message.key}`)
    expect(summary(actual)).toEqual(summary(expected))
    for (const [index, { message }] of expected.messages.entries()) {
      // Where a rule comes from in the file differs.
      const { origin: _, ...fields } = { origin: undefined, ...message }
      expect(actual.messages[index]?.message).toMatchObject(fields)
    }
  })

  test('prints the errors of an invalid file instead', async () => {
    const file = await write('gateway.yaml', SHORT)
    const { code, stdout } = await run('lint', file, '--expand')
    expect(code).toBe(1)
    expect(stdout).toContain(`${file}:4:33  llm.models.gpt-4o.openai.apiKey: the environment variable EXPAND_KEY is not set`)
  })

  test('is rejected for manifests', async () => {
    const { code, stderr } = await run('lint', await write('a.yaml', 'apiVersion: v1\nkind: Namespace\nmetadata: { name: a }\n'), '--expand')
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not a config file')])
  })
})

test('lint notes a config file that listens on no port', async () => {
  const file = await write('empty.yaml', 'config: { logging: { level: debug } }\n')
  expect(await run('lint', file)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^note +\S+empty\.yaml +no port to listen on; add models, mcp or binds/),
  })
})
