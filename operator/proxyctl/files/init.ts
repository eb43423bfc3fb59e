import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { KEY_BYTES, newKey } from '#api/credentials/new-key.ts'
import { CommandError, UsageError } from '../output.ts'
import type { Command, Options } from '../types.ts'

const DEFAULT_FILE = 'gateway.yaml'

/** What each provider needs in the file, and its default model. */
const providers: Readonly<Record<string, { readonly variable: string; readonly model: string }>> = {
  openai: { variable: 'OPENAI_API_KEY', model: 'gpt-5-mini' },
  anthropic: { variable: 'ANTHROPIC_API_KEY', model: 'claude-sonnet-4-5' },
  gemini: { variable: 'GEMINI_API_KEY', model: 'gemini-2.5-flash' },
}
const names = Object.keys(providers).join(', ')

interface Answers {
  readonly provider: string
  readonly model: string
  readonly listen: string
  readonly clients: readonly string[]
  readonly mcp: string
}

/** A question; `option` answers it without asking. */
interface Question {
  readonly option: 'provider' | 'model' | 'listen' | 'clients' | 'mcp'
  readonly text: string
  fallback(answers: readonly string[]): string
}

const questions: readonly Question[] = [
  { option: 'provider', text: `Provider (${names}, or the URL of a server with the API of OpenAI)`, fallback: () => 'openai' },
  { option: 'model', text: 'Model', fallback: ([provider = '']) => providers[provider]?.model ?? '' },
  { option: 'listen', text: 'Address and port', fallback: () => '127.0.0.1:4000' },
  { option: 'clients', text: 'Clients that get an API key, separated by commas (empty: none, and no authentication)', fallback: () => '' },
  { option: 'mcp', text: 'URL of an MCP server (empty: none)', fallback: () => '' },
]

/** Writes a config file, and prints the keys of its clients and what to do next. */
export const runConfigInit: Command = async ({ args, options, output, readInput, ask }) => {
  if (args.length > 0) throw new UsageError('config init takes no argument; --out names the file')
  const out = options.out ?? DEFAULT_FILE
  const answers = await readAnswers(options, ask, readInput)
  const keys = answers.clients.map((name) => ({ name, ...newKey(randomBytes(KEY_BYTES)) }))
  const text = await render(answers, keys)
  await check(out, text, answers)
  await writeFile(out, text, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError('PX6009', error.code === 'EEXIST' ? `${out} exists already; name another file with --out, or remove it` : `${out}: ${error.message}`)
  })
  const variable = providers[answers.provider]?.variable
  const value = { file: out, keys: Object.fromEntries(keys.map(({ name, key }) => [name, key])), ...(variable !== undefined && { variable }) }
  output.print(value, () => [
    `wrote ${out}`,
    ...keys.map(({ name, key }) => `key of ${name}, shown only now: ${key}`),
    ...(variable === undefined ? [] : [`set the variable ${variable} to your key of ${answers.provider}`]),
    `check it: proxyctl lint ${out}`,
  ])
  return 0
}

async function readAnswers(options: Options, ask: ((question: string) => Promise<string>) | undefined, readInput: () => Promise<string>): Promise<Answers> {
  const isOpen = questions.some(({ option }) => options[option] === undefined)
  const lines = isOpen && ask === undefined ? (await readInput()).split('\n') : []
  const answers: string[] = []
  for (const { option, text, fallback } of questions) {
    const usual = fallback(answers)
    const given = options[option] ?? (await ask?.(`${text}${usual === '' ? '' : ` [${usual}]`}: `)) ?? lines.shift() ?? ''
    answers.push(given.trim() || usual)
  }
  const [provider = '', model = '', listen = '', clients = '', mcp = ''] = answers
  if (!Object.hasOwn(providers, provider) && !/^https?:\/\//.test(provider))
    throw new UsageError(`provider ${JSON.stringify(provider)} is none of ${names}, and no URL that begins with http:// or https://`)
  if (model === '') throw new UsageError('model is empty; write the name that the server has for it')
  return {
    provider,
    model,
    listen,
    clients: clients
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
    mcp,
  }
}

/** Placeholders of keys stand for the environment of the gateway. */
async function render({ provider, model, listen, mcp }: Answers, keys: readonly { readonly name: string; readonly keyHash: string }[]): Promise<string> {
  const { stringify } = await import('yaml')
  const known = providers[provider]
  const settings = known === undefined ? { openai: { url: provider } } : { [provider]: { apiKey: `\${${known.variable}}` } }
  return `# Fields: docs/guide/config-file.md. Edits are picked up while the gateway runs.\n${stringify(
    {
      listen,
      ...(keys.length > 0 && { keys: Object.fromEntries(keys.map(({ name, keyHash }) => [name, { keyHash }])) }),
      models: { [model]: settings },
      ...(mcp !== '' && { mcp: { server: { url: mcp } } }),
    },
    { lineWidth: 0 },
  )}`
}

/** Rejects answers that make no valid file, before it is written. */
async function check(path: string, text: string, { provider }: Answers): Promise<void> {
  const [{ loadConfigFile }, { ConfigFileError }] = await Promise.all([
    import('../../../dataplane/config/file/file.ts'),
    import('../../../dataplane/config/file/problem.ts'),
  ])
  const variable = providers[provider]?.variable
  try {
    await loadConfigFile(path, { text, env: variable === undefined ? {} : { [variable]: 'set' } })
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    throw new CommandError('PX6009', `these answers make no valid file: ${error.problems.map((problem) => problem.replace(/^.*?:\d+:\d+: /, '')).join('; ')}`)
  }
}
