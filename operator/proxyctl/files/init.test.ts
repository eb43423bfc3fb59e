import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { loadConfigFile } from '../../../dataplane/config/file/file.ts'
import type { Terminal } from '../output.ts'
import { main } from '../proxyctl.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'init-'))
})
afterAll(() => rm(directory, { recursive: true }))

async function run(args: readonly string[], more: Partial<Terminal> = {}): Promise<{ code: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ['', '']
  const terminal: Terminal = {
    env: {},
    isTerminal: false,
    readInput: async () => '',
    write: (text) => void (stdout += text),
    writeError: (text) => void (stderr += text),
    ...more,
  }
  return { code: await main(['config', 'init', ...args], terminal), stdout, stderr }
}

const places = async (path: string, env: Readonly<Record<string, string>>): Promise<unknown[]> =>
  (await loadConfigFile(path, { env })).messages.flatMap((one) => (one.kind === 'bind' ? [[one.message.port, one.message.addresses]] : []))

describe('config init', () => {
  test('asks five questions on a terminal, with defaults, and writes a file that starts', async () => {
    const asked: string[] = []
    const out = join(directory, 'asked.yaml')
    const answers = ['anthropic', '', '', '', '']
    const ask = async (question: string): Promise<string> => answers[asked.push(question) - 1] ?? ''
    const { code, stdout } = await run(['--out', out], { ask })
    expect(code).toBe(0)
    expect(asked).toHaveLength(5)
    expect(asked[1]).toBe('Model [claude-sonnet-4-5]: ')
    expect(stdout).toContain('set the variable ANTHROPIC_API_KEY')
    expect(await places(out, { ANTHROPIC_API_KEY: 'sk' })).toEqual([[4000, ['127.0.0.1']]])
    expect((await stat(out)).mode & 0o777).toBe(0o600)
  })

  test('reads the answers of questions without an option from standard input', async () => {
    const out = join(directory, 'piped.yaml')
    const { code, stdout } = await run(['--provider', 'http://localhost:11434/v1', '--out', out, '-o', 'json'], {
      readInput: async () => 'llama\n0.0.0.0:4100\nalice, bob\nhttps://mcp.example.com/mcp\n',
    })
    expect(code).toBe(0)
    const { keys } = JSON.parse(stdout) as { keys: Record<string, string> }
    expect(Object.keys(keys)).toEqual(['alice', 'bob'])
    const text = await readFile(out, 'utf8')
    for (const key of Object.values(keys)) expect(text).not.toContain(key)
    const { messages, warnings, notes } = await loadConfigFile(out, { env: {} })
    expect([warnings, notes]).toEqual([[], []])
    expect(messages.map(({ message }) => message.key)).toEqual(expect.arrayContaining(['default/models.llama', 'default/mcp', 'opaque/default/keys']))
  })

  test('keeps a file that exists', async () => {
    const out = join(directory, 'mine.yaml')
    await writeFile(out, 'mine')
    const { code, stderr } = await run(['--out', out])
    expect([code, await readFile(out, 'utf8')]).toEqual([1, 'mine'])
    expect(stderr).toContain('exists already; name another file with --out')
  })

  test.each([
    ['--provider', 'opanai', 2, 'provider "opanai" is none of openai, anthropic, gemini'],
    ['--listen', 'example.com:80', 1, 'listen: must be an address'],
    ['--clients', 'al ice', 1, 'keys["al ice"]: is the name of a key'],
    ['--mcp', 'mcp.example.com', 1, 'mcp.server.url: must be a URL that starts with http:// or https://, is "mcp.example.com"'],
  ])('rejects %s %s with the field, the value and the fix, and writes nothing', async (option, value, status, message) => {
    const out = join(directory, 'none.yaml')
    const { code, stderr } = await run([option, value, '--out', out])
    expect([code, stderr]).toEqual([status, expect.stringContaining(message)])
    await expect(stat(out)).rejects.toThrow('ENOENT')
  })
})
